// The loops that bench/kernels.ts is compared with on the CPU device: what each kernel does, in C++ with OpenMP. The
// blocked ones keep the kernel's blocks, so that both do the same work. `copy` is what a copy to the CPU device is
// compared with. Built by the bench:
//
//   g++ -O3 -march=native -fopenmp ... kernels_openmp.cpp
#include <chrono>
#include <cmath>

#include "kernels_common.h"

namespace {

using Clock = std::chrono::steady_clock;

template <class Loop>
double Milliseconds(int launches, Loop loop) {
  // As bench/kernels.ts does.
  if (launches > 1) {
    for (int n = 0; n < launches; ++n) loop();
  }
  const auto start = Clock::now();
  for (int n = 0; n < launches; ++n) loop();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count() / launches;
}

void Saxpy(float a, const float* x, float* y, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

void Nbody(const float* bodies, float* pull, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) {
    const float x = bodies[4 * i];
    const float y = bodies[4 * i + 1];
    const float z = bodies[4 * i + 2];
    float ax = 0;
    float ay = 0;
    float az = 0;
    for (int k = 0; k < n; ++k) {
      const float dx = bodies[4 * k] - x;
      const float dy = bodies[4 * k + 1] - y;
      const float dz = bodies[4 * k + 2] - z;
      const float inverse = 1.0f / std::sqrt(dx * dx + dy * dy + dz * dz + 0.01f);
      const float force = bodies[4 * k + 3] * inverse * inverse * inverse;
      ax += dx * force;
      ay += dy * force;
      az += dz * force;
    }
    pull[3 * i] = ax;
    pull[3 * i + 1] = ay;
    pull[3 * i + 2] = az;
  }
}

void Mandelbrot(int* steps, int most, int height, int width) {
#pragma omp parallel for schedule(dynamic, 8)
  for (int i = 0; i < height; ++i) {
    for (int j = 0; j < width; ++j) {
      const float cx = static_cast<float>(j) / static_cast<float>(width) * 3 - 2;
      const float cy = static_cast<float>(i) / static_cast<float>(height) * 3 - 1.5f;
      float x = 0;
      float y = 0;
      int n = 0;
      while (n < most && x * x + y * y < 4) {
        const float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        ++n;
      }
      steps[i * width + j] = n;
    }
  }
}

void Life(const uint8_t* from, uint8_t* to, int height, int width) {
#pragma omp parallel for
  for (int i = 0; i < height; ++i) {
    uint8_t* out = to + i * width;
    if (i == 0 || i == height - 1) {
      for (int j = 0; j < width; ++j) out[j] = 0;
      continue;
    }
    const uint8_t* above = from + (i - 1) * width;
    const uint8_t* row = above + width;
    const uint8_t* below = row + width;
    out[0] = 0;
    out[width - 1] = 0;
    for (int j = 1; j < width - 1; ++j) {
      const int around =
          above[j - 1] + above[j] + above[j + 1] + row[j - 1] + row[j + 1] + below[j - 1] + below[j] + below[j + 1];
      out[j] = around == 3 || (around == 2 && row[j] == 1) ? 1 : 0;
    }
  }
}

void Histogram(const uint8_t* data, unsigned* bins, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) {
#pragma omp atomic
    ++bins[data[i]];
  }
}

void Binned(const uint8_t* data, unsigned* bins, int blocks) {
#pragma omp parallel for
  for (int block = 0; block < blocks; ++block) {
    unsigned own[256] = {};
    for (int i = 0; i < 16384; ++i) ++own[data[block * 16384 + i]];
    for (int bin = 0; bin < 256; ++bin) {
#pragma omp atomic
      bins[bin] += own[bin];
    }
  }
}

void Matmul(const float* a, const float* b, float* c, int n) {
#pragma omp parallel for collapse(2)
  for (int top = 0; top < n; top += 16) {
    for (int left = 0; left < n; left += 16) {
      float sum[16][16] = {};
      for (int first = 0; first < n; first += 16) {
        float tile_a[16][16];
        float tile_b[16][16];
        for (int i = 0; i < 16; ++i) {
          for (int j = 0; j < 16; ++j) {
            tile_a[i][j] = a[(top + i) * n + first + j];
            tile_b[i][j] = b[(first + i) * n + left + j];
          }
        }
        for (int i = 0; i < 16; ++i) {
          for (int k = 0; k < 16; ++k) {
            // g++ unrolls the loop before it looks for lanes, and finds none, unless told.
#pragma omp simd
            for (int j = 0; j < 16; ++j) sum[i][j] += tile_a[i][k] * tile_b[k][j];
          }
        }
      }
      for (int i = 0; i < 16; ++i) {
        for (int j = 0; j < 16; ++j) c[(top + i) * n + left + j] = sum[i][j];
      }
    }
  }
}

void Reduction(const float* x, float* sums, int blocks) {
#pragma omp parallel for
  for (int block = 0; block < blocks; ++block) {
    float part[256];
    for (int i = 0; i < 256; ++i) part[i] = x[block * 256 + i];
    for (int half = 128; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) part[i] += part[i + half];
    }
    sums[block] = part[0];
  }
}

void Copy(const float* x, float* y, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) y[i] = x[i];
}

/// One kernel at one size: its data stay between the measurements.
struct Case {
  std::vector<float> x, y;
  std::vector<uint8_t> from, to;
  std::vector<int> steps;
  std::vector<unsigned> bins;
  std::string name;
  int size = 0;

  void Prepare(const std::string& wanted, int count) {
    if (name == wanted && size == count) return;
    *this = Case{};
    name = wanted;
    size = count;
    const size_t n = static_cast<size_t>(count);
    if (name == "saxpy") x = Fractions(n), y.assign(n, 0);
    if (name == "copy") x = Fractions(n), y.assign(n, 0);
    if (name == "nbody") x = Fractions(4 * n), y.assign(3 * n, 0);
    if (name == "mandelbrot") steps.assign(n * n, 0);
    if (name == "life") from = Bytes(n * n, 2), to.assign(n * n, 0);
    if (name == "histogram" || name == "binned") from = Bytes(n, 256);
    if (name == "matmul") x = Fractions(2 * n * n), y.assign(n * n, 0);
    if (name == "reduction") x = Fractions(n), y.assign(n / 256, 0);
  }
};

Answer Measure(const std::string& name, int n, int launches) {
  static Case data;
  data.Prepare(name, n);
  auto& [x, y, from, to, steps, bins, _name, _size] = data;
  const auto loop = [&](auto body) { return Milliseconds(launches, body); };
  if (name == "saxpy") {
    y.assign(static_cast<size_t>(n), 0);
    return {loop([&] { Saxpy(0.5f, x.data(), y.data(), n); }), Sum(y)};
  }
  if (name == "copy") return {loop([&] { Copy(x.data(), y.data(), n); }), y[0]};
  if (name == "nbody") return {loop([&] { Nbody(x.data(), y.data(), n); }), Sum(y)};
  if (name == "mandelbrot") return {loop([&] { Mandelbrot(steps.data(), 256, n, n); }), Sum(steps)};
  if (name == "life") return {loop([&] { Life(from.data(), to.data(), n, n); }), Sum(to)};
  if (name == "histogram" || name == "binned") {
    bins.assign(256, 0);
    const bool is_binned = name == "binned";
    const double time =
        loop([&] { is_binned ? Binned(from.data(), bins.data(), n / 16384) : Histogram(from.data(), bins.data(), n); });
    for (unsigned bin = 0; bin < 256; ++bin) bins[bin] *= bin;
    return {time, Sum(bins)};
  }
  if (name == "matmul") {
    const size_t elements = static_cast<size_t>(n) * static_cast<size_t>(n);
    return {loop([&] { Matmul(x.data(), x.data() + elements, y.data(), n); }), Sum(y)};
  }
  if (name == "reduction") return {loop([&] { Reduction(x.data(), y.data(), n / 256); }), Sum(y)};
  std::fprintf(stderr, "There is no kernel %s.\n", name.c_str());
  std::exit(2);
}

}  // namespace

int main() {
  return Converse(Measure);
}

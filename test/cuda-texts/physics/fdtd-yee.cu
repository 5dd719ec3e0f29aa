// Maxwell's equations in two dimensions on Yee's grid: fields in turn, absorbing edges, a source, and several steps of a small grid in one launch.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace fdtd {

enum class Edge : unsigned char { conductor, periodic };

template <typename T>
struct Field2D {
  T *data;
  int nx, ny, pitch;
  __host__ __device__ T &operator()(int i, int j) const { return data[j * pitch + i]; }
  __host__ __device__ bool contains(int i, int j) const { return static_cast<unsigned>(i) < nx && static_cast<unsigned>(j) < ny; }
};

// One cell further, or beyond the edge.
template <Edge edge>
struct Shifted;
template <>
struct Shifted<Edge::conductor> {
  template <typename T>
  static __device__ T read(const Field2D<T> &f, int i, int j) {
    return f.contains(i, j) ? f(i, j) : T(0);
  }
};
template <>
struct Shifted<Edge::periodic> {
  template <typename T>
  static __device__ T read(const Field2D<T> &f, int i, int j) {
    return f(i < 0 ? i + f.nx : i >= f.nx ? i - f.nx : i, j < 0 ? j + f.ny : j >= f.ny ? j - f.ny : j);
  }
};

template <Edge edge, typename T>
__device__ void update_h(Field2D<T> ez, Field2D<T> hx, Field2D<T> hy, T s, int i, int j) {
  using Read = Shifted<edge>;
  hx(i, j) -= s * (Read::read(ez, i, j + 1) - ez(i, j));
  hy(i, j) += s * (Read::read(ez, i + 1, j) - ez(i, j));
}

template <Edge edge, typename T>
__device__ void update_e(Field2D<T> ez, Field2D<T> hx, Field2D<T> hy, T s, T loss, int i, int j) {
  const auto before = [&](const Field2D<T> &f, int di, int dj) { return Shifted<edge>::read(f, i - di, j - dj); };
  const T curl = (hy(i, j) - before(hy, 1, 0)) - (hx(i, j) - before(hx, 0, 1));
  ez(i, j) = (1 - loss) / (1 + loss) * ez(i, j) + s / (1 + loss) * curl;
}

struct Source {
  int i, j;
  float period;
  template <typename T>
  __device__ T operator()(int step) const {
    const T phase = T(step) / static_cast<T>(period);
    return exp(-(phase - 1) * (phase - 1) * 4);
  }
};

#define FOR_EACH_CELL(i, j, f)                            \
  for (int j = threadIdx.y; j < (f).ny; j += blockDim.y) \
    for (int i = threadIdx.x; i < (f).nx; i += blockDim.x)

template <typename T, Edge edge>
__global__ void steps_in_block(Field2D<T> ez, Field2D<T> hx, Field2D<T> hy, const T *__restrict__ losses, T s, Source source, int first, int last) {
  for (int step = first; step < last; ++step) {
    FOR_EACH_CELL(i, j, ez) update_h<edge>(ez, hx, hy, s, i, j);
    __syncthreads();
    FOR_EACH_CELL(i, j, ez) update_e<edge>(ez, hx, hy, s, losses[j * ez.nx + i], i, j);
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) ez(source.i, source.j) += source.operator()<T>(step);
    __syncthreads();
  }
}

// One half of a step on the whole grid, with a tile and its border in shared memory.
template <int TX, int TY>
__global__ void half_step_e(const float *__restrict__ ez, const float *hx, const float *hy, float *__restrict__ next, int nx, int ny, float s) {
  __shared__ float tile_x[TY + 1][TX], tile_y[TY][TX + 1];
  const int i = blockIdx.x * TX + threadIdx.x, j = blockIdx.y * TY + threadIdx.y;
  const bool inside = i < nx && j < ny;
  tile_x[threadIdx.y + 1][threadIdx.x] = inside ? hx[j * nx + i] : 0;
  tile_y[threadIdx.y][threadIdx.x + 1] = inside ? hy[j * nx + i] : 0;
  if (threadIdx.y == 0) tile_x[0][threadIdx.x] = i < nx && j > 0 ? hx[(j - 1) * nx + i] : 0;
  if (threadIdx.x == 0) tile_y[threadIdx.y][0] = j < ny && i > 0 ? hy[j * nx + i - 1] : 0;
  __syncthreads();
  if (!inside) return;
  const float curl = tile_y[threadIdx.y][threadIdx.x + 1] - tile_y[threadIdx.y][threadIdx.x] - (tile_x[threadIdx.y + 1][threadIdx.x] - tile_x[threadIdx.y][threadIdx.x]);
  next[j * nx + i] = __fmaf_rn(s, curl, ez[j * nx + i]);
}

}  // namespace fdtd

int main(int argc, char **argv) {
  using namespace fdtd;
  const int nx = 64, ny = 48;
  double *memory;
  cudaMalloc(&memory, 4 * nx * ny * sizeof(double));
  cudaMemset(memory, 0, 4 * nx * ny * sizeof(double));
  Field2D<double> ez{memory, nx, ny, nx}, hx{memory + nx * ny, nx, ny, nx}, hy{memory + 2 * nx * ny, nx, ny, nx};
  const std::map<std::string, std::function<void()>> modes = {
      {"conductor", [&] { steps_in_block<double, Edge::conductor><<<1, dim3(32, 8)>>>(ez, hx, hy, memory + 3 * nx * ny, 0.5, Source{32, 24, 20}, 0, 100); }},
      {"periodic", [&] { steps_in_block<double, Edge::periodic><<<1, dim3(32, 8)>>>(ez, hx, hy, memory + 3 * nx * ny, 0.5, Source{32, 24, 20}, 0, 100); }},
  };
  const auto mode = modes.find(argc > 1 ? argv[1] : "conductor");
  if (mode == modes.end()) return 1;
  mode->second();
  return cudaDeviceSynchronize();
}

// The search as a loop in C++, which main.ts compiles and runs with --beside cpp:
//   g++ -O3 -march=native -ffast-math -fopenmp loop.cpp -o loop && ./loop VECTORS SIZE BATCH K
// Prints the milliseconds of a query alone, and of a query in a batch.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

using Hits = std::vector<std::pair<float, long>>;

static void search(const std::vector<float>& vectors, long count, long size, const float* queries, long batch, long k,
                   std::vector<Hits>& best) {
  best.assign(batch, {});
#pragma omp parallel
  {
    std::vector<Hits> own(batch);
#pragma omp for schedule(static)
    for (long row = 0; row < count; row++) {
      const float* x = &vectors[row * size];
      for (long q = 0; q < batch; q++) {
        float sum = 0;
        for (long n = 0; n < size; n++) sum += x[n] * queries[q * size + n];
        Hits& hits = own[q];
        if (hits.size() == static_cast<size_t>(k) && sum <= hits.front().first) continue;
        if (hits.size() == static_cast<size_t>(k)) {
          std::pop_heap(hits.begin(), hits.end(), std::greater<>());
          hits.pop_back();
        }
        hits.emplace_back(sum, row);
        std::push_heap(hits.begin(), hits.end(), std::greater<>());
      }
    }
#pragma omp critical
    for (long q = 0; q < batch; q++) best[q].insert(best[q].end(), own[q].begin(), own[q].end());
  }
  for (Hits& hits : best) {
    std::sort(hits.begin(), hits.end(), std::greater<>());
    hits.resize(std::min<size_t>(hits.size(), k));
  }
}

int main(int, char** arguments) {
  const long count = atol(arguments[1]), size = atol(arguments[2]), batch = atol(arguments[3]), k = atol(arguments[4]);
  std::vector<float> vectors(count * size), queries(batch * size);
  unsigned state = 1;
  auto next = [&] { return static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f; };
  for (float& value : vectors) value = next();
  for (float& value : queries) value = next();
  std::vector<Hits> best;
  for (long width : {1L, batch}) {
    double least = 1e300;
    for (int turn = 0; turn < 4; turn++) {
      const auto start = std::chrono::steady_clock::now();
      search(vectors, count, size, queries.data(), width, k, best);
      least = std::min(least, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / width);
    }
    printf("%.3f\n", least);
  }
  return best[0].empty();
}

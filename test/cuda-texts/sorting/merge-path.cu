// Merges two sorted lists of records: diagonals of the merge path divide the work evenly, first among blocks, then among threads.
#include <cuda_runtime.h>
#include <iterator>
#include <utility>
#include <vector>

struct Record {
  int key;
  unsigned origin;
  __host__ __device__ friend bool operator<(const Record &a, const Record &b) { return a.key < b.key; }
};

template <typename T>
struct Less {
  __host__ __device__ constexpr bool operator()(const T &a, const T &b) const { return a < b; }
};
template <typename T>
struct Greater {
  __host__ __device__ constexpr bool operator()(const T &a, const T &b) const { return b < a; }
};

template <class It>
struct Range {
  It first;
  int length;
  __device__ decltype(auto) operator[](int at) const { return *(first + at); }
  __device__ Range sub(int from, int count) const { return {first + from, count}; }
};

// How many of the first `diagonal` results come from `a`. Of equal records, those of `a` are first.
template <class RangeA, class RangeB, class Compare>
__device__ int merge_path(RangeA a, RangeB b, int diagonal, Compare comp) {
  int begin = max(0, diagonal - b.length), end = min(diagonal, a.length);
  while (begin < end) {
    const int mid = (begin + end) >> 1;
    if (!comp(b[diagonal - 1 - mid], a[mid]))
      begin = mid + 1;
    else
      end = mid;
  }
  return begin;
}

template <typename T, int THREADS, int ITEMS, template <class> class Order = Less>
__global__ __launch_bounds__(THREADS) void merge_lists(const T *a, int a_count, const T *b, int b_count, T *out) {
  constexpr int TILE = THREADS * ITEMS;
  __shared__ alignas(alignof(T)) unsigned char storage[TILE * sizeof(T)];
  __shared__ int split[2];
  T *const tile = reinterpret_cast<T *>(storage);
  const Order<T> comp{};

  const int total = a_count + b_count, first = blockIdx.x * TILE, last = min(first + TILE, total);
  if (threadIdx.x < 2) split[threadIdx.x] = merge_path(Range<const T *>{a, a_count}, Range<const T *>{b, b_count}, threadIdx.x ? last : first, comp);
  __syncthreads();
  const int a_first = split[0], a_length = split[1] - a_first, b_first = first - a_first, b_length = last - first - a_length;
  for (int at = threadIdx.x; at < last - first; at += THREADS) tile[at] = at < a_length ? a[a_first + at] : b[b_first + at - a_length];
  __syncthreads();

  const Range<T *> mine{tile, a_length}, other{tile + a_length, b_length};
  const int diagonal = min((int)threadIdx.x * ITEMS, last - first);
  int i = merge_path(mine, other, diagonal, comp), j = diagonal - i;
  T merged[ITEMS];
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const bool from_a = i < a_length && (j >= b_length || !comp(other[j], mine[i]));
    if (from_a)
      merged[item] = mine[i++];
    else if (j < b_length)
      merged[item] = other[j++];
  }
  __syncthreads();
#pragma unroll
  for (int item = 0; item < ITEMS; ++item)
    if (diagonal + item < last - first) tile[diagonal + item] = merged[item];
  __syncthreads();
  for (int at = threadIdx.x; at < last - first; at += THREADS) out[first + at] = tile[at];
}

template <template <class> class Order>
void merge_on_device(const std::vector<Record> &a, const std::vector<Record> &b, std::vector<Record> &out) {
  Record *d;
  const size_t total = a.size() + b.size();
  cudaMalloc(&d, 2 * total * sizeof(Record));
  cudaMemcpy(d, a.data(), a.size() * sizeof(Record), cudaMemcpyHostToDevice);
  cudaMemcpy(d + a.size(), b.data(), b.size() * sizeof(Record), cudaMemcpyHostToDevice);
  merge_lists<Record, 64, 5, Order><<<dim3((total + 319) / 320), dim3(64)>>>(d, int(a.size()), d + a.size(), int(b.size()), d + total);
  out.resize(total);
  cudaMemcpy(out.data(), d + total, total * sizeof(Record), cudaMemcpyDeviceToHost);
  cudaFree(d);
}

int main() {
  std::vector<Record> a, b, out;
  for (unsigned i = 0; i < 1000; i++) a.push_back({int(i) / 3, i});
  for (unsigned i = 0; i < 700; i++) b.push_back(Record{int(i) / 2, 1000 + i});
  merge_on_device<Less>(a, b, out);
  for (auto it = std::begin(out); it + 1 < std::end(out); ++it)
    if (it[1] < it[0]) return 1;
}

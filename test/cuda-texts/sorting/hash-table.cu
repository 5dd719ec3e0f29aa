// Hash tables with open addresses: counts of keys in slots of 64 bits, a table of classes with lookups, and a table of each block in shared memory.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <unordered_map>
#include <vector>

#define GPU_CHECK(x) gpu_check_impl((x), #x, __FILE__, __LINE__)
inline void gpu_check_impl(cudaError_t error, const char *what, const char *file, const int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s:%i %s: %s\n", file, line, what, cudaGetErrorName(error));
  std::exit(1);
}

// Finaliser of MurmurHash3.
struct Murmur {
  __host__ __device__ __forceinline__ uint32_t operator()(uint32_t h) const {
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
  }
};
struct Identity {
  __host__ __device__ uint32_t operator()(uint32_t key) const { return key; }
};

struct alignas(8) Slot {
  uint32_t key, count;
};
static_assert(sizeof(Slot) == 8, "one atomic operation");
constexpr uint32_t EMPTY = 0xffffffff;

__device__ inline unsigned long long as_word(Slot slot) { return static_cast<unsigned long long>(slot.count) << 32 | slot.key; }
__device__ inline Slot as_slot(unsigned long long word) { return Slot{static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)}; }

// The key and its count change together.
template <class Hash>
__global__ void count_keys(const uint32_t *__restrict__ keys, int n, unsigned long long *slots, uint32_t mask, int *distinct) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const uint32_t key = keys[i];
    uint32_t at = Hash{}(key) & mask;
    unsigned long long seen = *(volatile unsigned long long *)(slots + at);
    while (true) {
      const Slot slot = as_slot(seen);
      if (slot.key != EMPTY && slot.key != key) {
        at = (at + 1) & mask;
        seen = *(volatile unsigned long long *)(slots + at);
        continue;
      }
      const bool is_new = slot.key == EMPTY;
      const unsigned long long before = atomicCAS(slots + at, seen, as_word({key, is_new ? 1u : slot.count + 1u}));
      if (before == seen) {
        if (is_new) atomicAdd(distinct, 1);
        break;
      }
      seen = before;
    }
  }
}

template <typename Key, typename Value, class Hash = Murmur>
class TableView {
 public:
  __device__ TableView(const Key *keys, const Value *values, uint32_t capacity) : keys_(keys), values_(values), mask_(capacity - 1) {}
  class Result {
    const Value *value_;

   public:
    __device__ explicit Result(const Value *value = nullptr) : value_(value) {}
    __device__ explicit operator bool() const { return value_ != nullptr; }
    __device__ const Value &operator*() const { return *value_; }
  };
  __device__ Result find(Key key) const {
    for (uint32_t at = hash_(key);; ++at) {
      const Key here = keys_[at & mask_];
      if (here == key) return Result(&values_[at & mask_]);
      if (here == static_cast<Key>(EMPTY)) return Result();
    }
  }
  __device__ Value operator[](Key key) const {
    if (const auto result = find(key)) return *result;
    return Value(-1);
  }

 private:
  const Key *keys_;
  const Value *values_;
  uint32_t mask_;
  Hash hash_;
};

__global__ void look_up(const uint32_t *keys, const float *values, uint32_t capacity, const uint32_t *__restrict__ queries, float *found, int n) {
  const TableView<uint32_t, float> table(keys, values, capacity);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) found[i] = table[queries[i]];
}

// Sums of groups: a table of the block takes most additions, and the sums of the block go to the array of all groups.
template <int CAPACITY>
__global__ void sum_groups(const int2 *__restrict__ rows, int n, int *sums) {
  __shared__ uint32_t keys[CAPACITY];
  __shared__ int partial[CAPACITY];
  for (int at = threadIdx.x; at < CAPACITY; at += blockDim.x) keys[at] = EMPTY, partial[at] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const int2 row = rows[i];
    bool is_done = false;
    uint32_t at = Identity()(row.x * 7);
#pragma unroll 4
    for (int probe = 0; probe < 4; ++probe) {
      const uint32_t place = (at + probe * probe) % CAPACITY, before = atomicCAS(&keys[place], EMPTY, (uint32_t)row.x);
      if (before == EMPTY || before == row.x) {
        atomicAdd(&partial[place], row.y);
        is_done = true;
        break;
      }
    }
    if (!is_done) atomicAdd(sums + row.x, row.y);
  }
  __syncthreads();
  for (int at = threadIdx.x; at < CAPACITY; at += blockDim.x)
    if (keys[at] != EMPTY) atomicAdd(sums + keys[at], partial[at]);
}

int main() {
  std::unordered_map<uint32_t, uint32_t> expected;
  std::vector<uint32_t> keys(100000);
  for (size_t i = 0; i < keys.size(); i++) ++expected[keys[i] = uint32_t(i * i % 1009)];
  const uint32_t capacity = 4096;
  std::vector<unsigned long long> slots(capacity, EMPTY);
  uint32_t *d_keys;
  unsigned long long *d_slots;
  int *d_distinct, distinct = 0;
  GPU_CHECK(cudaMalloc(&d_keys, keys.size() * sizeof(uint32_t)));
  GPU_CHECK(cudaMalloc(&d_slots, capacity * sizeof(*d_slots)));
  GPU_CHECK(cudaMalloc(&d_distinct, sizeof(int)));
  GPU_CHECK(cudaMemset(d_distinct, 0, sizeof(int)));
  GPU_CHECK(cudaMemcpy(d_keys, keys.data(), keys.size() * sizeof(uint32_t), cudaMemcpyHostToDevice));
  GPU_CHECK(cudaMemcpy(d_slots, slots.data(), capacity * sizeof(*d_slots), cudaMemcpyHostToDevice));
  count_keys<Murmur><<<64, 256>>>(d_keys, (int)keys.size(), d_slots, capacity - 1, d_distinct);
  GPU_CHECK(cudaMemcpy(&distinct, d_distinct, sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d of %zu keys\n", distinct, expected.size());
}

// Batcher's network of odd and even merges: lists that fit in dynamic shared memory in one launch, and single steps of longer ones.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

namespace cg = cooperative_groups;
typedef unsigned int word;

#define IS_POWER_OF_2(n) (((n) & ((n)-1)) == 0)
#define SWAP(type, a, b) \
  {                      \
    type t = a;          \
    a = b;               \
    b = t;               \
  }

typedef struct __align__(8) {
  word key, value;
} item_t;

struct direction {
  word is_descending;
  __device__ bool operator()(const item_t &a, const item_t &b) const { return is_descending ? a.key < b.key : a.key > b.key; }
};

// Whether the wire is the first of a comparator whose second one is `reach` further, while lists of `half` items are merged.
__device__ __forceinline__ bool is_first(word wire, word half, word reach) {
  const word skipped = reach % half;
  if (wire < skipped || ((wire - skipped) / reach) % 2 != 0) return false;
  return wire / (2 * half) == (wire + reach) / (2 * half);
}

template <typename Compare>
__device__ void compare_exchange(item_t *__restrict__ a, item_t *b, Compare is_wrong) {
  if (is_wrong(*a, *b)) SWAP(item_t, *a, *b);
}

template <class Group, typename Compare>
__device__ __noinline__ void network(Group group, item_t *items, word n, Compare compare) {
  const word wire = group.thread_rank();
  for (word half = 1; half < n; half <<= 1) {
    word reach = half;
    do {
      cg::sync(group);
      if (is_first(wire, half, reach)) compare_exchange(items + wire, items + wire + reach, compare);
    } while (reach >>= 1);
  }
  group.sync();
}

__global__ void sort_lists(word *keys, word *values, word n, direction compare) {
  extern __shared__ item_t items[];
  cg::thread_block block = cg::this_thread_block();
  assert(IS_POWER_OF_2(n) && blockDim.x == n);
  keys += blockIdx.x * n, values += blockIdx.x * n;
  items[threadIdx.x] = {keys[threadIdx.x], values[threadIdx.x]};
  network(block, items, n, compare);
  keys[threadIdx.x] = items[threadIdx.x].key;
  values[threadIdx.x] = items[threadIdx.x].value;
}

__global__ void merge_step(item_t *items, word half, word reach, direction compare) {
  const word wire = blockIdx.x * blockDim.x + threadIdx.x;
  if (is_first(wire, half, reach)) compare_exchange(&items[wire], &items[wire + reach], compare);
}

extern "C" void sort_on_device(item_t *items, word n, word descending) {
  for (word half = 1; half < n; half *= 2)
    for (word reach = half; reach; reach /= 2) merge_step<<<n / 256, 256>>>(items, half, reach, direction{descending});
}

int main(int argc, char *argv[]) {
  const word n = 1u << (argc > 1 ? atoi(argv[1]) : 14);
  item_t *items = (item_t *)malloc(n * sizeof(item_t)), *d_items;
  srand((unsigned)time(NULL));
  for (word i = 0; i < n; i++) items[i].key = rand(), items[i].value = i;
  cudaMalloc((void **)&d_items, n * sizeof(item_t));
  cudaMemcpy(d_items, items, n * sizeof(item_t), cudaMemcpyHostToDevice);
  clock_t start = clock();
  sort_on_device(d_items, n, 0);
  cudaDeviceSynchronize();
  printf("%.3f ms\n", (clock() - start) * 1000.0 / CLOCKS_PER_SEC);
  cudaMemcpy(items, d_items, n * sizeof(item_t), cudaMemcpyDeviceToHost);
  for (word i = 1; i < n; i++)
    if (items[i].key < items[i - 1].key) return EXIT_FAILURE;
  free(items);
  cudaFree(d_items);
  return EXIT_SUCCESS;
}

// Memory from the device's heap: lists that outlive the launch that made them, objects, and a heap without room.
#include <cstdio>
#include <cstdlib>
#include <new>

struct Node {
  int value;
  Node *next;
};
__device__ Node *lists[64];
__device__ int destroyed;

struct Counted {
  int value;
  __device__ Counted(int v = 1) : value(v) {}
  __device__ ~Counted() { atomicAdd(&destroyed, value); }
};

__global__ void make_lists(const int *x, int per_thread) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  lists[i] = NULL;
  for (int k = 0; k < per_thread; k++) {
    Node *node = (Node *)malloc(sizeof(Node));
    if (node == NULL) {
      printf("no room\n");
      return;
    }
    node->value = x[i] + k;
    node->next = lists[i];
    lists[i] = node;
  }
}

__global__ void free_lists(int *sums) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = 0;
  for (Node *node = lists[i]; node != nullptr;) {
    Node *next = node->next;
    sum = sum * 3 + node->value;
    free(node);
    node = next;
  }
  lists[i] = nullptr;
  sums[i] = sum;
}

__global__ void objects(int *y, int *counts) {
  int i = threadIdx.x;
  Counted *one = new Counted(5);
  Counted *many = new Counted[3];
  int *numbers = new int[i + 1];
  for (int k = 0; k <= i; k++) numbers[k] = k;
  __syncthreads();
  y[i] = one->value + many[2].value + numbers[i];
  delete one;
  delete[] many;
  delete[] numbers;
  __syncthreads();
  if (i == 0) counts[0] = destroyed;
}

// More than the heap has: NULL, and again room after the memory is freed.
__global__ void exhaust(int *y) {
  y[0] = malloc((size_t)1 << 40) == NULL;
  int blocks = 0;
  char *last = nullptr;
  for (char *block; blocks < 4096 && (block = (char *)malloc(65536)) != nullptr; blocks++) {
    *(char **)block = last;
    last = block;
  }
  y[1] = blocks > 16 && blocks < 4096;
  while (last != nullptr) {
    char *before = *(char **)last;
    free(last);
    last = before;
  }
  void *again = malloc(65536);
  y[2] = again != nullptr;
  free(again);
  free(NULL);
}

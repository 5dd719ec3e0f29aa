// Reductions by one kernel template: sum, minimum, maximum and index of the maximum, of float, int and double.
//
//   nvcc -arch=sm_90 reduce.cu -o reduce && ./reduce
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                       \
  do {                                                                                    \
    const cudaError_t error = (call);                                                     \
    if (error != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      std::exit(EXIT_FAILURE);                                                            \
    }                                                                                     \
  } while (0)

template <typename T>
struct Indexed {
  T value;
  int index;
};

// An operation defines the type of its values, the value that a thread starts with, the value of an element, and how to
// combine two values.
template <typename T>
struct Sum {
  using Value = T;
  __host__ __device__ static T start(const T*) { return T(0); }
  __host__ __device__ static T load(const T* x, int i) { return x[i]; }
  __host__ __device__ static T join(T a, T b) { return a + b; }
};

template <typename T>
struct Min {
  using Value = T;
  __host__ __device__ static T start(const T* x) { return x[0]; }
  __host__ __device__ static T load(const T* x, int i) { return x[i]; }
  __host__ __device__ static T join(T a, T b) { return b < a ? b : a; }
};

template <typename T>
struct Max {
  using Value = T;
  __host__ __device__ static T start(const T* x) { return x[0]; }
  __host__ __device__ static T load(const T* x, int i) { return x[i]; }
  __host__ __device__ static T join(T a, T b) { return a < b ? b : a; }
};

// Of equal elements, the first one.
template <typename T>
struct ArgMax {
  using Value = Indexed<T>;
  __host__ __device__ static Value start(const T* x) { return {x[0], 0}; }
  __host__ __device__ static Value load(const T* x, int i) { return {x[i], i}; }
  __host__ __device__ static Value join(Value a, Value b) {
    const bool is_b = a.value < b.value || (a.value == b.value && b.index < a.index);
    return is_b ? b : a;
  }
};

template <typename T>
__device__ T shuffle_down(T value, int offset) {
  return __shfl_down_sync(0xffffffff, value, offset);
}

template <typename T>
__device__ Indexed<T> shuffle_down(Indexed<T> value, int offset) {
  return {shuffle_down(value.value, offset), shuffle_down(value.index, offset)};
}

// Combines the values of a block by warp shuffles. Thread 0 gets the result.
template <typename Op, int BLOCK>
__device__ typename Op::Value join_block(typename Op::Value value) {
  __shared__ typename Op::Value warps[BLOCK / 32];
  for (int offset = 16; offset > 0; offset /= 2) value = Op::join(value, shuffle_down(value, offset));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < BLOCK / 32; warp++) value = Op::join(value, warps[warp]);
  }
  return value;
}

// Each block combines its share of x. The block that finishes last combines the values of all blocks. Its atomicInc sets
// the counter back to 0.
template <typename T, template <typename> class Operation, int BLOCK>
__global__ void reduce(const T* x, int n, typename Operation<T>::Value* partials, unsigned* finished,
                       typename Operation<T>::Value* result) {
  using Op = Operation<T>;
  typename Op::Value value = Op::start(x);
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) value = Op::join(value, Op::load(x, i));
  value = join_block<Op, BLOCK>(value);

  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = value;
    __threadfence();
    is_last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last) return;

  value = Op::start(x);
  for (int i = threadIdx.x; i < gridDim.x; i += BLOCK) value = Op::join(value, partials[i]);
  value = join_block<Op, BLOCK>(value);
  if (threadIdx.x == 0) *result = value;
}

static bool same(double a, double b) {
  return a == b;
}

template <typename T>
static bool same(Indexed<T> a, Indexed<T> b) {
  return a.value == b.value && a.index == b.index;
}

// Eighths between -100 and 100: every sum of them is exact, so the order of additions does not matter. For T = int,
// they are truncated.
template <typename T>
static std::vector<T> numbers(int n) {
  std::vector<T> x(n);
  unsigned state = 1;
  for (T& value : x) {
    state = state * 1664525u + 1013904223u;
    value = T(int((state >> 8) % 1601u) - 800) / 8;
  }
  return x;
}

template <typename T, template <typename> class Operation, int BLOCK>
static bool run(const char* name) {
  using Op = Operation<T>;
  const int n = 1 << 18;
  const int blocks = 64;
  const std::vector<T> x = numbers<T>(n);
  T* d_x;
  typename Op::Value *d_partials, *d_result;
  unsigned* d_finished;
  CHECK(cudaMalloc(&d_x, n * sizeof(T)));
  CHECK(cudaMalloc(&d_partials, blocks * sizeof(typename Op::Value)));
  CHECK(cudaMalloc(&d_result, sizeof(typename Op::Value)));
  CHECK(cudaMalloc(&d_finished, sizeof(unsigned)));
  CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_finished, 0, sizeof(unsigned)));

  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  reduce<T, Operation, BLOCK><<<blocks, BLOCK>>>(d_x, n, d_partials, d_finished, d_result);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(stop));
  typename Op::Value result;
  CHECK(cudaMemcpy(&result, d_result, sizeof(result), cudaMemcpyDeviceToHost));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));

  typename Op::Value expected = Op::start(x.data());
  for (int i = 0; i < n; i++) expected = Op::join(expected, Op::load(x.data(), i));
  const bool is_right = same(result, expected);
  std::printf("%s: %.3f ms, %s\n", name, ms, is_right ? "as on the host" : "WRONG");

  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_partials));
  CHECK(cudaFree(d_result));
  CHECK(cudaFree(d_finished));
  return is_right;
}

#define RUN(...) run<__VA_ARGS__>("reduce<" #__VA_ARGS__ ">")

int main() {
  bool is_right = RUN(float, Sum, 256);
  is_right &= RUN(float, Min, 256);
  is_right &= RUN(float, Max, 256);
  is_right &= RUN(float, ArgMax, 256);
  is_right &= RUN(int, Sum, 128);
  is_right &= RUN(int, ArgMax, 128);
  is_right &= RUN(double, Sum, 512);
  is_right &= RUN(double, Min, 512);
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}

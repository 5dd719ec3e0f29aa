// Device functions and functors that wait, given to other functions: as template arguments, as arguments, by pointers, as lambdas.
#include <cstdint>

#define LANES 32
#define FULL 0xffffffffu

__device__ float warpSum(float v) {
  for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(FULL, v, by);
  return v;
}
__device__ float warpMost(float v) {
  for (int by = 16; by > 0; by /= 2) v = fmaxf(v, __shfl_xor_sync(FULL, v, by));
  return v;
}
// Waits for no other thread.
__device__ float own(float v) { return v; }

using warp_function = float (*)(float);
typedef float (*other_function)(float);

template <warp_function inWarp>
__device__ inline float inBlock(float v, bool waits_last, float outside) {
  __shared__ float parts[LANES];
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  float of_warp = inWarp(v);
  if (lane == 0) parts[warp] = of_warp;
  __syncthreads();
  of_warp = lane < blockDim.x / LANES ? parts[lane] : outside;
  float of_block = inWarp(of_warp);
  if (waits_last) __syncthreads();
  return of_block;
}
template <warp_function inWarp>
__device__ inline float inBlock(float v) {
  return inBlock<inWarp>(v, false, 0.0f);
}

// The same by a pointer without a name, and by one of another name.
template <float (*inWarp)(float), int LEAST>
__device__ float atLeast(float v) {
  float found = inWarp(v);
  return found < LEAST ? LEAST : found;
}
template <other_function inWarp>
__device__ float twice(float v) {
  return 2.0f * inWarp(v);
}

// As an argument whose type is a template's, and as a pointer.
template <typename F>
__device__ float withFunction(float v, F op) {
  return op(v) + 1.0f;
}
__device__ float withPointer(float v, float (*op)(float)) { return op(v) + 2.0f; }
__device__ float withNamedPointer(warp_function op, float v) { return op(v) + 3.0f; }

extern "C" __global__ void by_name(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  float most = inBlock<warpMost>(v, false, -INFINITY);
  float sum = inBlock<warpSum>(v);
  float ones = atLeast<warpMost, 3>(v) + twice<warpSum>(v) + twice<own>(v);
  y[i] = most + 10.0f * sum + 100.0f * ones + withFunction(v, warpSum) + withFunction(v, own) + withPointer(v, warpMost) +
         withPointer(v, own) + withNamedPointer(warpSum, v);
}

// Functors.

struct WarpSum {
  __device__ __forceinline__ float operator()(float v) const {
    for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(FULL, v, by);
    return __shfl_sync(FULL, v, 0);
  }
};
template <int N>
struct Scaled {
  float by;
  __device__ float operator()(float v) const { return v * by * N; }
};
template <typename T>
struct WarpMost {
  __device__ T operator()(T v) const {
#pragma unroll
    for (int by = 16; by > 0; by /= 2) {
      T other = __shfl_xor_sync(FULL, v, by);
      v = other > v ? other : v;
    }
    return v;
  }
  __device__ static T apply(T v) { return WarpMost<T>()(v); }
};
template <template <typename> class F>
__device__ int ofTemplate(int v) {
  F<int> function;
  return function(v);
}
template <class F>
__device__ float madeHere(float v) {
  return F()(v) + F{}(v);
}
template <class F>
struct Holder {
  F function;
  __device__ float call(float v) const { return function(v); }
  __device__ float call_this(float v) { return this->function(v); }
};
template <typename F, typename... Rest>
__device__ float chained(float v, F first, Rest... rest) {
  v = first(v);
  if constexpr (sizeof...(rest) > 0)
    return chained(v, rest...);
  else
    return v;
}

extern "C" __global__ void by_functor(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  WarpSum sum;
  Scaled<3> scaled{0.5f};
  Holder<WarpSum> holder;
  float r = sum(v);
  r += 10.0f * WarpSum()(v) + 100.0f * WarpSum{}(scaled(v));
  r += withFunction(v, WarpSum()) + withFunction(v, scaled) + withFunction(v, WarpMost<float>());
  r += (float)ofTemplate<WarpMost>((int)v) + madeHere<WarpSum>(v) + WarpMost<float>::apply(v);
  r += holder.call(v) + holder.call_this(v) + holder.function(v);
  y[i] = r + chained(v, sum, scaled, WarpMost<float>());
}

// Lambdas, also without a return type.

template <typename Body>
__device__ void inSteps(int n, Body body) {
  for (int step = 0; step < n; step++) {
    body(step);
    __syncthreads();
  }
}

extern "C" __global__ void by_lambda(const float* x, float* y) {
  __shared__ float shared[128];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  shared[t] = x[i];
  __syncthreads();
  auto rotated = [&](int by) {
    float v = shared[(t + by) % blockDim.x];
    __syncthreads();
    return v;
  };
  auto summed = [=](float v) {
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(FULL, v, by);
    return v;
  };
  auto shifted = [](auto v, int by) { return __shfl_up_sync(FULL, v, by); };
  inSteps(3, [&](int step) {
    float v = rotated(step);
    __syncthreads();
    shared[t] = v + 1.0f;
  });
  float r = summed(rotated(0));
  r += withFunction(x[i], summed) + shifted(x[i], 1) + (float)shifted(t, 2);
  y[i] = r + shared[t];
}

// Functions whose return type is deduced.
__device__ auto neighbour(float v) { return __shfl_xor_sync(FULL, v, 1); }
template <typename T>
__device__ auto across(T v, int by) {
  auto other = __shfl_xor_sync(FULL, v, by);
  return other - v;
}
extern "C" __global__ void deduced(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = neighbour(x[i]) + across(x[i], 2) + across((double)x[i], 4);
}

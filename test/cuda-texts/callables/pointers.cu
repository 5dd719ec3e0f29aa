// Pointers to functions that wait for the other threads of the warp, and to some that do not: in tables, members, variables, parameters and
// results.
typedef float (*reduction)(float value);
using same = reduction;
typedef float plain(float value);

__device__ float sum(float value);

__device__ float largest(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, step));
  return value;
}

__device__ __forceinline__ float twice(float value) { return 2 * value; }

__device__ reduction table[3] = {sum, &largest, twice};
__constant__ float (*pairs[2][2])(float) = {{sum, twice}, {largest, twice}};

struct Step {
  float (*run)(float);
  float factor;
  __device__ float operator()(float value) const { return run(value) * factor; }
};
__device__ Step steps[] = {{sum, 1.f}, {largest, 2.f}};

struct Scaled {
  float factor;
  __device__ float sum_of(float value) { return factor * sum(value); }
  __device__ float twice_of(float value) { return factor * twice(value); }
};

__device__ reduction pick(int n) {
  switch (n) {
    case 0: return sum;
    case 1: return largest;
    default: return nullptr;
  }
}
__device__ float apply(same f, float value, float (*then)(float) = nullptr) {
  const float result = (*f)(value);
  return then != nullptr ? then(result) : result;
}
__device__ float given(float f(float), float value) { return f(value); }

extern "C" __global__ void pointed(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  float r = 0;
  for (int n = 0; n < 3; n++) r += table[n](v);                             // sum + largest + 2v
  reduction* at = table;
  r += (*at[blockIdx.x])(v) + pairs[blockIdx.x][0](v);                      // twice: sum, or largest
  const Step& step = steps[blockIdx.x];
  r += step.run(v);                                                         // sum, or largest
  r += step(v);                                                             // sum, or 2 largest
  float (*chosen)(float) = blockIdx.x == 0 ? largest : sum;
  r += chosen(v);                                                           // largest, or sum
  chosen = &twice;
  r += (*chosen)(v);                                                        // 2v
  auto deduced = blockIdx.x == 0 ? twice : sum;
  r += deduced(v);                                                          // 2v, or sum
  plain* same_type = largest;
  r += same_type(v);                                                        // largest
  r += pick(0)(v);                                                          // sum
  if (reduction none = pick(2)) r += none(v);
  r += apply(table[1], v, twice) + apply(blockIdx.x == 0 ? twice : sum, v); // 2 largest, and 2v or sum
  r += given(sum, v);                                                       // sum
  Scaled scaled{3.f};
  float (Scaled::*member)(float) = blockIdx.x == 0 ? &Scaled::twice_of : &Scaled::sum_of;
  r += (scaled.*member)(v);                                                 // 6v, or 3 sums
  reduction lambda = [](float value) -> float { return largest(value) + 1; };
  r += lambda(v);                                                           // largest + 1
  y[i] = r;
}

__device__ float sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
  return value;
}

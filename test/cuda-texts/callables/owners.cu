// Closures and aggregates that hold objects with destructors, and arrays, given to functions that wait.
#define FULL 0xffffffffu

// Counts its objects in `alive`, and the objects that another address destroys in `strange`.
struct Owner {
  float by;
  int *alive;
  const Owner *self;
  __device__ Owner(float by, int *alive) : by(by), alive(alive), self(this) { atomicAdd(alive, 1); }
  __device__ Owner(const Owner &from) : by(from.by), alive(from.alive), self(this) { atomicAdd(alive, 1); }
  __device__ ~Owner() {
    atomicAdd(alive, -1);
    if (self != this) atomicAdd(alive, 1000);
  }
};
struct Scale {
  Owner owner;
  float extra;
  __device__ float operator()(float v) const { return v * owner.by + extra; }
};

__device__ float sum(float v) {
  for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(FULL, v, by);
  return v;
}
template <class F>
__device__ float by_value(F f, float v) {
  return sum(f(v));
}
template <class F>
__device__ float by_reference(const F &f, float v) {
  return sum(f(v)) + f(v);
}
__device__ Owner summed(float v, int *alive) { return Owner(sum(v), alive); }

__global__ void closures(const float *x, float *y, int *alive) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  {
    Owner owner(2.0f, alive);
    float result = by_value([=](float a) { return a * owner.by; }, v);
    result += by_reference([owner](float a) { return a - owner.by; }, v);
    result += by_value([made = Owner(3.0f, alive)](float a) -> float { return sum(made.by * a); }, v);
    result += [=](float a) { return sum(a + owner.by); }(v);
    result += v > 100.0f ? 7.0f : by_value([=](float a) { return 2.0f * owner.by * a; }, v);
    y[i] = result;
  }
}
__global__ void aggregates(const float *x, float *y, int *alive) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  {
    Owner owner(2.0f, alive);
    float result = by_value(Scale{owner, 1.0f}, v) + by_reference(Scale{Owner(3.0f, alive), 0.0f}, v);
    result += summed(v, alive).by;
    y[i] = result;
  }
}
__global__ void arrays(const float *x, float *y, int *alive) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  const float weights[3] = {1.0f, 2.0f, v};
  y[i] = by_value([=](float a) { return weights[0] * a + weights[1] + weights[2]; }, v) + by_reference([weights](float a) { return a * weights[1]; }, v);
}

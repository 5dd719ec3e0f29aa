// Bodies that attract each other, in float and double: traits of vectors, a class for dynamic shared memory of any type, and several threads a body.
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
namespace cg = cooperative_groups;

template <typename T>
struct vec3 {};
template <>
struct vec3<float> {
  typedef float3 Type;
};
template <>
struct vec3<double> {
  typedef double3 Type;
};
template <typename T>
struct vec4;
template <>
struct vec4<float> {
  typedef float4 Type;
};
template <>
struct vec4<double> {
#if CUDART_VERSION >= 13000
  typedef double4_16a Type;
#else
  typedef double4 Type;
#endif
};

__constant__ float softening_squared = 0.01f;
__constant__ double softening_squared_fp64 = 0.01;

template <typename T>
__device__ T softening();
template <>
__device__ float softening<float>() {
  return softening_squared;
}
template <>
__device__ double softening<double>() {
  return softening_squared_fp64;
}
template <typename T>
__device__ T inverse_root(T x) {
  return rsqrt(x);
}
template <>
__device__ float inverse_root<float>(float x) {
  return rsqrtf(x);
}

// Templates may not declare dynamic shared memory of different types under one name.
template <class T>
struct DynamicShared {
  __device__ operator T *() {
    extern __shared__ int dynamic_memory[];
    return reinterpret_cast<T *>(dynamic_memory);
  }
  __device__ operator const T *() const {
    extern __shared__ int dynamic_memory[];
    return (T *)dynamic_memory;
  }
};

template <typename T>
__device__ typename vec3<T>::Type attract(typename vec3<T>::Type sum, typename vec4<T>::Type me, typename vec4<T>::Type other) {
  const T x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
  const T inverse = inverse_root<T>(x * x + y * y + z * z + softening<T>()), weight = other.w * inverse * inverse * inverse;
  sum.x += x * weight, sum.y += y * weight, sum.z += z * weight;
  return sum;
}

template <typename T>
__device__ typename vec3<T>::Type acceleration(typename vec4<T>::Type me, const typename vec4<T>::Type *bodies, int tiles, cg::thread_block block) {
  typename vec4<T>::Type *tile = DynamicShared<typename vec4<T>::Type>();
  typename vec3<T>::Type sum = {0, 0, 0};
  for (int number = 0; number < tiles; number++) {
    tile[block.thread_rank()] = bodies[number * block.size() + block.thread_rank()];
    cg::sync(block);
    // Row y of the block takes every blockDim.y-th body of the tile.
#pragma unroll 8
    for (unsigned int at = threadIdx.y; at < block.size(); at += blockDim.y) sum = attract<T>(sum, me, tile[at]);
    cg::sync(block);
  }
  return sum;
}

template <typename T>
__global__ void integrate_bodies(typename vec4<T>::Type *__restrict__ new_pos, const typename vec4<T>::Type *__restrict__ old_pos, typename vec4<T>::Type *vel,
                                 unsigned int bodies, float dt, float damping, int tiles) {
  cg::thread_block block = cg::this_thread_block();
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  const bool is_body = index < bodies;
  typename vec4<T>::Type position = old_pos[is_body ? index : 0];
  typename vec3<T>::Type acc = acceleration<T>(position, old_pos, tiles, block);
  if (blockDim.y > 1) {
    typename vec3<T>::Type *parts = DynamicShared<typename vec3<T>::Type>();
    parts[threadIdx.y * blockDim.x + threadIdx.x] = acc;
    block.sync();
    if (threadIdx.y == 0)
      for (int row = 1; row < blockDim.y; row++) {
        const typename vec3<T>::Type &part = parts[row * blockDim.x + threadIdx.x];
        acc.x += part.x, acc.y += part.y, acc.z += part.z;
      }
  }
  if (!is_body || threadIdx.y != 0) return;
  typename vec4<T>::Type velocity = vel[index];
  velocity.x = (velocity.x + acc.x * dt) * damping, position.x += velocity.x * dt;
  velocity.y = (velocity.y + acc.y * dt) * damping, position.y += velocity.y * dt;
  velocity.z = (velocity.z + acc.z * dt) * damping, position.z += velocity.z * dt;
  new_pos[index] = position;
  vel[index] = velocity;
}

template <typename T>
class BodySystem {
 public:
  BodySystem(unsigned int count, unsigned int p, unsigned int q) : count_(count), p_(p), q_(q) {
    for (auto &array : arrays_) cudaMalloc((void **)&array, count * sizeof(*array)), cudaMemset(array, 0, count * sizeof(*array));
  }
  ~BodySystem() {
    for (auto *array : arrays_) cudaFree(array);
  }
  void update(float dt) {
    const dim3 threads(p_, q_, 1);
    const size_t bytes = p_ * q_ * sizeof(typename vec4<T>::Type);
    integrate_bodies<T><<<(count_ + p_ - 1) / p_, threads, bytes>>>(arrays_[1 - current_], arrays_[current_], arrays_[2], count_, dt, 1.0f, count_ / (p_ * q_));
    current_ = 1 - current_;
  }

 private:
  unsigned int count_, p_, q_;
  int current_ = 0;
  typename vec4<T>::Type *arrays_[3] = {};
};

int main(int argc, char **argv) {
  BodySystem<float> single(4096, 64, 4);
  BodySystem<double> twice(4096, 256, 1);
  for (int step = 0; step < 10; step++) single.update(0.01f), twice.update(0.01f);
  cudaError_t error = cudaDeviceSynchronize();
  if (error) fprintf(stderr, "%s\n", cudaGetErrorString(error));
  exit(error ? EXIT_FAILURE : EXIT_SUCCESS);
}

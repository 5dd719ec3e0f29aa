// Dropout with a generator of its own: a class with a counter, a key and an output that it hands out word by word.
#include <cuda.h>
#include <cuda_runtime.h>
#include <iostream>
#include <mutex>

class Philox {
 public:
  __device__ inline Philox(unsigned long long seed, unsigned long long subsequence, unsigned long long offset) {
    key.x = (unsigned int)seed;
    key.y = (unsigned int)(seed >> 32);
    counter = make_uint4(0, 0, 0, 0);
    counter.z = (unsigned int)(subsequence);
    counter.w = (unsigned int)(subsequence >> 32);
    STATE = 0;
    incr_n(offset / 4);
  }
  __device__ inline uint4 operator()() {
    if (STATE == 0) {
      uint4 counter_ = counter;
      uint2 key_ = key;
      for (int i = 0; i < 9; i++) {
        counter_ = single_round(counter_, key_);
        key_.x += (kPhilox10A);
        key_.y += (kPhilox10B);
      }
      output = single_round(counter_, key_);
      incr();
    }
    return output;
  }

 private:
  uint4 counter;
  uint4 output;
  uint2 key;
  unsigned int STATE;
  __device__ inline void incr_n(unsigned long long n) {
    unsigned int nlo = (unsigned int)(n);
    unsigned int nhi = (unsigned int)(n >> 32);
    counter.x += nlo;
    if (counter.x < nlo) nhi++;
    counter.y += nhi;
    if (nhi <= counter.y) return;
    if (++counter.z) return;
    ++counter.w;
  }
  __device__ inline void incr() {
    if (++counter.x) return;
    if (++counter.y) return;
    if (++counter.z) return;
    ++counter.w;
  }
  __device__ unsigned int mulhilo32(unsigned int a, unsigned int b, unsigned int *result_high) {
    *result_high = __umulhi(a, b);
    return a * b;
  }
  __device__ inline uint4 single_round(uint4 ctr, uint2 key) {
    unsigned int hi0, hi1;
    unsigned int lo0 = mulhilo32(kPhiloxSA, ctr.x, &hi0);
    unsigned int lo1 = mulhilo32(kPhiloxSB, ctr.z, &hi1);
    uint4 ret = {hi1 ^ ctr.y ^ key.x, lo1, hi0 ^ ctr.w ^ key.y, lo0};
    return ret;
  }
  static const unsigned long kPhilox10A = 0x9E3779B9;
  static const unsigned long kPhilox10B = 0xBB67AE85;
  static const unsigned long kPhiloxSA = 0xD2511F53;
  static const unsigned long kPhiloxSB = 0xCD9E8D57;
};

__device__ __inline__ float4 uniform4(uint4 x) {
  constexpr float M = 2.3283064365386963e-10f;
  return make_float4(x.x * M, x.y * M, x.z * M, x.w * M);
}

__global__ void fused_dropout(const float *a, float *b, unsigned char *c, unsigned int totalElements, float p, std::pair<unsigned long long, unsigned long long> seeds) {
  const float pinv = 1.0f / p;
  const unsigned int idx = blockIdx.x * blockDim.x + threadIdx.x;
  Philox philox(seeds.first, idx, seeds.second);
  for (unsigned int i = 4 * idx; i < totalElements; i += 4 * gridDim.x * blockDim.x) {
    float4 rand = uniform4(philox());
    rand.x = rand.x < p;
    rand.y = rand.y < p;
    rand.z = rand.z < p;
    rand.w = rand.w < p;
    for (unsigned int ii = 0; ii < 4 && i + ii < totalElements; ii++) {
      b[i + ii] = a[i + ii] * (&rand.x)[ii] * pinv;
      c[i + ii] = (unsigned char)(&rand.x)[ii];
    }
  }
}

struct Generator {
  std::mutex mutex;
  unsigned long long seed = 42, offset = 0;
  std::pair<unsigned long long, unsigned long long> next(unsigned long long by) {
    std::lock_guard<std::mutex> lock(mutex);
    auto made = std::make_pair(seed, offset);
    offset += by;
    return made;
  }
};

int main() {
  Generator generator;
  const unsigned n = 1 << 20;
  float *a, *b;
  unsigned char *c;
  cudaMallocManaged(&a, n * sizeof(float));
  cudaMallocManaged(&b, n * sizeof(float));
  cudaMallocManaged(&c, n);
  fused_dropout<<<1024, 256>>>(a, b, c, n, 0.9f, generator.next(4));
  cudaDeviceSynchronize();
  std::cout << b[0] << std::endl;
}

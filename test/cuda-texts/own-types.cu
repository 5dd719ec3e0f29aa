typedef unsigned char uint8_t;
typedef unsigned long long uint64_t;
typedef long long int64_t;
typedef unsigned int uint;
#define uchar unsigned char

extern "C" __global__ void own_types(const uint8_t *x, uint64_t *y, uint n) {
  uint i = threadIdx.x;
  if (i < n) y[i] = (uint64_t)x[i] * 0x100000001ull + (uchar)(300 + i) + (int64_t)-1;
}

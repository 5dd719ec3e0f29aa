// Colours to planes of brightness and halved chroma: operators of vectors, a matrix, and instructions for bytes in words.
#include <cuda_runtime.h>
#include <math.h>
#ifndef __CUDACC_RTC__
#include <exception>
#endif

typedef unsigned int uint;
typedef unsigned char uchar;

#define DIVUP(x, y) (((x) + (y)-1) / (y))

////////////////////////////////////////////////////////////////////////////////
// constructors and operators
////////////////////////////////////////////////////////////////////////////////
inline __host__ __device__ float3 make_float3(float s) { return make_float3(s, s, s); }
inline __host__ __device__ float3 make_float3(uchar4 a) { return make_float3(float(a.x), float(a.y), float(a.z)); }
inline __host__ __device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
inline __host__ __device__ void operator+=(float3 &a, float3 b) {
  a.x += b.x;
  a.y += b.y;
  a.z += b.z;
}
inline __host__ __device__ float3 operator*(float3 a, float b) { return make_float3(a.x * b, a.y * b, a.z * b); }
inline __host__ __device__ float3 operator*(float b, float3 a) { return a * b; }
inline __host__ __device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline __device__ __host__ float clamp(float f, float a, float b) { return fmaxf(a, fminf(f, b)); }
inline __device__ __host__ float3 clamp(float3 v, float a, float b) { return make_float3(clamp(v.x, a, b), clamp(v.y, a, b), clamp(v.z, a, b)); }

typedef struct { float3 m[3]; } float3x3;
__device__ __constant__ const float3x3 bt601 = {{{0.25f, 0.5f, 0.125f}, {-0.125f, -0.25f, 0.375f}, {0.4375f, -0.375f, -0.0625f}}};

inline __device__ float3 mul(const float3x3 &M, const float3 &v) {
  float3 r;
  r.x = dot(v, M.m[0]);
  r.y = dot(v, M.m[1]);
  r.z = dot(v, M.m[2]);
  return r;
}

__device__ uint rgbaFloatToInt(float4 rgba) {
  rgba.x = __saturatef(rgba.x);
  rgba.y = __saturatef(rgba.y);
  rgba.z = __saturatef(rgba.z);
  rgba.w = __saturatef(rgba.w);
  return (uint(rgba.w * 255) << 24) | (uint(rgba.z * 255) << 16) | (uint(rgba.y * 255) << 8) | uint(rgba.x * 255);
}
__device__ inline uchar4 as_uchar4(uint word) { return *reinterpret_cast<uchar4 *>(&word); }

// Each thread converts 2 x 2 pixels.
__global__ void rgba_to_nv12(const uint *__restrict__ rgba, uchar *nv12, uint *thumbnail, int width, int height) {
  const int x = 2 * (blockIdx.x * blockDim.x + threadIdx.x), y = 2 * (blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  uchar *luma = nv12 + y * width + x, *chroma = nv12 + width * height + (y / 2) * width + x;
  float3 sum = make_float3(0.0f);
  uint mean[2];
  for (int row = 0; row < 2; ++row) {
    const uint2 pair = *(const uint2 *)&rgba[(y + row) * width + x];
    mean[row] = __vavgu4(pair.x, pair.y);
    const float3 a = mul(bt601, make_float3(as_uchar4(pair.x))), b = mul(bt601, make_float3(as_uchar4(pair.y)));
    *(uchar2 *)(luma + row * width) = make_uchar2((uchar)a.x, (uchar)b.x);
    sum += a + b;
  }
  const float3 uv = clamp(sum * 0.25f + make_float3(0.0f, 128.0f, 128.0f), 0.0f, 255.0f);
  *(uchar2 *)chroma = make_uchar2((uchar)uv.y, (uchar)uv.z);
  // the greater of both rows, without what is below 16
  const uint most = __vsubus4(__vmaxu4(mean[0], mean[1]), 0x10101010u);
  const uchar4 c = as_uchar4(most);
  thumbnail[(y / 2) * (width / 2) + x / 2] = __byte_perm(rgbaFloatToInt(make_float4(c.x / 255.0f, c.y / 127.5f, c.z / 255.0f, 2.0f)), 0, 0x3012);
}

int iDivUp(int a, int b) { return (a % b != 0) ? (a / b + 1) : (a / b); }
void convert(const uint *rgba, uchar *nv12, uint *thumbnail, int width, int height) {
  if (width % 2 || height % 2) throw std::exception();
  dim3 block(16, 4), grid(iDivUp(width / 2, block.x), iDivUp(height / 2, block.y));
  rgba_to_nv12<<<grid, block>>>(rgba, nv12, thumbnail, width, height);
}

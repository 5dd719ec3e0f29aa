// All pairs of bodies, in tiles of shared memory.
#include <vector_types.h>
#include <math.h>
#define EPS2 0.01f

__device__ float3 body_body(float4 bi, float4 bj, float3 ai) {
  float3 r = {bj.x - bi.x, bj.y - bi.y, bj.z - bi.z};
  float dist2 = r.x * r.x + r.y * r.y + r.z * r.z + EPS2;
  float inv = rsqrtf(dist2);
  float s = bj.w * inv * inv * inv;
  ai.x += r.x * s;
  ai.y += r.y * s;
  ai.z += r.z * s;
  return ai;
}

__global__ void forces(const float4 *bodies, float4 *acc, int n) {
  extern __shared__ float4 tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 me = bodies[i];
  float3 a = make_float3(0.0f, 0.0f, 0.0f);
  for (int start = 0; start < n; start += blockDim.x) {
    tile[threadIdx.x] = bodies[start + threadIdx.x];
    __syncthreads();
#pragma unroll 4
    for (int j = 0; j < blockDim.x; ++j) a = body_body(me, tile[j], a);
    __syncthreads();
  }
  acc[i] = make_float4(a.x, a.y, a.z, 0);
}

// The brightest voxel along each line of sight of a volume with pitches, in colours of a table; 5 slices are read at a time.
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>
#include <driver_types.h>
#include <cstdio>
#include <cstdlib>

#define CHECK_RC(rc, msg)                                                  \
  do {                                                                     \
    if (rc != cudaSuccess) {                                               \
      std::fprintf(stderr, "%s: %s\n", msg, cudaGetErrorString(rc));       \
      std::exit(-1);                                                       \
    }                                                                      \
  } while (0)

namespace projection {

constexpr int kSlices = 5;
__constant__ uchar3 ramp[4] = {{0, 0, 0}, {128, 0, 32}, {255, 128, 64}, {255, 255, 255}};

// A view of one slice: it knows the bytes between rows.
template <typename T>
struct Slice {
  const char *base;
  size_t pitch;
  __device__ Slice(const cudaPitchedPtr &volume, int z) : base(static_cast<const char *>(volume.ptr) + z * volume.pitch * volume.ysize), pitch(volume.pitch) {}
  __device__ const T *operator[](int y) const { return reinterpret_cast<const T *>(base + y * pitch); }
};

__device__ __forceinline__ uchar3 shade(float v) {
  const float at = fminf(fmaxf(v, 0.0f), 1.0f) * 3;
  const int low = min(static_cast<int>(at), 2);
  const float t = at - low;
  const uchar3 &a = ramp[low], &b = ramp[low + 1];
  return make_uchar3(a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), a.z + t * (b.z - a.z));
}

__global__ void maximum(cudaPitchedPtr volume, cudaExtent extent, uchar3 *image, float *depth) {
  const size_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= extent.width || y >= extent.height) return;
  float best = -1.0f;
  size_t where = 0, z = 0;
  for (float window[kSlices]; z < extent.depth; z += kSlices) {
    const int n = static_cast<int>(extent.depth - z < kSlices ? extent.depth - z : kSlices);
#pragma unroll
    for (int i = 0; i < kSlices; ++i) window[i] = i < n ? Slice<float>(volume, z + i)[y][x] : -1.0f;
    for (int i = 0; i < n; ++i)
      if (window[i] > best) best = window[i], where = z + i;
  }
  image[y * extent.width + x] = shade(best);
  depth[y * extent.width + x] = extent.depth > 1 ? static_cast<float>(where) / (extent.depth - 1) : 0.0f;
}

}  // namespace projection

int main() {
  const cudaExtent extent = make_cudaExtent(300, 200, 64);
  cudaPitchedPtr volume;
  CHECK_RC(cudaMalloc3D(&volume, make_cudaExtent(extent.width * sizeof(float), extent.height, extent.depth)), "cudaMalloc3D failed");
  CHECK_RC(cudaMemset3D(volume, 0, extent), "cudaMemset3D failed");
  uchar3 *image;
  float *depth;
  CHECK_RC(cudaMalloc(&image, extent.width * extent.height * sizeof(*image)), "cudaMalloc failed");
  CHECK_RC(cudaMalloc(&depth, extent.width * extent.height * sizeof(*depth)), "cudaMalloc failed");
  projection::maximum<<<dim3(10, 25), dim3(32, 8)>>>(volume, extent, image, depth);
  CHECK_RC(cudaDeviceSynchronize(), "the kernel failed");
}

// Sums a volume along rays through it.
struct Ray {
  float3 origin;
  float3 step;
};

__global__ void march(cudaTextureObject_t volume, const Ray *rays, float *sums, int steps, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float3 at = rays[i].origin;
  float sum = 0;
  for (int n = 0; n < steps; ++n) {
    sum += tex3D<float>(volume, at.x, at.y, at.z);
    at.x += rays[i].step.x;
    at.y += rays[i].step.y;
    at.z += rays[i].step.z;
  }
  sums[i] = sum;
}

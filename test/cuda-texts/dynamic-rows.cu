// Dynamic shared memory of two dimensions: with a bound and without one, in a kernel and outside.
extern __shared__ float4 quads[][4];

__device__ float quad_sum(int row, int column) {
  const float4 quad = quads[row][column];
  return quad.x + quad.y + quad.z + quad.w;
}

__global__ void transposed(const float *x, float *y) {
  extern __shared__ float rows[16][16];
  rows[threadIdx.y][threadIdx.x] = x[threadIdx.y * 16 + threadIdx.x];
  __syncthreads();
  const float *row = (const float *)&rows[threadIdx.x];
  y[threadIdx.y * 16 + threadIdx.x] = row[threadIdx.y] + 100 * quad_sum(threadIdx.y, threadIdx.x / 4);
}

// Dynamic shared memory of two dimensions, in a kernel and outside. One with a bound is static, and lies apart.
extern __shared__ __align__(sizeof(int[4])) float4 quads[][4];
extern __shared__ int marks[3];

__device__ float quad_sum(int row, int column) {
  const float4 quad = quads[row][column];
  return quad.x + quad.y + quad.z + quad.w;
}

__device__ int sum_of_marks() { return marks[0] + marks[1] + marks[2]; }

__global__ void transposed(const float *x, float *y) {
  extern __shared__ float rows[][16];
  extern __shared__ __align__(16) float copies[16][16];
  rows[threadIdx.y][threadIdx.x] = x[threadIdx.y * 16 + threadIdx.x];
  copies[threadIdx.x][threadIdx.y] = x[threadIdx.y * 16 + threadIdx.x];
  if (threadIdx.y == 0 && threadIdx.x < 3) marks[threadIdx.x] = threadIdx.x;
  __syncthreads();
  const float *row = (const float *)&rows[threadIdx.x];
  const float same = copies[threadIdx.y][threadIdx.x] == row[threadIdx.y] ? row[threadIdx.y] : 1e6f;
  y[threadIdx.y * 16 + threadIdx.x] = same + 100 * quad_sum(threadIdx.y, threadIdx.x / 4) + sum_of_marks();
}

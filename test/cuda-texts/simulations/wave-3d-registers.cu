// A 3D stencil that walks along z: the column is in registers, the plane in shared memory.
#define RADIUS 2
#define W 8
#define H 4

__constant__ float coefficients[RADIUS + 1] = {-2.5f, 1.3333333f, -0.083333336f};

__global__ void stencil_3d(const float *in, float *out, int nx, int ny, int nz) {
  __shared__ float plane[H + 2 * RADIUS][W + 2 * RADIUS];
  const int ix = blockIdx.x * W + threadIdx.x, iy = blockIdx.y * H + threadIdx.y;
  const int tx = threadIdx.x + RADIUS, ty = threadIdx.y + RADIUS;
  const int stride = nx * ny;
  const bool inside = ix >= RADIUS && ix < nx - RADIUS && iy >= RADIUS && iy < ny - RADIUS;
  float behind[RADIUS], front[RADIUS], current = 0;
  int at = iy * nx + ix;
#pragma unroll
  for (int r = 0; r < RADIUS; ++r) behind[r] = in[at + (RADIUS - 1 - r) * stride];
  current = in[at + RADIUS * stride];
#pragma unroll
  for (int r = 0; r < RADIUS; ++r) front[r] = in[at + (RADIUS + 1 + r) * stride];
  at += RADIUS * stride;
  for (int k = RADIUS; k < nz - RADIUS; ++k) {
    __syncthreads();
    plane[ty][tx] = current;
    if (threadIdx.x < RADIUS) {
      plane[ty][threadIdx.x] = ix >= RADIUS ? in[at - RADIUS] : 0;
      plane[ty][tx + W] = ix + W < nx ? in[at + W] : 0;
    }
    if (threadIdx.y < RADIUS) {
      plane[threadIdx.y][tx] = iy >= RADIUS ? in[at - RADIUS * nx] : 0;
      plane[ty + H][tx] = iy + H < ny ? in[at + H * nx] : 0;
    }
    __syncthreads();
    if (inside) {
      float value = 3 * coefficients[0] * current;
#pragma unroll
      for (int r = 1; r <= RADIUS; ++r)
        value += coefficients[r] * (plane[ty][tx - r] + plane[ty][tx + r] + plane[ty - r][tx] + plane[ty + r][tx] + behind[r - 1] + front[r - 1]);
      out[at] = value;
    }
    at += stride;
#pragma unroll
    for (int r = RADIUS - 1; r > 0; --r) behind[r] = behind[r - 1];
    behind[0] = current;
    current = front[0];
#pragma unroll
    for (int r = 0; r < RADIUS - 1; ++r) front[r] = front[r + 1];
    front[RADIUS - 1] = k + 1 + RADIUS < nz ? in[at + RADIUS * stride] : 0;
  }
}

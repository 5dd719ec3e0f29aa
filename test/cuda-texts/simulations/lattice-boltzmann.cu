// D2Q9 lattice Boltzmann: streaming from the neighbours and collision, periodic.
#include <cstddef>
#define Q 9
__constant__ int cx[Q] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int cy[Q] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__device__ const double weight[Q] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36, 1. / 36};

__device__ __forceinline__ size_t field_index(unsigned x, unsigned y, unsigned d, unsigned nx, unsigned ny) {
  return (size_t)nx * (ny * d + y) + x;
}

__global__ void stream_collide(const double *f0, double *f1, unsigned nx, unsigned ny, double tau_inverse) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x >= nx) return;
  double f[Q], rho = 0, ux = 0, uy = 0;
  for (unsigned i = 0; i < Q; ++i) {
    const unsigned from_x = (nx + x - cx[i]) % nx, from_y = (ny + y - cy[i]) % ny;
    f[i] = f0[field_index(from_x, from_y, i, nx, ny)];
    rho += f[i];
    ux += cx[i] * f[i];
    uy += cy[i] * f[i];
  }
  ux /= rho;
  uy /= rho;
  const double usq = ux * ux + uy * uy;
  for (unsigned i = 0; i < Q; ++i) {
    const double cu = cx[i] * ux + cy[i] * uy;
    const double eq = weight[i] * rho * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * usq);
    f1[field_index(x, y, i, nx, ny)] = (1 - tau_inverse) * f[i] + tau_inverse * eq;
  }
}

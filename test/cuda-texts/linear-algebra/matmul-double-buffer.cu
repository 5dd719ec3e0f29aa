// A matrix product whose next tile is loaded while the present one is used.
template <int TILE>
struct Buffers {
  double a[2][TILE][TILE], b[2][TILE][TILE];
};
#define T 8

__global__ void product(const double *a, const double *b, double *c, int n) {
  __shared__ Buffers<T> s;
  const int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  int now = 0;
  double sum = 0;
  s.a[now][threadIdx.y][threadIdx.x] = a[row * n + threadIdx.x];
  s.b[now][threadIdx.y][threadIdx.x] = b[threadIdx.y * n + col];
  __syncthreads();
  for (int tile = 1; tile <= n / T; ++tile, now ^= 1) {
    if (tile < n / T) {
      s.a[now ^ 1][threadIdx.y][threadIdx.x] = a[row * n + tile * T + threadIdx.x];
      s.b[now ^ 1][threadIdx.y][threadIdx.x] = b[(tile * T + threadIdx.y) * n + col];
    }
    for (int k = 0; k < T; ++k) sum = fma(s.a[now][threadIdx.y][k], s.b[now][k][threadIdx.x], sum);
    __syncthreads();
  }
  c[row * n + col] = sum;
}

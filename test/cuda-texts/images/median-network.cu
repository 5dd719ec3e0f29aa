// The median of 3 x 3 pixels by macros that exchange, and of 5 in a cross by a network of templates.
#include <cuda.h>
#include <stdint.h>

#define s2(a, b) { tmp = a; a = min(a, b); b = max(tmp, b); }
#define mn3(a, b, c) s2(a, b); s2(a, c);
#define mx3(a, b, c) s2(b, c); s2(a, c);
#define mnmx3(a, b, c) mx3(a, b, c); s2(a, b);                               // 3 exchanges
#define mnmx4(a, b, c, d) s2(a, b); s2(c, d); s2(a, c); s2(b, d);             // 4 exchanges
#define mnmx5(a, b, c, d, e) s2(a, b); s2(c, d); mn3(a, c, e); mx3(b, d, e);  // 6 exchanges
#define mnmx6(a, b, c, d, e, f) s2(a, d); s2(b, e); s2(c, f); mn3(a, b, c); mx3(d, e, f);  // 7 exchanges

#define BX 16
#define BY 8
#define SMEM(x, y) smem[(x) + 1][(y) + 1]
#define IN(x, y) d_in[min(max((y), 0), ny - 1) * nx + min(max((x), 0), nx - 1)]

extern "C" __global__ void kernel_3_(int *d_out, const int *__restrict__ d_in, int nx, int ny) {
  const int tx = threadIdx.x, ty = threadIdx.y;
  __shared__ int smem[BX + 2][BY + 2];
  const int x = blockIdx.x * blockDim.x + tx, y = blockIdx.y * blockDim.y + ty;
  // load the centre, then the borders
  SMEM(tx, ty) = IN(x, y);
  const bool is_x_top = (tx == 0), is_x_bot = (tx == BX - 1), is_y_top = (ty == 0), is_y_bot = (ty == BY - 1);
  if (is_x_top) SMEM(-1, ty) = IN(x - 1, y);
  else if (is_x_bot) SMEM(BX, ty) = IN(x + 1, y);
  if (is_y_top) {
    SMEM(tx, -1) = IN(x, y - 1);
    if (is_x_top) SMEM(-1, -1) = IN(x - 1, y - 1);
    else if (is_x_bot) SMEM(BX, -1) = IN(x + 1, y - 1);
  } else if (is_y_bot) {
    SMEM(tx, BY) = IN(x, y + 1);
    if (is_x_top) SMEM(-1, BY) = IN(x - 1, y + 1);
    else if (is_x_bot) SMEM(BX, BY) = IN(x + 1, y + 1);
  }
  __syncthreads();
  int v[6] = {SMEM(tx - 1, ty - 1), SMEM(tx, ty - 1), SMEM(tx + 1, ty - 1), SMEM(tx - 1, ty), SMEM(tx, ty), SMEM(tx + 1, ty)};
  int tmp;
  mnmx6(v[0], v[1], v[2], v[3], v[4], v[5]);
  v[5] = SMEM(tx - 1, ty + 1);
  mnmx5(v[1], v[2], v[3], v[4], v[5]);
  v[5] = SMEM(tx, ty + 1);
  mnmx4(v[2], v[3], v[4], v[5]);
  v[5] = SMEM(tx + 1, ty + 1);
  mnmx3(v[3], v[4], v[5]);
  if (x < nx && y < ny) d_out[y * nx + x] = v[4];
}

template <int I, int J, typename T>
__device__ __forceinline__ void exchange(T (&v)[5]) {
  static_assert(I < J && J < 5, "not in order");
  const T low = v[I] < v[J] ? v[I] : v[J], high = v[I] < v[J] ? v[J] : v[I];
  v[I] = low, v[J] = high;
}
template <int... Pairs>
struct Network;
template <int I, int J, int... Rest>
struct Network<I, J, Rest...> {
  template <typename T>
  static __device__ void sort(T (&v)[5]) {
    exchange<I, J>(v);
    Network<Rest...>::sort(v);
  }
};
template <>
struct Network<> {
  template <typename T>
  static __device__ void sort(T (&)[5]) {}
};

template <typename T>
__global__ void median_cross(T *d_out, const T *d_in, int nx, int ny) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (!(x < nx && y < ny)) return;
  T v[] = {IN(x, y), IN(x - 1, y), IN(x + 1, y), IN(x, y - 1), IN(x, y + 1)};
  Network<0, 1, 3, 4, 2, 4, 2, 3, 1, 4, 0, 3, 0, 2, 1, 3, 1, 2>::sort(v);
  d_out[y * nx + x] = v[2];
}

void median(uint8_t *out, const uint8_t *in, int nx, int ny) {
  median_cross<uint8_t><<<dim3((nx + 15) / 16, (ny + 7) / 8), dim3(16, 8)>>>(out, in, nx, ny);
}

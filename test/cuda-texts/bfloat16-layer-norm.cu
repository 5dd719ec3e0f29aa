#include <cuda_bf16.h>

template <typename T>
struct Vec2;
template <>
struct Vec2<__nv_bfloat16> {
  using type = __nv_bfloat162;
};

template <typename T>
__device__ void normalize(const T *x, const T *gamma, const T *beta, T *y, int columns, float eps) {
  using T2 = typename Vec2<T>::type;
  const T2 *pairs = reinterpret_cast<const T2 *>(x);
  float sum = 0.0f, squares = 0.0f;
  for (int i = 0; i < columns / 2; i++) {
    const float2 v = __bfloat1622float2(pairs[i]);
    sum += v.x + v.y;
  }
  const float mean = sum / columns;
  for (int i = 0; i < columns / 2; i++) {
    const float2 v = __bfloat1622float2(pairs[i]);
    squares += (v.x - mean) * (v.x - mean) + (v.y - mean) * (v.y - mean);
  }
  const float scale = 1.0f / sqrtf(squares / columns + eps);
  for (int i = 0; i < columns; i++)
    y[i] = __float2bfloat16((__bfloat162float(x[i]) - mean) * scale * (float)gamma[i] + static_cast<float>(beta[i]));
}

__global__ void bfloat16_layer_norm(const __nv_bfloat16 *x, const __nv_bfloat16 *gamma, const __nv_bfloat16 *beta,
                                    nv_bfloat16 *y, int rows, int columns, float eps) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) normalize(x + row * columns, gamma, beta, y + row * columns, columns, eps);
}

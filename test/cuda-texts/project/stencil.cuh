#pragma once
#include "common/settings.h"

struct Weights {
  float middle, side;
};

template <typename T>
__device__ T weighted(const T *x, int i, int n, Weights w) {
  T left = i > 0 ? x[i - 1] : x[0], right = i < n - 1 ? x[i + 1] : x[n - 1];
  return T(w.middle) * x[i] + T(w.side) * (left + right);
}

__global__ void heat_step(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = weighted(x, i, n, Weights{kMiddle, kSide});
}

template <typename T, int ROUNDS>
__global__ void heat_rounds(const T *x, T *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T value = x[i];
  for (int round = 0; round < ROUNDS; round++) value = value * T(0.5) + weighted(x, i, n, Weights{kMiddle, kSide}) * T(0.5);
  y[i] = value;
}

// Conversions in all rounding modes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define TO_INTEGERS(type, put)                                                                        \
  put(__##type##2short_rn) put(__##type##2short_rz) put(__##type##2short_rd) put(__##type##2short_ru) \
  put(__##type##2ushort_rn) put(__##type##2ushort_rz) put(__##type##2ushort_rd) put(__##type##2ushort_ru) \
  put(__##type##2int_rn) put(__##type##2int_rz) put(__##type##2int_rd) put(__##type##2int_ru)         \
  put(__##type##2uint_rn) put(__##type##2uint_rz) put(__##type##2uint_rd) put(__##type##2uint_ru)     \
  put(__##type##2ll_rn) put(__##type##2ll_rz) put(__##type##2ll_rd) put(__##type##2ll_ru)             \
  put(__##type##2ull_rn) put(__##type##2ull_rz) put(__##type##2ull_rd) put(__##type##2ull_ru)         \
  put(__##type##2char_rz) put(__##type##2uchar_rz)

#define PUT(f) whole[n * k++ + i] = (long long)f(x[i]);

__global__ void half_widened(const half *x, float *wide, long long *whole, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
  if (i >= n) return;
  wide[i] = __half2float(x[i]);
  TO_INTEGERS(half, PUT)
}

__global__ void bfloat16_widened(const __nv_bfloat16 *x, float *wide, long long *whole, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
  if (i >= n) return;
  wide[i] = __bfloat162float(x[i]);
  TO_INTEGERS(bfloat16, PUT)
}

#define FROM_NUMBERS(type, put)                                                                                       \
  put(__float2##type##_rn(f[i])) put(__float2##type##_rz(f[i])) put(__float2##type##_rd(f[i]))                        \
  put(__float2##type##_ru(f[i])) put(__double2##type(d[i])) put(__ll2##type##_rn(w[i])) put(__ll2##type##_rz(w[i]))   \
  put(__ll2##type##_rd(w[i])) put(__ll2##type##_ru(w[i])) put(__ull2##type##_rn((unsigned long long)w[i]))            \
  put(__int2##type##_rn((int)w[i])) put(__uint2##type##_ru((unsigned)w[i])) put(__short2##type##_rd((short)w[i]))     \
  put(__ushort2##type##_rz((unsigned short)w[i]))
#define STORE(e) y[n * k++ + i] = e;

__global__ void half_narrowed(const float *f, const double *d, const long long *w, half *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
  if (i >= n) return;
  FROM_NUMBERS(half, STORE)
  STORE((half)f[i])
  STORE((half)w[i])
  y[n * k + i] = d[i];
}

__global__ void bfloat16_narrowed(const float *f, const double *d, const long long *w, __nv_bfloat16 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
  if (i >= n) return;
  FROM_NUMBERS(bfloat16, STORE)
  STORE((__nv_bfloat16)f[i])
  STORE((__nv_bfloat16)w[i])
  y[n * k + i] = d[i];
}

// Types of the host in a file of kernels: a struct of the device's properties, arrays of complex numbers of cuFFT, half types by way of cuBLAS.
#include <cstdio>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cufft.h>
#if defined(_MSC_VER)
#include <BaseTsd.h>
typedef SSIZE_T ssize_t;
#endif

extern cudaDeviceProp properties;
cudaDeviceProp properties;

struct Session {
  cudaStream_t stream;
  cublasHandle_t blas;
  cufftHandle plan;
};

__global__ void scale_spectrum(cufftComplex *spectrum, ssize_t n, float by) {
  const ssize_t i = threadIdx.x;
  if (i < n) {
    spectrum[i].x *= by;
    spectrum[i].y *= -by;
  }
}

int main() {
  Session session;
  cudaGetDeviceProperties(&properties, 0);
  printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
  cublasCreate(&session.blas);
  return 0;
}

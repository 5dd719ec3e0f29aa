// A kernel for programmatic dependent launches, and a union without a name, as in code for several compilers.
typedef struct {
  __extension__ union {
    struct {
      int low, high;
    } halves;
    long long both;
  };
} number;

__device__ void wait_for_others() {
#if __CUDA_ARCH__ >= 900 || defined(__CUDACC_RTC__)
  cudaGridDependencySynchronize();
#endif
}

__global__ void swap_halves(const long long* in, long long* out, int n) {
  wait_for_others();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  number given, made;
  given.both = i < n ? in[i] : 0;
  made.halves.low = given.halves.high;
  made.halves.high = given.halves.low;
#if __CUDA_ARCH__ >= 900 || defined(__CUDACC_RTC__)
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  if (i < n) out[i] = made.both;
}

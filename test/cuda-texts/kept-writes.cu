// A write that is repeated until it is read back: the condition at the end of the loop reads volatile memory, and the body writes it.
__device__ void count_up(volatile unsigned int *counters, unsigned int at, unsigned int tag) {
  unsigned int next;
  do {
    next = (counters[at] & 0x00ffffffU) + 1;
    next |= tag;
    counters[at] = next;
  } while (counters[at] != next);
}

extern "C" __global__ void count_multiples(const int *values, int n, unsigned int *counts) {
  volatile __shared__ unsigned int counters[64];
  const unsigned int tag = threadIdx.x << 24;
  counters[threadIdx.x] = 0;
  for (int i = 0; i < n; i++)
    if (values[i] % static_cast<int>(threadIdx.x + 1) == 0) count_up(counters, threadIdx.x, tag);
  counts[threadIdx.x] = counters[threadIdx.x] & 0x00ffffffU;
}

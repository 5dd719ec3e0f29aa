// Odd-even transposition sort, a pair of elements for each thread.
__device__ void order(short *a, short *b) {
  if (*a > *b) {
    const short t = *a;
    *a = *b;
    *b = t;
  }
}

extern "C" __global__ void odd_even(short *x, int n) {
  extern __shared__ short s[];
  int t = threadIdx.x;
  if (t < n) s[t] = x[t];
  for (int phase = 0; phase < n; ++phase) {
    __syncthreads();
    const int at = 2 * t + (phase & 1);
    if (at + 1 < n) order(&s[at], &s[at + 1]);
  }
  __syncthreads();
  if (t < n) x[t] = s[t];
}

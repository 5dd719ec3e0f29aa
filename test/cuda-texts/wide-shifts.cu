// Shifts by the width and more, as packers of bits and masks of lanes have them.
template <class T>
struct Pair {
  T first, second;
};

template <class T>
__device__ T below(T, int n) {
  return (T(1) << n) - 1;
}

#define HIGHEST(n) (0xffffffffu << (32 - n))

// Not inlined: x86's vectors have the shifts of a GPU, and its other registers do not.
__device__ __noinline__ void write(int x, int by, unsigned *narrow, unsigned long long *wide) {
  const unsigned u = x;
  Pair<Pair<unsigned>> pairs;
  pairs.first.second = u >> by;
  unsigned left = u;
  left <<= by;
  unsigned right[] = {u};
  right[0] >>= by + 1;
  narrow[0] = left;
  narrow[1] = pairs.first.second;
  narrow[2] = x >> by;
  narrow[3] = right[0];
  narrow[4] = below<unsigned>(u, by);
  narrow[5] = HIGHEST(by);
  narrow[6] = ((short)x << (unsigned)by) - 1;
  narrow[7] = threadIdx.x << by | (x >> by) < 0;
  wide[0] = (unsigned long long)u << by;
  wide[1] = (long long)x >> by;
  wide[2] = below<unsigned long long>(0, by);
}

__global__ void shift(const int *x, const int *amounts, unsigned *narrow, unsigned long long *wide, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) write(x[i], amounts[i], narrow + 8 * i, wide + 3 * i);
}

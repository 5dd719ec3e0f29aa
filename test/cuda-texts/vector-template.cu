template <typename T> struct Vec { using type = void; };
template <> struct Vec<float> { using type = float4; };
template <> struct Vec<int> { using type = int4; };

template <typename T, bool Reverse>
__global__ void pack(const T *x, typename Vec<T>::type *y, unsigned n) {
  unsigned i = threadIdx.x;
  if (i >= n) return;
  const T *p = x + 4 * i;
  if (Reverse) y[i] = {p[3], p[2], p[1], p[0]};
  else y[i] = {p[0], p[1], p[2], p[3]};
}

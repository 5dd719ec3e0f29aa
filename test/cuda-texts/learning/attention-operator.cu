// One query of attention: the kernel is a function object with parameters and shared storage of its own.
#include <cuda_runtime.h>
#include <cmath>

#define ATTN_PRAGMA_UNROLL _Pragma("unroll")
#define ATTN_DEVICE __forceinline__ __device__

namespace attn {

template <typename T, int N>
struct Array {
  using Element = T;
  static int const kElements = N;
  Element storage[N];
  ATTN_DEVICE void clear() {
    ATTN_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) storage[i] = Element(0);
  }
  ATTN_DEVICE T &operator[](int i) { return storage[i]; }
  ATTN_DEVICE T const &operator[](int i) const { return storage[i]; }
};

template <typename A>
struct multiply_add;
template <typename T, int N>
struct multiply_add<Array<T, N>> {
  ATTN_DEVICE Array<T, N> operator()(T a, Array<T, N> const &b, Array<T, N> c) const {
    ATTN_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) c[i] = a * b[i] + c[i];
    return c;
  }
};

template <int Dim_, int Threads_, typename Element_ = float>
struct DecodeAttention {
  using Element = Element_;
  static int const kDim = Dim_;
  static int const kThreads = Threads_;
  using Fragment = Array<Element, kDim>;

  struct Params {
    Element const *q;
    Element const *k;
    Element const *v;
    Element *out;
    int keys;
    Element scale;
  };
  struct SharedStorage {
    Element maxima[kThreads];
    union {
      Element sums[kThreads];
      Element unused[1];
    };
    Element values[kThreads][kDim + 1];
  };

  ATTN_DEVICE void operator()(Params const &params, SharedStorage &shared) {
    int const row = blockIdx.x, t = threadIdx.x;
    Element const *k = params.k + row * params.keys * kDim;
    Element const *v = params.v + row * params.keys * kDim;
    Element largest = -INFINITY, sum = 0;
    Fragment acc;
    acc.clear();
    multiply_add<Fragment> mac;
    for (int j = t; j < params.keys; j += kThreads) {
      Element score = 0;
      ATTN_PRAGMA_UNROLL
      for (int d = 0; d < kDim; ++d) score += params.q[row * kDim + d] * k[j * kDim + d];
      score *= params.scale;
      Element const next = fmaxf(largest, score);
      Element const shrink = expf(largest - next), weight = expf(score - next);
      ATTN_PRAGMA_UNROLL
      for (int d = 0; d < kDim; ++d) acc[d] *= shrink;
      acc = mac(weight, reinterpret_cast<Fragment const &>(v[j * kDim]), acc);
      sum = sum * shrink + weight;
      largest = next;
    }
    shared.maxima[t] = largest;
    shared.sums[t] = sum;
    for (int d = 0; d < kDim; ++d) shared.values[t][d] = acc[d];
    __syncthreads();
    if (t < kDim) {
      Element total = 0, out = 0, top = -INFINITY;
      for (int i = 0; i < kThreads; ++i) top = fmaxf(top, shared.maxima[i]);
      for (int i = 0; i < kThreads; ++i) {
        Element const by = expf(shared.maxima[i] - top);
        total += by * shared.sums[i];
        out += by * shared.values[i][t];
      }
      params.out[row * kDim + t] = out / total;
    }
  }
};

template <typename Operator>
__global__ void Kernel(typename Operator::Params params) {
  extern __shared__ int SharedStorageBase[];
  typename Operator::SharedStorage *shared_storage = reinterpret_cast<typename Operator::SharedStorage *>(SharedStorageBase);
  Operator op;
  op(params, *shared_storage);
}

}  // namespace attn

cudaError_t run(attn::DecodeAttention<16, 64>::Params params, int rows, cudaStream_t stream) {
  using Op = attn::DecodeAttention<16, 64>;
  int smem = int(sizeof(typename Op::SharedStorage));
  if (smem >= (48 << 10)) cudaFuncSetAttribute(attn::Kernel<Op>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem);
  attn::Kernel<Op><<<rows, Op::kThreads, smem, stream>>>(params);
  return cudaGetLastError();
}

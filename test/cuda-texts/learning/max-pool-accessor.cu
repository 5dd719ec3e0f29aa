// Maximum pooling of a tensor that the kernel takes by value: an accessor whose subscript is an accessor of one dimension less.
#include <cuda_runtime.h>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_ALWAYS_INLINE __inline__ __attribute__((always_inline))

template <typename T>
struct DefaultPtrTraits {
  typedef T *PtrType;
};
template <typename T>
struct RestrictPtrTraits {
  typedef T *__restrict__ PtrType;
};

template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits, typename index_t = int64_t>
class TensorAccessorBase {
 public:
  typedef typename PtrTraits<T>::PtrType PtrType;
  C10_HOST_DEVICE TensorAccessorBase(PtrType data, const index_t *sizes, const index_t *strides) : data_(data), sizes_(sizes), strides_(strides) {}
  C10_HOST_DEVICE index_t size(index_t i) const { return sizes_[i]; }
  C10_HOST_DEVICE PtrType data() { return data_; }

 protected:
  PtrType data_;
  const index_t *sizes_;
  const index_t *strides_;
};

template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits, typename index_t = int64_t>
class TensorAccessor : public TensorAccessorBase<T, N, PtrTraits, index_t> {
 public:
  using Base = TensorAccessorBase<T, N, PtrTraits, index_t>;
  using Base::Base;
  C10_ALWAYS_INLINE C10_DEVICE TensorAccessor<T, N - 1, PtrTraits, index_t> operator[](index_t i) {
    return TensorAccessor<T, N - 1, PtrTraits, index_t>(this->data_ + this->strides_[0] * i, this->sizes_ + 1, this->strides_ + 1);
  }
};
template <typename T, template <typename U> class PtrTraits, typename index_t>
class TensorAccessor<T, 1, PtrTraits, index_t> : public TensorAccessorBase<T, 1, PtrTraits, index_t> {
 public:
  using TensorAccessorBase<T, 1, PtrTraits, index_t>::TensorAccessorBase;
  C10_DEVICE T &operator[](index_t i) { return this->data_[this->strides_[0] * i]; }
};

template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits, typename index_t = int64_t>
class PackedTensorAccessor {
 public:
  C10_HOST_DEVICE const index_t &size(index_t i) const { return sizes_[i]; }
  C10_DEVICE TensorAccessor<T, N - 1, PtrTraits, index_t> operator[](index_t i) {
    index_t *new_sizes = sizes_ + 1;
    index_t *new_strides = strides_ + 1;
    return TensorAccessor<T, N - 1, PtrTraits, index_t>(data_ + strides_[0] * i, new_sizes, new_strides);
  }
  typename PtrTraits<T>::PtrType data_;
  index_t sizes_[N];
  index_t strides_[N];
};
template <typename T, size_t N>
using PackedTensorAccessor32 = PackedTensorAccessor<T, N, RestrictPtrTraits, int32_t>;

template <typename scalar_t, typename accscalar_t = scalar_t>
__global__ void max_pool2d(PackedTensorAccessor32<scalar_t, 3> input, PackedTensorAccessor32<scalar_t, 3> output, PackedTensorAccessor32<int, 3> indices,
                           const int kernel, const int stride) {
  const int c = blockIdx.z, ow = blockIdx.x * blockDim.x + threadIdx.x, oh = blockIdx.y * blockDim.y + threadIdx.y;
  if (ow >= output.size(2) || oh >= output.size(1)) return;
  accscalar_t maxval = -std::numeric_limits<accscalar_t>::infinity();
  int maxidx = -1;
  auto plane = input[c];
  for (int h = oh * stride; h < min(oh * stride + kernel, input.size(1)); ++h)
    for (int w = ow * stride; w < min(ow * stride + kernel, input.size(2)); ++w) {
      const scalar_t val = plane[h][w];
      if (val > maxval || isnan(val)) {
        maxidx = h * input.size(2) + w;
        maxval = val;
      }
    }
  output[c][oh][ow] = maxval;
  indices[c][oh][ow] = maxidx;
}

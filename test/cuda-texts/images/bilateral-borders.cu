// The bilateral filter for pixels of any type and borders of any kind: traits of vectors, and images with pitches by value.
#include <cuda_runtime.h>
#include <cmath>

typedef unsigned char uchar;

namespace cv { namespace cuda { namespace device {

template <typename T>
struct PtrStepSz {
  T *data;
  size_t step;
  int cols, rows;
  template <typename U>
  explicit PtrStepSz(const PtrStepSz<U> &d) : data((T *)d.data), step(d.step), cols(d.cols), rows(d.rows) {}
  PtrStepSz() = default;
  __host__ __device__ __forceinline__ T *ptr(int y = 0) { return (T *)((char *)data + y * step); }
  __host__ __device__ __forceinline__ const T *ptr(int y = 0) const { return (const T *)((const char *)data + y * step); }
  __host__ __device__ __forceinline__ T &operator()(int y, int x) { return ptr(y)[x]; }
  __host__ __device__ __forceinline__ const T &operator()(int y, int x) const { return ptr(y)[x]; }
};

template <typename T> struct VecTraits;
#define OPENCV_VEC_TRAITS(type, elem, n)                                                     \
  template <> struct VecTraits<type> {                                                       \
    typedef elem elem_type;                                                                  \
    enum { cn = n };                                                                         \
    static __device__ __host__ __forceinline__ type all(elem v) { type r; elem *e = (elem *)&r; for (int i = 0; i < n; ++i) e[i] = v; return r; } \
  };
OPENCV_VEC_TRAITS(uchar, uchar, 1)
OPENCV_VEC_TRAITS(float, float, 1)
OPENCV_VEC_TRAITS(uchar4, uchar, 4)
OPENCV_VEC_TRAITS(float4, float, 4)
template <typename T, int CN> struct TypeVec;
template <> struct TypeVec<float, 1> { typedef float vec_type; };
template <> struct TypeVec<float, 4> { typedef float4 vec_type; };

__device__ __forceinline__ float4 operator+(const float4 &a, const float4 &b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__device__ __forceinline__ float4 operator-(const float4 &a, const float4 &b) { return make_float4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); }
__device__ __forceinline__ float4 operator*(float s, const float4 &a) { return make_float4(s * a.x, s * a.y, s * a.z, s * a.w); }
__device__ __forceinline__ float4 operator/(const float4 &a, float s) { return (1.0f / s) * a; }
__device__ __forceinline__ float norm_l1(const float &a) { return ::fabs(a); }
__device__ __forceinline__ float norm_l1(const float4 &a) { return ::fabs(a.x) + ::fabs(a.y) + ::fabs(a.z) + ::fabs(a.w); }
__device__ __forceinline__ float sqr(const float &a) { return a * a; }

template <typename D> struct saturate { template <typename S> static __device__ D cast(const S &v) { return D(v); } };
template <> struct saturate<uchar> { static __device__ uchar cast(float v) { return (uchar)__float2int_rn(fminf(fmaxf(v, 0.0f), 255.0f)); } };
template <> struct saturate<float4> { static __device__ float4 cast(uchar4 v) { return make_float4(v.x, v.y, v.z, v.w); } };
template <> struct saturate<uchar4> {
  static __device__ uchar4 cast(float4 v) { return make_uchar4(saturate<uchar>::cast(v.x), saturate<uchar>::cast(v.y), saturate<uchar>::cast(v.z), saturate<uchar>::cast(v.w)); }
};

template <typename D> struct BrdReplicate {
  __device__ __forceinline__ static int idx(int i, int last) { return ::max(::min(i, last), 0); }
};
template <typename D> struct BrdReflect101 {
  __device__ __forceinline__ static int idx(int i, int last) { return ::abs(last - ::abs(last - i)) % (last + 1); }
};

template <typename T, template <typename> class B>
__global__ void bilateral_kernel(const PtrStepSz<T> src, PtrStepSz<T> dst, const int ksz, const float sigma_spatial2_inv_half, const float sigma_color2_inv_half) {
  typedef typename TypeVec<float, VecTraits<T>::cn>::vec_type value_type;
  const int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y, r = ksz / 2;
  if (x >= src.cols || y >= src.rows) return;
  const value_type center = saturate<value_type>::cast(src(y, x));
  value_type sum1 = VecTraits<value_type>::all(0);
  float sum2 = 0;
  for (int cy = y - r; cy <= y + r; ++cy)
    for (int cx = x - r; cx <= x + r; ++cx) {
      const float space2 = (x - cx) * (x - cx) + (y - cy) * (y - cy);
      if (space2 > r * r) continue;
      const value_type value = saturate<value_type>::cast(src(B<T>::idx(cy, src.rows - 1), B<T>::idx(cx, src.cols - 1)));
      const float weight = ::exp(space2 * sigma_spatial2_inv_half + sqr(norm_l1(value - center)) * sigma_color2_inv_half);
      sum1 = sum1 + weight * value;
      sum2 = sum2 + weight;
    }
  dst(y, x) = saturate<T>::cast(sum1 / sum2);
}

template <typename T, template <typename> class B>
void bilateral_caller(const PtrStepSz<uchar> &src, PtrStepSz<uchar> dst, int kernel_size, float sigma_spatial, float sigma_color, cudaStream_t stream) {
  const dim3 block(32, 8), grid((src.cols + 31) / 32, (src.rows + 7) / 8);
  bilateral_kernel<T, B><<<grid, block, 0, stream>>>((PtrStepSz<T>)src, (PtrStepSz<T>)dst, kernel_size, -0.5f / (sigma_spatial * sigma_spatial), -0.5f / (sigma_color * sigma_color));
}

void bilateral_filter_gpu(const PtrStepSz<uchar> &src, PtrStepSz<uchar> dst, int kernel_size, float spatial, float color, int borderMode, cudaStream_t stream) {
  typedef void (*caller_t)(const PtrStepSz<uchar> &, PtrStepSz<uchar>, int, float, float, cudaStream_t);
  static caller_t funcs[] = {bilateral_caller<uchar, BrdReplicate>, bilateral_caller<uchar4, BrdReplicate>, bilateral_caller<uchar, BrdReflect101>};
  funcs[borderMode](src, dst, kernel_size, spatial, color, stream);
}

}}}  // namespace cv::cuda::device

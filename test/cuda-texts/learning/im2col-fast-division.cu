// Patches of an image as columns; divisions by a number that only the host knows become products.
#include <stdint.h>
#include <cstdlib>

#if defined(__CUDACC__)
#define HOST_DEVICE __forceinline__ __device__ __host__
#else
#define HOST_DEVICE inline
#endif

struct FastDivmod {
  int divisor;
  unsigned int multiplier;
  unsigned int shift_right;

  HOST_DEVICE FastDivmod() : divisor(0), multiplier(0), shift_right(0) {}
  HOST_DEVICE FastDivmod(int divisor) : divisor(divisor), multiplier(0), shift_right(0) {
    if (divisor != 1) {
      unsigned int p = 31 + find_log2(divisor);
      unsigned m = unsigned(((1ull << p) + unsigned(divisor) - 1) / unsigned(divisor));
      multiplier = m;
      shift_right = p - 32;
    }
  }
  HOST_DEVICE void operator()(int &quotient, int &remainder, int dividend) const {
#if defined(__CUDA_ARCH__)
    quotient = (divisor != 1) ? __umulhi(dividend, multiplier) >> shift_right : dividend;
#else
    quotient = int((divisor != 1) ? int(((int64_t)dividend * multiplier) >> 32) >> shift_right : dividend);
#endif
    remainder = dividend - (quotient * divisor);
  }
  HOST_DEVICE int divmod(int &rem, int dividend) const {
    int quotient;
    operator()(quotient, rem, dividend);
    return quotient;
  }
  static HOST_DEVICE unsigned find_log2(int x) {
    unsigned a = 0;
    while ((1ull << a) < (unsigned long long)x) a++;
    return a;
  }
};

struct ConvShape {
  FastDivmod w_out, h_out;
  int height, width, ksize, pad, stride, dilation;
};

template <typename Dtype>
__global__ void im2col_kernel(const int n, const Dtype *data_im, const ConvShape s, Dtype *data_col) {
  for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < n; index += blockDim.x * gridDim.x) {
    int w_out, h_index, h_out, channel;
    s.w_out(h_index, w_out, index);
    channel = s.h_out.divmod(h_out, h_index);
    const int h_in = h_out * s.stride - s.pad, w_in = w_out * s.stride - s.pad;
    Dtype *col = data_col + ((channel * s.ksize * s.ksize) * s.h_out.divisor + h_out) * s.w_out.divisor + w_out;
    const Dtype *im = data_im + (channel * s.height + h_in) * s.width + w_in;
    for (int i = 0; i < s.ksize; ++i) {
      for (int j = 0; j < s.ksize; ++j) {
        const int h = h_in + i * s.dilation, w = w_in + j * s.dilation;
        *col = (h >= 0 && w >= 0 && h < s.height && w < s.width) ? im[i * s.dilation * s.width + j * s.dilation] : static_cast<Dtype>(0);
        col += s.h_out.divisor * s.w_out.divisor;
      }
    }
  }
}

template <typename Dtype>
void im2col(const Dtype *data_im, int channels, int height, int width, int ksize, int pad, int stride, int dilation, Dtype *data_col) {
  const int height_col = (height + 2 * pad - (dilation * (ksize - 1) + 1)) / stride + 1;
  const int width_col = (width + 2 * pad - (dilation * (ksize - 1) + 1)) / stride + 1;
  const ConvShape shape{FastDivmod(width_col), FastDivmod(height_col), height, width, ksize, pad, stride, dilation};
  const int n = channels * height_col * width_col;
  im2col_kernel<Dtype><<<(n + 511) / 512, 512>>>(n, data_im, shape, data_col);
  if (cudaPeekAtLastError() != cudaSuccess) std::abort();
}
template void im2col<float>(const float *, int, int, int, int, int, int, int, float *);
template void im2col<double>(const double *, int, int, int, int, int, int, int, double *);

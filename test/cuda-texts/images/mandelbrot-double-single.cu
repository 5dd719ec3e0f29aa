// The Mandelbrot set in numbers that are sums of two floats, without fused operations; blocks take tiles from a counter.
#include <cuda_runtime.h>
#include <stdio.h>

// The dimensions of the thread block
#define BLOCKDIM_X 16
#define BLOCKDIM_Y 8
#define ABS(n) ((n) < 0 ? -(n) : (n))

// Increase the grid size by 1 if the image width or height does not divide evenly by the thread block dimensions
inline int iDivUp(int a, int b) { return ((a % b) != 0) ? (a / b + 1) : (a / b); }

__device__ unsigned int blockCounter;  // global counter, initialised to zero before kernel launch

// This function sets the DS number A equal to the double precision floating point number B.
inline void dsdeq(float &a0, float &a1, double b) {
  a0 = (float)b;
  a1 = (float)(b - a0);
}

struct ds {
  float hi, lo;
  __host__ __device__ ds(float h = 0.0f, float l = 0.0f) : hi(h), lo(l) {}
};
__device__ inline ds operator-(const ds &a) { return ds(-a.hi, -a.lo); }
__device__ inline ds operator+(const ds &a, const ds &b) {
  // Compute dsa + dsb using Knuth's trick.
  const float t1 = __fadd_rn(a.hi, b.hi), e = __fadd_rn(t1, -a.hi);
  const float t2 = __fadd_rn(__fadd_rn(__fadd_rn(b.hi, -e), __fadd_rn(a.hi, -__fadd_rn(t1, -e))), __fadd_rn(a.lo, b.lo));
  const float sum = __fadd_rn(t1, t2);
  return {sum, __fadd_rn(t2, -__fadd_rn(sum, -t1))};
}
__device__ inline ds operator-(const ds &a, const ds &b) { return a + -b; }
__device__ inline ds operator*(const ds &a, const ds &b) {
  const float p = __fmul_rn(a.hi, b.hi);
  const float e = __fadd_rn(__fmaf_rn(a.hi, b.hi, -p), __fadd_rn(__fmul_rn(a.hi, b.lo), __fmul_rn(a.lo, b.hi)));
  const float high = __fadd_rn(p, e);
  return ds(high, __fadd_rn(e, -__fadd_rn(high, -p)));
}
__device__ inline bool operator>(const ds &a, float b) { return a.hi > b || (a.hi == b && a.lo > 0.0f); }

template <class T>
class Complex {
  T re_, im_;

 public:
  __device__ Complex(const T &re, const T &im) : re_(re), im_(im) {}
  friend __device__ Complex operator+(const Complex &a, const Complex &b) { return Complex(a.re_ + b.re_, a.im_ + b.im_); }
  __device__ Complex squared() const {
    const T both = re_ * im_;
    return {re_ * re_ - im_ * im_, both + both};
  }
  __device__ T norm() const { return re_ * re_ + im_ * im_; }
};

template <class T>
__device__ inline int CalcMandelbrot(const Complex<T> c, int crunch) {
  Complex<T> z = c;
  int i = crunch;
  while (--i && !(z.norm() > 4.0f)) z = z.squared() + c;
  return i;
}

// The Mandelbrot CUDA GPU thread function (double single version)
__global__ void Mandelbrot_ds(uchar4 *dst, const int imageW, const int imageH, const int crunch, const ds xOff, const ds yOff, const float scale,
                              const uchar4 colors, const int gridWidth, const int numBlocks) {
  __shared__ unsigned int blockIndex, blockX, blockY;
  // loop until all blocks completed
  while (true) {
    if (threadIdx.x == 0 && threadIdx.y == 0) {
      // get block to process
      blockIndex = atomicAdd(&blockCounter, 1);
      blockX = blockIndex % gridWidth;  // note: this is slow, but only called once per block here
      blockY = blockIndex / gridWidth;
    }
    __syncthreads();
    if (blockIndex >= numBlocks) break;  // finish
    const int ix = blockDim.x * blockX + threadIdx.x, iy = blockDim.y * blockY + threadIdx.y;
    if (ix < imageW && iy < imageH) {
      const ds x = ds(__fmul_rn((float)ix, scale)) + xOff, y = ds(__fmul_rn((float)iy, scale)) + yOff;
      int m = CalcMandelbrot(Complex<ds>(x, y), crunch);
      m = m > 0 ? crunch - m : 0;
      uchar4 color = {};
      if (m) {
        color.x = m * colors.x;
        color.y = m * colors.y;
        color.z = m * colors.z;
        color.w = ABS(m - crunch / 2);
      }
      dst[imageW * iy + ix] = color;
    }
    __syncthreads();
  }
  // so that the next launch begins again: every block reads the counter once after the last tile
  if (threadIdx.x == 0 && threadIdx.y == 0 && blockIndex == numBlocks + gridDim.x - 1) blockCounter = 0;
}

void RunMandelbrot(uchar4 *dst, int imageW, int imageH, int crunch, double xOff, double yOff, double scale, uchar4 colors, int numSMs) {
  ds x, y;
  dsdeq(x.hi, x.lo, xOff);
  dsdeq(y.hi, y.lo, yOff);
  const int gridW = iDivUp(imageW, BLOCKDIM_X), gridH = iDivUp(imageH, BLOCKDIM_Y);
  unsigned int hBlockCounter = 0;
  cudaMemcpyToSymbol(blockCounter, &hBlockCounter, sizeof(unsigned int), 0, cudaMemcpyHostToDevice);
  Mandelbrot_ds<<<numSMs, dim3(BLOCKDIM_X, BLOCKDIM_Y)>>>(dst, imageW, imageH, crunch, x, y, (float)scale, colors, gridW, gridW * gridH);
  printf("Mandelbrot_ds Failed: %s\n", cudaGetErrorString(cudaGetLastError()));
}

// Sobel's gradient of an image in bytes, from a tile of shared memory; the rows of the tile are read as whole words.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

typedef unsigned char Pixel;
enum SobelDisplayMode { SOBELDISPLAY_IMAGE = 0, SOBELDISPLAY_SOBELTEX, SOBELDISPLAY_SOBELSHARED };
#define RADIUS 1
#define BLOCK_W 32
#define BLOCK_H 4
#ifdef FIXED_BLOCKWIDTH
#define BlockWidth 80
#endif

// This will output the proper CUDA error strings in the event that a CUDA host call returns an error
#define checkCudaErrors(val) check((val), #val, __FILE__, __LINE__)
template <typename T>
void check(T result, char const *const func, const char *const file, int const line) {
  if (result) {
    fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line, static_cast<unsigned int>(result), cudaGetErrorName(result), func);
    exit(EXIT_FAILURE);
  }
}

__device__ unsigned char ComputeSobel(unsigned char ul, unsigned char um, unsigned char ur, unsigned char ml, unsigned char mm, unsigned char mr,
                                      unsigned char ll, unsigned char lm, unsigned char lr, float fScale) {
  short Horz = ur + 2 * mr + lr - ul - 2 * ml - ll;
  short Vert = ul + 2 * um + ur - ll - 2 * lm - lr;
  short Sum = (short)(fScale * (abs((int)Horz) + abs((int)Vert)));
  return (unsigned char)((Sum < 0) ? 0 : (Sum > 255) ? 255 : Sum);
}

__global__ void SobelShared(const uchar4 *pSobelOriginal, unsigned short SobelPitch, Pixel *pOut, short w, short h, float fScale) {
  __shared__ uchar4 LocalBlock[BLOCK_H + 2 * RADIUS][BLOCK_W / 4 + 2];
  const int x4 = blockIdx.x * (BLOCK_W / 4), y0 = blockIdx.y * BLOCK_H;
  for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < (BLOCK_H + 2 * RADIUS) * (BLOCK_W / 4 + 2); i += blockDim.x * blockDim.y) {
    const int row = i / (BLOCK_W / 4 + 2), col = i % (BLOCK_W / 4 + 2);
    const int y = min(max(y0 + row - RADIUS, 0), h - 1), x = x4 + col - 1;
    LocalBlock[row][col] = x < 0 || x >= SobelPitch / 4 ? make_uchar4(0, 0, 0, 0) : pSobelOriginal[y * (SobelPitch / 4) + x];
  }
  __syncthreads();
  const int x = blockIdx.x * BLOCK_W + threadIdx.x, y = y0 + threadIdx.y;
  if (x >= w || y >= h) return;
  const Pixel *rows[3];
  for (int r = 0; r < 3; ++r) rows[r] = reinterpret_cast<const Pixel *>(LocalBlock[threadIdx.y + r]) + threadIdx.x + 4;
  const Pixel **p = rows;
  pOut[y * w + x] = ComputeSobel(p[0][-1], p[0][0], p[0][1], p[1][-1], *p[1], p[1][1], p[2][-1], p[2][0], p[2][1], fScale);
}

struct Image {
  int w, h, pitch;
  std::vector<Pixel> data;
  static Image load(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    Image image{512, 512, 512, std::vector<Pixel>(512 * 512)};
    if (!file.read((char *)image.data.data(), image.data.size())) throw std::runtime_error("cannot read " + path);
    return image;
  }
};

int main(int argc, char **argv) {
  const Image image = Image::load(argc > 1 ? argv[1] : "lena.pgm");
  uchar4 *in = nullptr;
  Pixel *out = nullptr;
  checkCudaErrors(cudaMalloc(&in, image.data.size()));
  checkCudaErrors(cudaMalloc(&out, image.data.size()));
  checkCudaErrors(cudaMemcpy2D(in, image.pitch, image.data.data(), image.w, image.w, image.h, cudaMemcpyHostToDevice));
  const dim3 threads(BLOCK_W, BLOCK_H), blocks((image.w + BLOCK_W - 1) / BLOCK_W, (image.h + BLOCK_H - 1) / BLOCK_H);
  SobelShared<<<blocks, threads>>>(in, image.pitch, out, image.w, image.h, 1.0f);
  checkCudaErrors(cudaGetLastError());
}

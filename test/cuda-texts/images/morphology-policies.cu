// Erosion and dilation by classes that derive from one another with their own type, and a top hat that derives from both ideas.
#include <cuda_runtime.h>
#include <climits>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace morph {

struct Size {
  int width, height;
};

template <class Derived, typename Pixel>
class Reduction {
 public:
  using pixel_type = Pixel;
  __device__ void add(Pixel p) {
    self().value = self().better(p, self().value) ? p : self().value;
    ++count_;
  }
  __device__ Pixel get() const { return count_ > 0 ? static_cast<const Derived *>(this)->value : Pixel(0); }

 protected:
  int count_ = 0;

 private:
  __device__ Derived &self() { return *static_cast<Derived *>(this); }
};

template <typename Pixel>
struct Least : public Reduction<Least<Pixel>, Pixel> {
  Pixel value = UINT16_MAX;
  __device__ bool better(Pixel a, Pixel b) const { return a < b; }
};
template <typename Pixel>
struct Most final : public Reduction<Most<Pixel>, Pixel> {
  Pixel value = 0;
  __device__ bool better(Pixel a, Pixel b) const { return a > b; }
};

// A window is a set of runs: how far each row reaches to both sides.
struct Disk {
  enum : int { radius = 2 };
  static __device__ int reach(int dy) {
    constexpr signed char reaches[2 * radius + 1] = {1, 2, 2, 2, 1};
    return reaches[dy + radius];
  }
};
template <int R>
struct Square {
  static constexpr int radius = R;
  __device__ static constexpr int reach(int) { return R; }
};

namespace detail {
template <template <typename> class R, class Window, typename Pixel>
__device__ __noinline__ Pixel window(const Pixel *tile, int pitch, int x, int y, Size size, int2 at) {
  R<Pixel> result;
  for (int dy = -Window::radius; dy <= Window::radius; ++dy) {
    if (at.y + dy < 0 || at.y + dy >= size.height) continue;
    const int reach = Window::reach(dy);
    for (int dx = -reach; dx <= reach; ++dx) {
      if (at.x + dx >= 0 && at.x + dx < size.width) result.add(tile[(y + dy) * pitch + x + dx]);
    }
  }
  return result.get();
}
}  // namespace detail

template <template <typename> class R, class Window, typename Pixel, bool top_hat = false>
__global__ void filter(const Pixel *in, Pixel *out, Size size) {
  extern __shared__ unsigned char raw[];
  constexpr int r = Window::radius;
  auto *tile = reinterpret_cast<Pixel *>(raw);
  const int pitch = blockDim.x + 2 * r, rows = blockDim.y + 2 * r;
  const int2 at = {int(blockIdx.x * blockDim.x + threadIdx.x), int(blockIdx.y * blockDim.y + threadIdx.y)};
  for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < pitch * rows; i += blockDim.x * blockDim.y) {
    const int x = int(blockIdx.x * blockDim.x) + i % pitch - r, y = int(blockIdx.y * blockDim.y) + i / pitch - r;
    tile[i] = x >= 0 && y >= 0 && x < size.width && y < size.height ? in[y * size.width + x] : Pixel(0);
  }
  __syncthreads();
  if (at.x >= size.width || at.y >= size.height) return;
  const Pixel found = detail::window<R, Window>(tile, pitch, threadIdx.x + r, threadIdx.y + r, size, at);
  if constexpr (top_hat) out[at.y * size.width + at.x] = in[at.y * size.width + at.x] - found;
  else out[at.y * size.width + at.x] = found;
}

using Kernel16 = void (*)(const uint16_t *, uint16_t *, Size);
inline Kernel16 find(const std::string &name) {
  static const std::unordered_map<std::string, Kernel16> kernels = {
      {"erode", filter<Least, Disk, uint16_t>}, {"dilate", filter<Most, Square<1>, uint16_t>}, {"tophat", filter<Least, Square<1>, uint16_t, true>}};
  return kernels.at(name);
}
inline void run(const std::string &name, const uint16_t *in, uint16_t *out, Size size) {
  const dim3 block(32, 8);
  find(name)<<<dim3((size.width + 31) / 32, (size.height + 7) / 8), block, 36 * 12 * sizeof(uint16_t)>>>(in, out, size);
}

}  // namespace morph

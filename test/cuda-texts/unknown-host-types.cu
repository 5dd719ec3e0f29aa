// A program of which the host uses libraries that are not installed, in classes, aliases, macros and functions.
#include <optional>
#include <filesystem>
#include <opencv2/opencv.hpp>
#include <torch/types.h>
#include "spdlog/spdlog.h"
#if defined(WIN32) || defined(MACOSX)
#include <windows_or_mac.h>
#endif
using namespace cv;
namespace files = std::filesystem;
class Widget;
struct Settings : Base {
  std::optional<int> count;
  files::path folder;
  MYSQL* database;
  Widget* widget;
  struct Inner {
    Foreign member;
  } inner;
  Settings();
  int total() const;
};
Settings::Settings() : count(3) {}
int Settings::total() const { return *count; }
using Image = cv::Mat;
typedef torch::Tensor Tensor;
using Several = std::optional<Settings>;
static Image shown;
#define MAIN int main(int argc, char** argv)
REGISTER_OP("scale").Input("values: float").SetShapeFn([](Context* c) { return c->same(); });
TEST_CASE("scale", "[cpu]") { SECTION("one") { REQUIRE(total(1) == 3); } }
BENCHMARK(total)->Range(1, 8);
DEFINE_int32(count, 10, "how many");
Several several();

struct Scale {
  float by;
  __device__ float of(float x) const;
};
__device__ float Scale::of(float x) const { return by * x; }
using Real = float;
enum Mode { PLAIN, NEGATED };

__global__ void scale(const Real* x, Real* y, Scale s) {
  y[threadIdx.x] = (x[threadIdx.x] < 0 ? NEGATED : PLAIN) + s.of(x[threadIdx.x]);
}

#define LAUNCHER(name, T)                        \
  void name(T* x, T* y, cudaStream_t stream) {   \
    scale<<<1, 32, 0, stream>>>(x, y, Scale{2}); \
    cudaStreamSynchronize(stream);               \
  }
#define REPORTER(name) \
  std::string report_##name() { return std::to_string(1); }
REPORTER(first)
REPORTER(second);
Tensor forward(Tensor x) {
  TORCH_CHECK(x.is_cuda());
  scale<<<1, 32>>>(x.data_ptr<float>(), x.data_ptr<float>(), Scale{2});
  return x;
}
LAUNCHER(launch_float, float)

MAIN {
  float* values;
  cudaMalloc(&values, 40);
  return 0;
}

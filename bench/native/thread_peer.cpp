// Threads of C++ that copy and compute without Millrace: the peer "C++ threads" of bench/main.ts on the CPU device,
// with these requests (conversation.h), as driver_peer.cpp has them. Each of three threads does the work of one stream.
//
//   both KIB N        N frames up and down, nothing looked at
//   frames KIB N      N frames that each thread fills, sends up, through a kernel and down, and looks at
//   plain KIB N       the same from one ordinary array, to a new array each time
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "conversation.h"
#include "kernel_image.h"

namespace {

using namespace millrace::bench;  // NOLINT: the program is a benchmark

class ThreadFrames {
 public:
  explicit ThreadFrames(size_t bytes) : bytes_(bytes), length_(bytes / sizeof(float)), ordinary_(length_, 1.0f) {
    for (Lane& lane : lanes_) {
      for (auto* memory : {&lane.source, &lane.target, &lane.x}) memory->assign(length_, 0.0f);
    }
  }

  std::vector<double> Both(int count) {
    return {Timed(count, [this](Lane& lane, int) {
      Up(lane);
      Down(lane);
    })};
  }

  std::vector<double> Loop(int count) {
    const double seconds = Timed(count, [this](Lane& lane, int n) {
      lane.source[0] = static_cast<float>(n);
      Up(lane);
      for (float& value : lane.x) value += 1;
      Down(lane);
      lane.is_right &= lane.target[0] == static_cast<float>(n + 1);
    });
    return Checked(seconds);
  }

  std::vector<double> Plain(int count) {
    const double seconds = Timed(count, [this](Lane& lane, int) {
      const std::unique_ptr<float[]> result(new float[length_]);
      std::memcpy(lane.x.data(), ordinary_.data(), bytes_);
      for (float& value : lane.x) value += 1;
      std::memcpy(result.get(), lane.x.data(), bytes_);
      lane.is_right &= result[0] == 2;
    });
    return Checked(seconds);
  }

 private:
  struct Lane {
    std::vector<float> source;
    std::vector<float> target;
    std::vector<float> x;
    bool is_right = true;
  };

  void Up(Lane& lane) { std::memcpy(lane.x.data(), lane.source.data(), bytes_); }
  void Down(Lane& lane) { std::memcpy(lane.target.data(), lane.x.data(), bytes_); }

  /// Of one frame: each thread works on its own frames.
  template <typename Work>
  double Timed(int count, Work work) {
    const auto start = Clock::now();
    std::array<std::thread, 3> threads;
    for (size_t at = 0; at < threads.size(); ++at) {
      threads[at] = std::thread([&, at] {
        for (int n = static_cast<int>(at); n < count; n += 3) work(lanes_[at], n);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return Seconds(start) / count;
  }

  std::vector<double> Checked(double seconds) {
    for (const Lane& lane : lanes_) {
      if (!lane.is_right) Fail("a frame has a wrong value");
    }
    return {seconds};
  }

  size_t bytes_;
  size_t length_;
  std::vector<float> ordinary_;
  std::array<Lane, 3> lanes_;
};

}  // namespace

int main() {
  std::map<size_t, ThreadFrames> sizes;
  return Converse(__VERSION__, [&](const std::string& what, std::istringstream& line) -> std::vector<double> {
    const size_t bytes = static_cast<size_t>(NextNumber(line)) << 10;
    const int count = NextNumber(line);
    if (bytes == 0 || count == 0) return {};
    ThreadFrames& frames = sizes.try_emplace(bytes, bytes).first->second;
    if (what == "both") return frames.Both(count);
    if (what == "frames") return frames.Loop(count);
    if (what == "plain") return frames.Plain(count);
    return {};
  });
}

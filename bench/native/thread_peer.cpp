// Threads of C++ that copy and compute without Millrace: the peer "C++ threads" of bench/main.ts on the CPU device,
// with these requests (conversation.h), as driver_peer.cpp has them. Each of three threads does the work of one stream.
//
//   streams KIB N     N frames, nothing awaited: one of them up, down, up and kernel and down, up and down
//   frames KIB N      N frames that each thread fills, sends up, through a kernel and down, and looks at
//   plain KIB N       the same from one ordinary array, to a new array each time
#include <algorithm>
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
    const double copy = Timed(60, [this](Lane& lane, int) { Up(lane); });
    for (int round = 0; round < 4; ++round) {
      const auto start = Clock::now();
      for (int n = 0; n < 20; ++n) Spin(lanes_[0]);
      steps_ = std::max(1, static_cast<int>(steps_ * copy / (Seconds(start) / 20)));
    }
  }

  std::vector<double> Streams(int count) {
    const auto up = [this](Lane& lane, int) { Up(lane); };
    const auto down = [this](Lane& lane, int) { Down(lane); };
    const auto all = [this](Lane& lane, int) {
      Up(lane);
      Spin(lane);
      Down(lane);
    };
    const auto both = [this](Lane& lane, int) {
      Up(lane);
      Down(lane);
    };
    return {Timed(count, up), Timed(count, down), Timed(count, all), Timed(count, both)};
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
    volatile float y = 0;
    bool is_right = true;
  };

  void Up(Lane& lane) { std::memcpy(lane.x.data(), lane.source.data(), bytes_); }
  void Down(Lane& lane) { std::memcpy(lane.target.data(), lane.x.data(), bytes_); }
  void Spin(Lane& lane) {
    float value = 0;
    for (int n = 0; n < steps_; ++n) value = value * 0.5f + 1;
    lane.y = value;
  }

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
  int steps_ = 10'000;
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
    if (what == "streams") return frames.Streams(count);
    if (what == "frames") return frames.Loop(count);
    if (what == "plain") return frames.Plain(count);
    return {};
  });
}

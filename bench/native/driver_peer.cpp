// The CUDA driver alone, without Millrace: the peer "C++ driver" of bench/main.ts, with these requests
// (conversation.h):
//
//   driver_peer [ordinal]
//
//   burst N           one launch of a kernel with three arguments, on the calling thread
//   sustained N       one launch of an empty kernel, until the device has finished all of them
//   round_trip N IDLE_MS     launch, a word that the device writes, a host that spins on it
//   blocking N IDLE_MS       launch, cuStreamSynchronize
//   events N          N events, each recorded and then synchronised with in order: one of them
//   up MIB, down MIB  ordinary memory
//   pinned up|down MIB clock|events N
//   peer MIB N        from the second GPU to this one, access granted
//   streams KIB N     N frames on three streams, nothing awaited: one of them up, down, up and kernel and down, up and
//   down
//   many KIB N LANES  the same on more streams
//   two KIB N         loops of frames on this GPU and on the second one at once: their rate, divided by that of one
//   alone batch KIB COUNT N N batches of COUNT copies up: one of them until its call returns, and until it is done
//   frames KIB N, graphs KIB N, plain KIB N
//                     a loop over N frames on three streams, page-locked; the same as graphs; ordinary memory
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "cuda/driver.h"
#include "driver_frames.h"
#include "kernel_image.h"

namespace {

using namespace millrace::bench;  // NOLINT: the program is a benchmark
using namespace millrace::cuda;   // NOLINT: the program speaks of little else

class Peer {
 public:
  explicit Peer(int ordinal) {
    if (!LoadDriver().is_loaded) {
      std::printf("{\"error\": \"there is no CUDA driver\"}\n");
      std::exit(2);
    }
    MR_CALL(cuDeviceGet, &device_, ordinal);
    MR_CALL(cuDevicePrimaryCtxRetain, &context_, device_);
    MR_CALL(cuCtxSetCurrent, context_);
    const std::string image = CudaImage();
    MR_CALL(cuModuleLoadData, &module_, image.c_str());
    MR_CALL(cuModuleGetFunction, &empty_, module_, "empty");
    MR_CALL(cuModuleGetFunction, &three_, module_, "three");
    MR_CALL(cuStreamCreateWithPriority, &stream_, CU_STREAM_NON_BLOCKING, 0);
    void* word = nullptr;
    MR_CALL(cuMemHostAlloc, &word, 4096, kMapped);
    word_ = static_cast<volatile uint64_t*>(word);
    *word_ = 0;
    MR_CALL(cuMemHostGetDevicePointer, &word_address_, word, 0);
    for (CUevent& event : events_) MR_CALL(cuEventCreate, &event, 0);
  }

  std::vector<double> Burst(int count) {
    float a = 2;
    CUdeviceptr x = word_address_;
    void* params[] = {&a, &x, &x};
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) MR_CALL(cuLaunchKernel, three_, 1, 1, 1, 1, 1, 1, 0, stream_, params, nullptr);
    const double seconds = Seconds(start) / count;
    Synchronize();
    return {seconds};
  }

  std::vector<double> Sustained(int count) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) Launch();
    Synchronize();
    return {Seconds(start) / count};
  }

  std::vector<double> RoundTrip(int count, int idle_ms, bool is_blocking) {
    std::vector<double> seconds;
    for (int i = 0; i < count; ++i) {
      if (idle_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(idle_ms));
      const auto start = Clock::now();
      Launch();
      if (is_blocking) {
        Synchronize();
      } else {
        const uint64_t wanted = ++written_;
        MR_CALL(cuStreamWriteValue64, stream_, word_address_, wanted, 0);
        while (*word_ < wanted && failure.empty()) {
        }
      }
      seconds.push_back(Seconds(start));
    }
    return seconds;
  }

  std::vector<double> Events(int count) {
    std::vector<CUevent> events(static_cast<size_t>(count));
    for (CUevent& event : events) MR_CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    const auto start = Clock::now();
    for (CUevent event : events) MR_CALL(cuEventRecord, event, stream_);
    for (CUevent event : events) MR_CALL(cuEventSynchronize, event);
    const double seconds = Seconds(start) / count;
    for (CUevent event : events) MR_CALL(cuEventDestroy, event);
    return {seconds};
  }

  std::vector<double> Ordinary(bool is_up, size_t bytes) {
    std::vector<char> host(bytes, 1);
    const CUdeviceptr memory = Memory(bytes);
    const auto start = Clock::now();
    Copy(is_up, memory, host.data(), bytes);
    Synchronize();
    return {Seconds(start)};
  }

  std::vector<double> Pinned(bool is_up, size_t bytes, bool by_events, int count) {
    void* const pinned = PinnedMemory(bytes);
    const CUdeviceptr memory = Memory(bytes);
    std::vector<double> seconds;
    for (int i = 0; i < count; ++i) {
      const auto start = Clock::now();
      if (by_events) MR_CALL(cuEventRecord, events_[0], stream_);
      Copy(is_up, memory, pinned, bytes);
      if (by_events) MR_CALL(cuEventRecord, events_[1], stream_);
      Synchronize();
      float milliseconds = 0;
      if (by_events) MR_CALL(cuEventElapsedTime, &milliseconds, events_[0], events_[1]);
      seconds.push_back(by_events ? static_cast<double>(milliseconds) / 1e3 : Seconds(start));
    }
    return seconds;
  }

  std::vector<double> PeerCopy(size_t bytes, int count) {
    const CUdeviceptr dst = Memory(bytes);
    if (other_context_ == nullptr) {
      CUdevice other = 0;
      MR_CALL(cuDeviceGet, &other, 1);
      MR_CALL(cuDevicePrimaryCtxRetain, &other_context_, other);
      int can = 0;
      MR_CALL(cuDeviceCanAccessPeer, &can, device_, other);
      if (can != 0) MR_CALL(cuCtxEnablePeerAccess, other_context_, 0);
    }
    if (other_bytes_ < bytes) {
      MR_CALL(cuCtxSetCurrent, other_context_);
      if (other_memory_ != 0) MR_CALL(cuMemFree, other_memory_);
      MR_CALL(cuMemAlloc, &other_memory_, bytes);
      MR_CALL(cuCtxSetCurrent, context_);
      other_bytes_ = bytes;
    }
    std::vector<double> seconds;
    for (int i = 0; i < count; ++i) {
      const auto start = Clock::now();
      MR_CALL(cuMemcpyPeerAsync, dst, context_, other_memory_, other_context_, bytes, stream_);
      Synchronize();
      seconds.push_back(Seconds(start));
    }
    return seconds;
  }

  DriverFrames& Frames(size_t bytes, size_t lanes = 3) {
    return frames_.try_emplace({bytes, lanes}, context_, module_, bytes, lanes).first->second;
  }

  std::vector<double> Two(size_t bytes, int count) {
    if (other_ == nullptr) {
      int devices = 0;
      MR_CALL(cuDeviceGetCount, &devices);
      if (devices < 2) {
        Fail("this machine has one GPU");
        return {};
      }
      other_ = std::make_unique<Peer>(1);
      MR_CALL(cuCtxSetCurrent, context_);
    }
    const auto loop = [&](Peer& peer) {
      MR_CALL(cuCtxSetCurrent, peer.context_);
      return peer.Frames(bytes).Loop(count, false)[0];
    };
    const double alone = (loop(*this) + loop(*other_)) / 2;
    const auto start = Clock::now();
    std::thread second([&] { loop(*other_); });
    loop(*this);
    second.join();
    const double both = Seconds(start) / (2 * count);
    MR_CALL(cuCtxSetCurrent, context_);
    return {alone / both};
  }

  std::vector<double> Batches(size_t bytes, int count, int repeats) {
    const CUdeviceptr memory = Memory(bytes * static_cast<size_t>(count));
    const auto host = reinterpret_cast<CUdeviceptr>(PinnedMemory(bytes * static_cast<size_t>(count)));
    std::vector<CUdeviceptr> dsts;
    std::vector<CUdeviceptr> srcs;
    std::vector<size_t> sizes(static_cast<size_t>(count), bytes);
    for (size_t n = 0; n < sizes.size(); ++n) {
      dsts.push_back(memory + n * bytes);
      srcs.push_back(host + n * bytes);
    }
    double call = 0;
    double done = 0;
    for (int n = 0; n < repeats; ++n) {
      CUmemcpyAttributes attributes{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
      size_t first = 0;
      size_t failed = 0;
      const auto start = Clock::now();
      MR_CALL(cuMemcpyBatchAsync, dsts.data(), srcs.data(), sizes.data(), sizes.size(), &attributes, &first, 1, &failed,
              stream_);
      call += Seconds(start);
      Synchronize();
      done += Seconds(start);
    }
    return {call / repeats, done / repeats};
  }

 private:
  static constexpr unsigned kMapped = 2;  // CU_MEMHOSTALLOC_DEVICEMAP

  void Launch() { MR_CALL(cuLaunchKernel, empty_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr); }
  void Synchronize() { MR_CALL(cuStreamSynchronize, stream_); }
  void Copy(bool is_up, CUdeviceptr memory, void* host, size_t bytes) {
    const auto address = reinterpret_cast<CUdeviceptr>(host);
    MR_CALL(cuMemcpyAsync, is_up ? memory : address, is_up ? address : memory, bytes, stream_);
  }
  void* PinnedMemory(size_t bytes) {
    if (pinned_bytes_ < bytes) {
      if (pinned_ != nullptr) MR_CALL(cuMemFreeHost, pinned_);
      MR_CALL(cuMemHostAlloc, &pinned_, bytes, 0);
      pinned_bytes_ = bytes;
    }
    return pinned_;
  }
  CUdeviceptr Memory(size_t bytes) {
    if (memory_bytes_ >= bytes) return memory_;
    if (memory_ != 0) MR_CALL(cuMemFree, memory_);
    MR_CALL(cuMemAlloc, &memory_, bytes);
    memory_bytes_ = bytes;
    return memory_;
  }

  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction empty_ = nullptr;
  CUfunction three_ = nullptr;
  CUstream stream_ = nullptr;
  std::array<CUevent, 2> events_{};
  volatile uint64_t* word_ = nullptr;
  CUdeviceptr word_address_ = 0;
  uint64_t written_ = 0;
  CUdeviceptr memory_ = 0;
  size_t memory_bytes_ = 0;
  void* pinned_ = nullptr;
  size_t pinned_bytes_ = 0;
  CUcontext other_context_ = nullptr;
  CUdeviceptr other_memory_ = 0;
  size_t other_bytes_ = 0;
  std::map<std::pair<size_t, size_t>, DriverFrames> frames_;  // By bytes and lanes.
  std::unique_ptr<Peer> other_;
};

std::vector<double> Answer(Peer& peer, const std::string& what, std::istringstream& line) {
  const auto bytes = [&] { return static_cast<size_t>(NextNumber(line)) << 20; };
  if (what == "burst") return peer.Burst(NextNumber(line));
  if (what == "sustained") return peer.Sustained(NextNumber(line));
  if (what == "events") return peer.Events(NextNumber(line));
  if (what == "up" || what == "down") return peer.Ordinary(what == "up", bytes());
  if (what == "round_trip" || what == "blocking") {
    const int count = NextNumber(line);
    return peer.RoundTrip(count, NextNumber(line), what == "blocking");
  }
  if (what == "pinned") {
    const bool is_up = NextWord(line) == "up";
    const size_t size = bytes();
    const bool by_events = NextWord(line) == "events";
    return peer.Pinned(is_up, size, by_events, NextNumber(line));
  }
  if (what == "peer") {
    const size_t size = bytes();
    return peer.PeerCopy(size, NextNumber(line));
  }
  if (what == "two") {
    const size_t size = static_cast<size_t>(NextNumber(line)) << 10;
    return peer.Two(size, NextNumber(line));
  }
  if (what == "batch") {
    const size_t size = static_cast<size_t>(NextNumber(line)) << 10;
    const int count = NextNumber(line);
    return peer.Batches(size, count, NextNumber(line));
  }
  if (what == "many") {
    const size_t size = static_cast<size_t>(NextNumber(line)) << 10;
    const int count = NextNumber(line);
    return peer.Frames(size, static_cast<size_t>(NextNumber(line))).Streams(count);
  }
  if (what == "streams" || what == "frames" || what == "graphs" || what == "plain") {
    DriverFrames& frames = peer.Frames(static_cast<size_t>(NextNumber(line)) << 10);
    const int count = NextNumber(line);
    if (what == "streams") return frames.Streams(count);
    return what == "plain" ? frames.Plain(count) : frames.Loop(count, what == "graphs");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Peer peer(argc > 1 ? std::atoi(argv[1]) : 0);
  return Converse(DriverVersionText(LoadDriver().version),
                  [&](const std::string& what, std::istringstream& line) { return Answer(peer, what, line); });
}

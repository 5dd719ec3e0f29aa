// Frames that go up, through a kernel and down on three streams or more, by the driver alone: requests of
// driver_peer.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conversation.h"
#include "cuda/driver.h"
#include "kernel_image.h"

namespace millrace::bench {

inline void Check(cuda::CUresult code, const char* what) {
  if (code != cuda::CUDA_SUCCESS)
    Fail(std::string(what) + " failed with code " + std::to_string(static_cast<int>(code)));
}

#define MR_CALL(function, ...) ::millrace::bench::Check(::millrace::cuda::Cuda().function(__VA_ARGS__), #function)

class DriverFrames {
 public:
  DriverFrames(cuda::CUcontext context, cuda::CUmodule module, size_t bytes, size_t lanes)
      : lanes_(lanes),
        bytes_(bytes),
        length_(static_cast<int>(bytes / sizeof(float))),
        source_(bytes / sizeof(float), 1.0f) {
    MR_CALL(cuModuleGetFunction, &increment_, module, "increment");
    MR_CALL(cuModuleGetFunction, &spin_, module, "spin");
    for (Lane& lane : lanes_) {
      MR_CALL(cuStreamCreateWithPriority, &lane.stream, cuda::CU_STREAM_NON_BLOCKING, 0);
      for (float** host : {&lane.source, &lane.target}) {
        MR_CALL(cuMemHostAlloc, reinterpret_cast<void**>(host), bytes, 0);
        std::fill_n(*host, length_, 0.0f);
      }
      MR_CALL(cuMemAlloc, &lane.x, bytes);
      MR_CALL(cuMemAlloc, &lane.y, sizeof(float));
      MR_CALL(cuMemsetD8Async, lane.x, 0, bytes, lane.stream);
      lane.graph = MakeGraph(lane, context);
    }
    Synchronize();
    double copy = Timed(60, [this](Lane& lane) { Up(lane); });
    // The first copies take longer.
    for (int round = 0; round < 2; ++round) copy = std::min(copy, Timed(60, [this](Lane& lane) { Up(lane); }));
    for (int round = 0; round < 4; ++round) {
      steps_ = std::max(1, static_cast<int>(steps_ * copy / KernelSeconds()));
    }
  }

  /// Of one frame while nothing is awaited: only up, only down, up and kernel and down, up and down, only the kernel.
  std::vector<double> Streams(int count) {
    const auto up = [this](Lane& lane) { Up(lane); };
    const auto down = [this](Lane& lane) { Down(lane); };
    const auto all = [this](Lane& lane) {
      Up(lane);
      Spin(lane);
      Down(lane);
    };
    const auto both = [this](Lane& lane) {
      Up(lane);
      Down(lane);
    };
    return {Timed(count, up), Timed(count, down), Timed(count, all), Timed(count, both), KernelSeconds()};
  }

  /// Of one frame of a loop that fills it, sends it through its lane and takes what came back three frames earlier.
  std::vector<double> Loop(int count, bool is_graph) {
    const auto start = Clock::now();
    for (int n = 0; n < count; ++n) {
      Lane& lane = lanes_[static_cast<size_t>(n) % lanes_.size()];
      MR_CALL(cuStreamSynchronize, lane.stream);
      const int before = n - static_cast<int>(lanes_.size());
      if (before >= 0 && *lane.target != static_cast<float>(before + 1)) Fail("a frame has a wrong value");
      *lane.source = static_cast<float>(n);
      if (is_graph) {
        MR_CALL(cuGraphLaunch, lane.graph, lane.stream);
        continue;
      }
      Up(lane);
      Increment(lane);
      Down(lane);
    }
    Synchronize();
    return {Seconds(start) / count};
  }

  /// The same with ordinary memory: from one array, to a new array each time.
  std::vector<double> Plain(int count) {
    const auto start = Clock::now();
    for (int n = 0; n < count; ++n) {
      Lane& lane = lanes_[static_cast<size_t>(n) % lanes_.size()];
      const std::unique_ptr<float[]> result(new float[static_cast<size_t>(length_)]);
      MR_CALL(cuMemcpyAsync, lane.x, Address(source_.data()), bytes_, lane.stream);
      Increment(lane);
      MR_CALL(cuMemcpyAsync, Address(result.get()), lane.x, bytes_, lane.stream);
      MR_CALL(cuStreamSynchronize, lane.stream);
      if (result[0] != 2) Fail("a frame has a wrong value");
    }
    return {Seconds(start) / count};
  }

 private:
  struct Lane {
    cuda::CUstream stream = nullptr;
    float* source = nullptr;
    float* target = nullptr;
    cuda::CUdeviceptr x = 0;
    cuda::CUdeviceptr y = 0;
    cuda::CUgraphExec graph = nullptr;
  };

  static cuda::CUdeviceptr Address(const void* host) { return reinterpret_cast<cuda::CUdeviceptr>(host); }

  void Up(Lane& lane) { MR_CALL(cuMemcpyAsync, lane.x, Address(lane.source), bytes_, lane.stream); }
  void Down(Lane& lane) { MR_CALL(cuMemcpyAsync, Address(lane.target), lane.x, bytes_, lane.stream); }
  void Spin(Lane& lane) {
    void* params[] = {&lane.y, &steps_};
    MR_CALL(cuLaunchKernel, spin_, 1, 1, 1, 1, 1, 1, 0, lane.stream, params, nullptr);
  }
  void Increment(Lane& lane) {
    void* params[] = {&lane.x, &length_};
    MR_CALL(cuLaunchKernel, increment_, Blocks(), 1, 1, kBlock, 1, 1, 0, lane.stream, params, nullptr);
  }
  unsigned Blocks() const { return (static_cast<unsigned>(length_) + kBlock - 1) / kBlock; }
  void Synchronize() { MR_CALL(cuCtxSynchronize); }

  /// Kernels of several streams run side by side, so the time of a kernel is that of one after another, on one stream.
  double KernelSeconds() {
    constexpr int kCount = 20;
    return Timed(kCount, [this](Lane&) { Spin(lanes_[0]); });
  }

  template <typename Work>
  double Timed(int count, Work work) {
    Synchronize();
    const auto start = Clock::now();
    for (int n = 0; n < count; ++n) work(lanes_[static_cast<size_t>(n) % lanes_.size()]);
    Synchronize();
    return Seconds(start) / count;
  }

  cuda::CUDA_MEMCPY3D CopyParams(cuda::CUdeviceptr dst, cuda::CUdeviceptr src) const {
    cuda::CUDA_MEMCPY3D copy{};
    // Unified addressing tells the driver where each side is.
    copy.srcMemoryType = copy.dstMemoryType = cuda::CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = src;
    copy.dstDevice = dst;
    copy.srcPitch = copy.dstPitch = copy.WidthInBytes = bytes_;
    copy.srcHeight = copy.dstHeight = copy.Height = copy.Depth = 1;
    return copy;
  }

  cuda::CUgraphExec MakeGraph(Lane& lane, cuda::CUcontext context) {
    cuda::CUgraph graph = nullptr;
    cuda::CUgraphExec exec = nullptr;
    std::array<cuda::CUgraphNode, 3> nodes{};
    void* params[] = {&lane.x, &length_};
    const cuda::CUDA_KERNEL_NODE_PARAMS kernel = {increment_, Blocks(), 1,      1,       kBlock,  1,
                                                  1,          0,        params, nullptr, nullptr, context};
    MR_CALL(cuGraphCreate, &graph, 0);
    const cuda::CUDA_MEMCPY3D up = CopyParams(lane.x, Address(lane.source));
    const cuda::CUDA_MEMCPY3D down = CopyParams(Address(lane.target), lane.x);
    MR_CALL(cuGraphAddMemcpyNode, &nodes[0], graph, nullptr, 0, &up, context);
    MR_CALL(cuGraphAddKernelNode, &nodes[1], graph, &nodes[0], 1, &kernel);
    MR_CALL(cuGraphAddMemcpyNode, &nodes[2], graph, &nodes[1], 1, &down, context);
    MR_CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
    return exec;
  }

  static constexpr unsigned kBlock = 256;

  std::vector<Lane> lanes_;
  size_t bytes_;
  int length_;
  int steps_ = 10'000;
  std::vector<float> source_;
  cuda::CUfunction increment_ = nullptr;
  cuda::CUfunction spin_ = nullptr;
};

}  // namespace millrace::bench

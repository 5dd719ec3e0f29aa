// Shared by the CUDA backend's tests: a device with this thread as its channel, page-locked memory, and a kernel that
// blocks a stream until it is released.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cuda/backend.h"
#include "fake_controls.h"
#include "testing.h"

namespace millrace::testing {

using hal::Ticket;
using protocol::TimelineSlot;

inline std::vector<std::byte> kernel_image;

inline hal::Backend& Cuda() {
  static std::unique_ptr<hal::Backend> backend = MakeCudaBackend();
  return *backend;
}

inline size_t Devices() {
  return Cuda().Enumerate().devices.size();
}

inline int Code(const Status& status) {
  return static_cast<int>(status.code());
}

/// The driver keeps the registrations of a lost device, so this memory must not be reused.
inline bool IsLost(hal::Device& device) {
  // Another device of the thread may have closed, and left it none to ask.
  return !device.BindChannelThread().ok() || device.FreeBytes() == 0;
}

/// Host memory that is page-locked for a device during this object's lifetime, on pages of its own.
struct Pinned {
  Pinned(hal::Device& device, size_t size) : device(device), bytes(size) {
    const size_t pages = (size + 4095) / 4096 * 4096;
    data = static_cast<std::byte*>(std::aligned_alloc(4096, pages));
    std::memset(data, 0, pages);
    MR_CHECK(device.RegisterHost({data, bytes}).ok());
  }
  ~Pinned() {
    MR_CHECK(device.UnregisterHost({data, bytes}).ok());
    if (!IsLost(device)) std::free(data);
  }
  template <typename T>
  T* As() {
    return reinterpret_cast<T*>(data);
  }
  hal::Device& device;
  size_t bytes;
  std::byte* data;
};

/// An open device with the calling thread as its channel, and a few timeline slots.
struct Opened {
  explicit Opened(uint32_t ordinal) {
    slots = static_cast<TimelineSlot*>(std::aligned_alloc(4096, 4096));
    std::memset(slots, 0, 4096);
    auto opened = Cuda().Open(ordinal, {slots, 4});
    if (!opened.ok()) std::printf("  open: %s (%d)\n", opened.status().note(), opened.status().driver_code());
    MR_CHECK(opened.ok());
    device = std::move(opened).value();
    MR_CHECK(device->BindChannelThread().ok());
  }
  ~Opened() {
    const bool is_lost = IsLost(*device);
    device->Close();
    device.reset();
    if (!is_lost) std::free(slots);
  }

  std::unique_ptr<hal::Stream> NewStream(int slot, int priority = 0) {
    auto stream = device->CreateStream({.priority = priority, .slot = &slots[slot], .sink = nullptr});
    MR_CHECK(stream.ok());
    return std::move(stream).value();
  }

  std::shared_ptr<hal::Kernel> Load(const char* entry) {
    auto kernel = device->LoadKernel({.image = kernel_image, .entry = entry});
    if (!kernel.ok()) std::printf("  load: %s (%d)\n", kernel.status().note(), kernel.status().driver_code());
    MR_CHECK(kernel.ok());
    return std::move(kernel).value();
  }

  TimelineSlot* slots;
  std::unique_ptr<hal::Device> device;
};

inline bool Finish(hal::Stream& stream, Ticket ticket) {
  return Eventually([&] {
    auto completed = stream.Resolve(ticket);
    return completed.ok() && completed.value() >= ticket;
  });
}

/// Removes all closed streams that the backend would reuse, on the fake driver.
inline std::vector<std::unique_ptr<hal::Stream>> TakeKept(Opened& opened) {
  std::vector<std::unique_ptr<hal::Stream>> taken;
  FailCalls("cuStreamCreateWithPriority:0:2");
  for (;;) {
    auto stream = opened.device->CreateStream({.priority = 0, .slot = &opened.slots[3], .sink = nullptr});
    if (!stream.ok()) break;
    taken.push_back(std::move(stream).value());
  }
  FailCalls("");
  return taken;
}

/// A kernel that blocks a stream until `Open`.
struct Gate {
  explicit Gate(Opened& opened) : word(*opened.device, 4), kernel(opened.Load("hold")) {}
  Status Launch(hal::Stream& stream, Ticket ticket) {
    unsigned* address = word.As<unsigned>();
    void* params[] = {&address};
    return stream.Launch(ticket,
                         {.kernel = kernel.get(), .grid = {}, .block = {}, .shared_bytes = 0, .params = params});
  }
  void Open() { std::atomic_ref(*word.As<unsigned>()).store(1, std::memory_order_release); }
  Pinned word;
  std::shared_ptr<hal::Kernel> kernel;
};

/// Reads the kernels of cuda_kernels.cu, built for the driver of this test run.
inline bool ReadKernels(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.empty()) std::printf("no kernels in '%s'\n", path);
  kernel_image.resize(bytes.size());
  if (!bytes.empty()) std::memcpy(kernel_image.data(), bytes.data(), bytes.size());
  return !bytes.empty();
}

}  // namespace millrace::testing

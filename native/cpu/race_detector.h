// Looks for races of shared memory in the blocks of one call of an entry (RaceShadow), and stops the kernel at the
// first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cpu/race_shadow.h"
#include "cpu/shim/launch_abi.h"

namespace millrace::cpu {

class Image;
class KernelRun;

/// A race for a fault report: see native/protocol/protocol.json.
struct RaceReport {
  /// The byte, counted from the start of the variables or of the dynamic shared memory.
  uint64_t byte = 0;
  bool is_dynamic = false;
  RaceAccess first;
  RaceAccess second;
};

/// Thread: the one that runs the blocks.
class RaceDetector final : public MrRaces {
 public:
  /// `launch` has the dynamic shared memory.
  RaceDetector(KernelRun& run, const Image& image, const MrLaunch& launch);
  RaceDetector(const RaceDetector&) = delete;
  RaceDetector& operator=(const RaceDetector&) = delete;

  [[nodiscard]] const std::optional<RaceReport>& found() const { return found_; }

 private:
  /// A call from the kernel. The method allocates, so a signal meanwhile is one of the runtime.
  template <auto method, typename... Given>
  static void Paused(MrRaces* self, Given... given);

  /// Variables of thread storage duration of an image: its `__shared__` variables, and some of the shim, which kernels
  /// only read.
  void FindVariables();
  [[nodiscard]] bool IsIgnored(uintptr_t address) const;
  void Look(const void* address, uint64_t bytes, unsigned how, const void* place);
  void Atomic(const void* address, uint64_t bytes, unsigned how, const void* place);
  void Event(unsigned event, uint64_t first, uint64_t second);
  /// Decides about the last access before the next event, which may be an atomic write to `changed`.
  void Settle(const void* changed);
  /// Stops the kernel if there is a race.
  void LeaveIfFound();

  KernelRun& run_;
  const Image& image_;
  RaceShadow shadow_;
  std::optional<RaceReport> found_;
  /// Memory that collective functions use, which the shim implements with fewer barriers than CUDA.
  std::vector<std::pair<uintptr_t, uintptr_t>> ignored_;
  /// An access that may be a race. Of a write to bytes that another thread has written, `before_` has the bytes before
  /// it: it is a race if it changes them. A read of what another thread has changed by an atomic function is none if
  /// the thread goes on with an atomic function on the same bytes.
  std::optional<RaceReport> undecided_;
  const void* address_ = nullptr;
  std::vector<std::byte> before_;
};

}  // namespace millrace::cpu

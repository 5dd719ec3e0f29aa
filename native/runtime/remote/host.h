// The side of a device's process: gives the channel what its owner in another process sends, wakes that owner, and
// answers its calls.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "runtime/remote/record_source.h"
#include "runtime/remote/shared_block.h"
#include "runtime/stream_state.h"

namespace millrace {

class Channel;

namespace remote {

/// The channel's thread takes entries; a thread of its own answers calls. Otherwise as each function says.
class Host final : public RecordSource, public WakeTarget, public std::enable_shared_from_this<Host> {
 public:
  /// The block must live as long as this.
  explicit Host(SharedBlock& block) : block_(block) {}

  /// The channel is open: from now on calls are answered. Call it before the owner knows of the channel. Thread:
  /// control.
  Status Serve(const std::shared_ptr<Channel>& channel);
  /// From now on ends this process when issued work of a stream, or the channel's thread itself, makes no progress for
  /// so long. After Serve. Thread: control.
  Status EndIfHung(std::chrono::milliseconds timeout);

  [[nodiscard]] bool HasAny() const noexcept override {
    return block_.written.load(std::memory_order_acquire) != read_;
  }
  bool Take() override;
  [[nodiscard]] std::atomic<uint32_t>& sleeping() override { return block_.sleeping; }
  /// Wakes the owner. Thread: any.
  void Ring() noexcept override;

 private:
  void TakeEntry(EntryKind kind, std::span<const std::byte> body);
  void Publish() noexcept;
  void Watch(std::chrono::milliseconds timeout);
  void AnswerCalls();
  void Answer();
  template <typename T>
  void AnswerWith(std::span<const T> list);

  SharedBlock& block_;
  std::shared_ptr<Channel> kept_;
  std::atomic<Channel*> channel_{nullptr};  // Null until Serve.
  uint64_t read_ = 0;                       // Thread: the channel's.
  std::vector<std::byte> definition_;       // Of a graph, so far. Thread: that of calls.
};

}  // namespace remote
}  // namespace millrace

// The open device of a channel, and the two locks under which threads other than the channel's use it.
//
// `streams_mutex()` guards the backend streams and says whether the device takes other threads' work. A thread other
// than the channel's holds it while it uses a backend stream of this device. The channel's thread holds it while it
// makes or destroys one.
//
// `closing_mutex_` keeps the device open. Two kinds of long work hold it shared: the requests of the control thread,
// and the build of another device's graph that has nodes on this device (a blocking-calls thread). The channel's thread
// holds it exclusively while it closes the device. A thread that holds it does not wait for a channel. A thread that
// takes several takes them in the order of the channels' ids.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <type_traits>

#include "hal/hal.h"

namespace millrace {

class DeviceAccess {
 public:
  DeviceAccess(hal::Backend& backend, uint32_t id) : backend_(backend), id_(id) {}
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

  /// Thread: control, before the channel's thread starts. Blocks.
  Status Open(uint32_t ordinal, std::span<protocol::TimelineSlot> timeline);

  // ── Any thread. ──
  [[nodiscard]] const hal::Backend& backend() const { return backend_; }
  /// The channel's.
  [[nodiscard]] uint32_t id() const { return id_; }
  [[nodiscard]] const hal::DeviceInfo& info() const { return device_->info(); }
  [[nodiscard]] bool needs_polling() const { return needs_polling_; }
  [[nodiscard]] bool needs_locked_memory() const { return needs_locked_memory_; }
  [[nodiscard]] std::mutex& streams_mutex() { return streams_mutex_; }
  /// Null once the streams were refused. streams_mutex() is held.
  [[nodiscard]] hal::Device* IfOpen() { return refuses_streams_ ? nullptr : device_.get(); }
  /// `call(hal::Device&)` on an open device, which does not close meanwhile; else its result is a failure. `call` must
  /// not wait for the channel. Thread: any that the backend lets do this.
  template <typename Call>
  auto With(Call call) -> std::invoke_result_t<Call, hal::Device&> {
    std::shared_lock lock(closing_mutex_);
    if (is_shut_) return Closed();
    return call(*device_);
  }
  /// The device does not close while the returned lock is held. It is not held if the device was closed already.
  [[nodiscard]] std::shared_lock<std::shared_mutex> KeepOpen();
  /// Tries the route from `other` to this device. Neither closes meanwhile; both go on issuing. Blocks.
  Result<protocol::PeerRoute> ProbePeer(DeviceAccess& other);
  [[nodiscard]] static Status Closed();
  /// Whether kernels of the device with this ordinal may use this device's memory. Thread: any.
  [[nodiscard]] bool IsGranted(uint32_t peer, protocol::PeerWhat what) const {
    return backend_.peer_grants().Get(info().ordinal, peer, what) == hal::PeerGrants::State::kYes;
  }

  // ── The channel's thread. ──
  [[nodiscard]] hal::Device& device() { return *device_; }
  /// IfOpen is null from now on. streams_mutex() is held.
  void RefuseStreams() { refuses_streams_ = true; }
  [[nodiscard]] bool is_shut() const { return is_shut_; }
  /// Waits for the calls of With, calls `before`, and closes the device.
  template <typename Before>
  void Close(Before before) {
    std::lock_guard lock(closing_mutex_);
    is_shut_ = true;
    before();
    device_->Close();
  }

 private:
  hal::Backend& backend_;
  const uint32_t id_;
  std::unique_ptr<hal::Device> device_;
  bool needs_polling_ = false;
  bool needs_locked_memory_ = false;

  alignas(64) std::mutex streams_mutex_;
  bool refuses_streams_ = false;  // Guarded by streams_mutex_.

  std::shared_mutex closing_mutex_;
  bool is_shut_ = false;  // Guarded by closing_mutex_; the channel's thread, which writes it, reads it without.
};

}  // namespace millrace

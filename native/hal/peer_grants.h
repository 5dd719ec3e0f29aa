// Which devices of a backend may use memory of which others in kernels. Belongs to the process, as the driver's
// permissions do: closing a device changes nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "protocol/protocol.gen.h"

namespace millrace::hal {

/// By the ordinals of the device that has the memory and of the one that accesses it. Thread: any.
class PeerGrants {
 public:
  static constexpr uint32_t kMaxDevices = 64;
  enum class State : uint8_t {
    kNo,
    kYes,
    kEnding,  // Nothing more is issued that needs it; what was issued may still run.
  };

  [[nodiscard]] State Get(uint32_t owner, uint32_t peer, protocol::PeerWhat what) const {
    if (owner >= kMaxDevices || peer >= kMaxDevices) return State::kNo;
    return states_[owner][peer][Index(what)].load(std::memory_order_acquire);
  }
  void Set(uint32_t owner, uint32_t peer, protocol::PeerWhat what, State state) {
    if (owner < kMaxDevices && peer < kMaxDevices) states_[owner][peer][Index(what)].store(state);
  }

 private:
  static size_t Index(protocol::PeerWhat what) { return what == protocol::PeerWhat::kPool ? 1 : 0; }

  std::array<std::array<std::array<std::atomic<State>, 2>, kMaxDevices>, kMaxDevices> states_{};
};

/// A backend, whose grants the runtime keeps.
class WithPeerGrants {
 public:
  [[nodiscard]] PeerGrants& peer_grants() const { return peer_grants_; }

 private:
  mutable PeerGrants peer_grants_;
};

}  // namespace millrace::hal

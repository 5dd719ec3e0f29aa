// What the handles of a device name: memory, host memory, kernels, events, graphs and modules.
//
//   memory, host,
//   kernels           changed by the channel's thread, looked up by any thread: each has a mutex of its own
//   events, graphs,
//   owned, claims     the channel's thread only
//   modules           the control thread, inside DeviceAccess::With; DeviceAccess::Close clears them
//   numbers, counts   atomics
//
// A new kind of resource gets its table here, beside the others, with its line above.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hal/hal.h"
#include "runtime/channel_stats.h"
#include "runtime/event_entry.h"
#include "runtime/graphs.h"
#include "runtime/handle_table.h"
#include "runtime/host_entry.h"
#include "runtime/launches.h"
#include "runtime/memory_entry.h"
#include "runtime/owned_handles.h"
#include "runtime/shared_table.h"
#include "runtime/stream_state.h"

namespace millrace {

class ResourceTables {
 public:
  /// Indices of handles of one kind.
  static constexpr uint32_t kMaxHandles = 1u << protocol::kHandleIndexBits;

  // ── Any thread. ──
  /// The first of a run of indices, or kMaxHandles when there are not so many left.
  uint32_t ReserveHandles(protocol::HandleKind kind, uint32_t count);
  /// Where memory is on the device; nothing until it was made. Waits for no more than the end of its very record.
  [[nodiscard]] std::optional<uint64_t> AddressOf(uint32_t handle);
  /// Fills in what it knows.
  void Describe(ChannelStats& stats) const;
  /// Wakes all streams, of any channel, that wait for a handle.
  void WakeAll();

  // ── The channel's thread. ──
  /// Around the record that allocates this memory, for AddressOf.
  class Allocating {
   public:
    Allocating(ResourceTables& tables, uint32_t handle) : allocating_(tables.allocating_) {
      allocating_.store(handle, std::memory_order_relaxed);
    }
    ~Allocating() { allocating_.store(0, std::memory_order_release); }
    Allocating(const Allocating&) = delete;
    Allocating& operator=(const Allocating&) = delete;

   private:
    std::atomic<uint32_t>& allocating_;
  };
  void BindMemory(uint32_t handle, protocol::AllocKind kind, uint64_t bytes, std::unique_ptr<hal::Memory> memory);
  /// Memory that a failed operation should have made.
  void BindPoisoned(uint32_t handle, uint64_t bytes, FailureId failure);
  /// A further handle of the same memory.
  void BindAdopted(uint32_t handle, const MemoryRef& entry);
  /// The memory of its last handle is given back.
  void CountFreed(const MemoryEntry& entry);
  Result<EventRef> CreateEvent(hal::Device& device, uint32_t handle, protocol::EventKind kind);
  /// An event that launches of graphs record.
  EventRef BindGraphEvent(uint32_t handle);
  /// A handle names one graph until that is freed; a second definition changes nothing.
  void DefineGraph(uint32_t handle, GraphRef graph, uint32_t owner_id);
  /// The device closes. Graphs must have been ended.
  void Clear();

  alignas(64) SharedTable<MemoryRef> memory;
  SharedTable<HostEntry> host;
  SharedTable<KernelEntry> kernels;
  alignas(64) HandleTable<EventRef> events;
  Graphs graphs;
  OwnedHandles owned;
  ClaimedMemory claims;
  std::unordered_map<uint32_t, std::shared_ptr<hal::Module>> modules;

 private:
  alignas(64) std::atomic<uint32_t> next_handle_[5] = {};  // By HandleKind.
  std::atomic<uint64_t> live_memory_{0};
  std::atomic<uint64_t> live_bytes_{0};
  std::atomic<uint64_t> staging_bytes_{0};
  std::atomic<uint32_t> allocating_{0};  // The handle whose memory is being made right now.
};

}  // namespace millrace

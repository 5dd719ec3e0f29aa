#include "runtime/fault_slots.h"

#include <atomic>
#include <cstring>

namespace millrace {

Status FaultSlots::Reserve(hal::Device& device) {
  auto memory = device.AllocateFaultSlots(kChunk);
  if (!memory.ok()) return memory.status();
  auto* slots = reinterpret_cast<protocol::FaultSlot*>(memory.value()->address());
  for (uint32_t n = kChunk; n > 0; --n) free_.push_back(&slots[n - 1]);
  chunks_.push_back(std::move(memory).value());
  return {};
}

protocol::FaultSlot* FaultSlots::Take(hal::Device& device) {
  if (free_.empty() && !Reserve(device).ok()) return nullptr;
  protocol::FaultSlot* slot = free_.back();
  free_.pop_back();
  return slot;
}

void FaultSlots::GiveBack(protocol::FaultSlot* slot) {
  if (std::atomic_ref(slot->state).load(std::memory_order_acquire) != 0) {
    std::memset(static_cast<void*>(slot), 0, sizeof(*slot));
  }
  free_.push_back(slot);
}

void FaultSlots::Clear() {
  free_.clear();
  chunks_.clear();
}

}  // namespace millrace

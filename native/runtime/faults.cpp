#include "runtime/faults.h"

#include <cstring>

namespace millrace {

protocol::FaultSlot* FaultWatch::Begin(hal::Device& device, hal::Ticket ticket, hal::Ticket completed, uint32_t kernel,
                                       const std::vector<std::shared_ptr<MemoryEntry>*>& outputs) {
  std::lock_guard lock(mutex_);
  if (memory_ == nullptr) {
    auto memory = device.AllocateFaultSlots(kSlots);
    if (!memory.ok()) return nullptr;
    memory_ = std::move(memory).value();
    launches_.resize(kSlots);
  }
  while (first_ != next_) {
    Launch& oldest = launches_[first_ % kSlots];
    const bool faulted = std::atomic_ref(Slot(first_ % kSlots).state).load(std::memory_order_acquire) != 0;
    if (oldest.ticket > completed || (faulted && !oldest.reported)) break;
    oldest.outputs.clear();
    ++first_;
  }
  MR_CHECK(next_ - first_ < kSlots);
  protocol::FaultSlot& slot = Slot(next_ % kSlots);
  std::memset(static_cast<void*>(&slot), 0, sizeof(slot));
  Launch& launch = launches_[next_ % kSlots];
  launch.ticket = ticket;
  launch.kernel = kernel;
  launch.reported = false;
  for (const std::shared_ptr<MemoryEntry>* output : outputs) launch.outputs.push_back(*output);
  ++next_;
  return &slot;
}

}  // namespace millrace

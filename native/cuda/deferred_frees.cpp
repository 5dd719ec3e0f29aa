#include "cuda/deferred_frees.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "cuda/own_streams.h"

namespace millrace::cuda {

void DeferredFrees::Keep(std::unique_ptr<Memory> memory) {
  const std::lock_guard lock(mutex_);
  if (!memory->IsOpened()) own_bytes_.fetch_add(memory->capacity(), std::memory_order_relaxed);
  all_bytes_.fetch_add(memory->capacity(), std::memory_order_relaxed);
  kept_.push_back(std::move(memory));
}

std::unique_ptr<Memory> DeferredFrees::Take(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto best = kept_.end();
  for (auto each = kept_.begin(); each != kept_.end(); ++each) {
    if (!(*each)->IsReusable() || !(*each)->Suits(bytes)) continue;
    if (best == kept_.end() || (*each)->capacity() < (*best)->capacity()) best = each;
  }
  if (best == kept_.end()) return nullptr;
  std::unique_ptr<Memory> memory = TakeOut(best);
  memory->Reuse(bytes);
  return memory;
}

void DeferredFrees::GiveBack(uint64_t keep_bytes) {
  const std::lock_guard giving(giving_mutex_);
  while (!context_->is_lost()) {
    const std::unique_ptr<Memory> memory = TakeOut(keep_bytes);
    if (memory == nullptr) return;
    std::ignore = memory->Release();
  }
}

void DeferredFrees::GiveBackWhileIdle() {
  const std::lock_guard giving(giving_mutex_);
  while (!context_->is_lost()) {
    // One at a time: a thread that submits work meanwhile waits for this call.
    const std::unique_lock alone(context_->submissions(), std::try_to_lock);
    if (!alone.owns_lock() || !OwnStreams().AreIdle(*context_)) return;
    const std::unique_ptr<Memory> memory = TakeOut(0);
    if (memory == nullptr) return;
    std::ignore = memory->Release();
  }
}

std::unique_ptr<Memory> DeferredFrees::TakeOut(uint64_t keep_bytes) {
  const std::lock_guard lock(mutex_);
  auto found = std::ranges::find_if(kept_, [](const auto& memory) { return memory->IsOpened(); });
  if (found == kept_.end() && own_bytes() > keep_bytes) found = kept_.begin();
  return found == kept_.end() ? nullptr : TakeOut(found);
}

std::unique_ptr<Memory> DeferredFrees::TakeOut(std::vector<std::unique_ptr<Memory>>::iterator found) {
  std::unique_ptr<Memory> memory = std::move(*found);
  kept_.erase(found);
  if (!memory->IsOpened()) own_bytes_.fetch_sub(memory->capacity(), std::memory_order_relaxed);
  all_bytes_.fetch_sub(memory->capacity(), std::memory_order_relaxed);
  return memory;
}

}  // namespace millrace::cuda

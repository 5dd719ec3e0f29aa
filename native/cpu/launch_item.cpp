#include "cpu/launch_item.h"

namespace millrace::cpu {
namespace {

// Work that a helper thread runs itself, since waking another thread would take longer.
constexpr uint64_t kLightThreads = 256;

}  // namespace

LaunchItem::LaunchItem(const hal::LaunchRequest& request, int32_t priority) : LaunchItem(GridCall(request), priority) {}

void LaunchItem::Prepare(const Cancellation& cancellation, int32_t priority) {
  ParallelItem::Prepare(cancellation, priority);
  fault_.Clear();
}

bool LaunchItem::IsLight() const {
  return call_.is_bounded() && block_count() * call_.block_threads() <= kLightThreads;
}

}  // namespace millrace::cpu

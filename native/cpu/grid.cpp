#include "cpu/grid.h"

namespace millrace::cpu {
namespace {

// Work that a helper thread runs itself, since waking another thread would take longer.
constexpr uint64_t kLightThreads = 256;

}  // namespace

Grid::Grid(const hal::LaunchRequest& request, int32_t priority) : Grid(GridCall(request), priority) {}

void Grid::Prepare(const Stop& stop, int32_t priority) {
  ParallelTask::Prepare(stop, priority);
  fault_.Clear();
}

bool Grid::IsLight() const {
  return call_.is_bounded() && block_count() * call_.block_threads() <= kLightThreads;
}

}  // namespace millrace::cpu

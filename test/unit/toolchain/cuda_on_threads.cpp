// The barriers of cuda_on_threads.h, in a separate file because the shim does not combine with system headers. A
// barrier does not wait for threads that have returned.
#include <barrier>
#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

namespace {
constexpr unsigned kWarp = 32;
thread_local std::barrier<>* block_barrier;
thread_local std::barrier<>* warp_barrier;
}  // namespace

extern "C" void mr_wait_for_block() {
  block_barrier->arrive_and_wait();
}
extern "C" void mr_wait_for_warp() {
  warp_barrier->arrive_and_wait();
}
extern "C" void mr_run_threads(unsigned threads, void (*run)(void* of, unsigned thread), void* of) {
  std::barrier<> block(threads);
  std::deque<std::barrier<>> warps;
  for (unsigned first = 0; first < threads; first += kWarp) {
    warps.emplace_back(static_cast<std::ptrdiff_t>(first + kWarp < threads ? kWarp : threads - first));
  }
  std::vector<std::thread> started;
  for (unsigned thread = 0; thread < threads; ++thread) {
    started.emplace_back([&, thread] {
      block_barrier = &block;
      warp_barrier = &warps[thread / kWarp];
      run(of, thread);
      warp_barrier->arrive_and_drop();
      block_barrier->arrive_and_drop();
    });
  }
  for (std::thread& thread : started) thread.join();
}

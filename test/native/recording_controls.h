// How the devices of a recording backend behave, as a test sets it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "hal/hal.h"
#include "recording_memory.h"

namespace millrace::testing {

/// Writes due words one after the other without notifying the runtime, like a GPU.
class LateWriter {
 public:
  ~LateWriter() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// The thread, which never sleeps, begins with the first word.
  void Write(uint64_t* word, uint64_t value, std::chrono::steady_clock::time_point due) {
    std::call_once(begun_, [this] { thread_ = std::thread([this] { Run(); }); });
    while (word_.load() != nullptr) std::this_thread::yield();
    value_ = value;
    due_ = due;
    word_.store(word);
  }

 private:
  void Run() {
    while (!is_over_.load()) {
      uint64_t* const word = word_.load();
      if (word == nullptr) {
        std::this_thread::yield();
        continue;
      }
      while (std::chrono::steady_clock::now() < due_) {
      }
      std::atomic_ref(*word).store(value_, std::memory_order_release);
      word_.store(nullptr);
    }
  }
  std::atomic<bool> is_over_{false};
  std::atomic<uint64_t*> word_{nullptr};
  uint64_t value_ = 0;  // Both are the writer's while `word_` is set.
  std::chrono::steady_clock::time_point due_;
  std::once_flag begun_;
  std::thread thread_;
};

struct BackendControls {
  CallLog log;
  std::atomic<bool> completes_at_once{true};
  /// Like a GPU: the stream writes its word a little later, without a notification.
  std::atomic<bool> is_polled{false};
  std::atomic<bool> has_faulted{false};  // Of a polled device: what is submitted never ends, and Check tells why.
  /// Copies and fills touch the first and the last byte of what they would read and write.
  std::atomic<bool> touches_memory{false};
  std::atomic<uint64_t> delay_ns{0};
  LateWriter gpu;
  std::atomic<int> refuse_launches{0};  // The next so many launches are refused.
  std::atomic<int> refuse_fills{0};
  std::atomic<int> refuse_graphs{0};
  std::atomic<int> refuse_streams{0};
  std::atomic<int> refuse_waits{0};
  /// Called with a stream's line in the log once the work was taken, and has ended if it does so at once, before the
  /// call of the backend returns. Set before there is a device.
  std::function<void(const std::string&)> on_taken;
  std::atomic<uint64_t> free_bytes{UINT64_MAX};
  std::atomic<uint64_t> kept_bytes{0};  // Besides these, until they are given back.
  std::atomic<bool> needs_locked_memory{false};
  /// What blocks in a backend waits here while `is_shut`.
  struct Gate {
    std::atomic<bool> is_shut{false};
    std::atomic<int> waiting{0};
    void Pass() {
      waiting.fetch_add(1);
      while (is_shut.load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
      waiting.fetch_sub(1);
    }
  };
  Gate blocking_calls;
  Gate answer;  // On the way back from a refusal.
  Gate probe;
  std::atomic<int> refuse_blocking_calls{0};  // The next so many calls of the blocking-calls thread fail.
  std::atomic<StatusCode> blocking_call_refusal{StatusCode::kLaunchFailed};
  std::atomic<protocol::PeerRoute> route{protocol::PeerRoute::kDirect};
  std::atomic<bool> refuse_probe{false};
  std::atomic<int> live_events{0};
  std::atomic<uint64_t> clock{0};
  hal::KernelLimits kernel_limits{.max_threads_per_block = 1024, .max_dynamic_shared_bytes = 48 << 10};
};

}  // namespace millrace::testing

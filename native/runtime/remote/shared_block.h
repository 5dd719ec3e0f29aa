// What an owner and the process of its device share besides the timeline and the arena: the queue of what the owner
// sends, the words by which each wakes the other, and one call at a time.
//
// The owner trusts nothing in here: kernels of the device may write anywhere in their process. It uses what the other
// side writes as numbers that it compares, never as addresses or lengths that it has not checked.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace millrace::remote {

/// What an entry of the queue holds. Entries are read in the order in which they were written.
enum class EntryKind : uint32_t {
  kSkip,    // Nothing: the next entry is at the start of the queue.
  kRecord,  // A record.
  kArm,     // The others: a Point.
  kReported,
  kReportedOf,  // A HostBytes.
  kReleaseHold,
  kFailExternal,
};

struct EntryHead {
  uint32_t bytes;  // With the head; a multiple of 8.
  EntryKind kind;
};

struct Point {
  uint64_t stream;
  uint64_t ticket;
};

struct HostBytes {
  uint64_t handle;
  uint64_t offset;
  uint64_t bytes;
};

/// A call that the owner waits for. `Call::words` has its arguments, and then its answer.
enum class CallKind : uint32_t {
  kReserveStream,   // -> the stream or -1, its last ticket
  kReserveHandles,  // kind, count -> the first
  kReserveFailure,  // -> an id
  kFailures,        // stream, from, count -> rest; the bytes are FlatFailures
  kStats,           // -> as FlatStats; the bytes are ParkedStreams
  kBusyStreams,     // -> the bytes are stream numbers
  kDefineGraph,     // handle, whether these bytes are the first, the last
  kHold,            // on
  kStartRecording,  // most, times
  kStopRecording,
  kTakeTimes,  // how many at most -> count, dropped; the bytes are RecordedTimes
};

/// In `SharedBlock::hung`: not a stream, but the channel's thread.
constexpr uint32_t kNoStream = UINT32_MAX - 1;

/// Of `Call::state`.
enum : uint32_t { kIdle, kAsked, kAnswered };

constexpr size_t kCallBytes = 1024 * 1024;
/// A power of two, and room for many of the largest records.
constexpr size_t kQueueBytes = 4 * 1024 * 1024;

struct SharedBlock {
  // Written by the owner.
  alignas(64) std::atomic<uint64_t> written;  // Bytes of the queue, ever.
  // Written by the device's process.
  alignas(64) std::atomic<uint64_t> read;  // Bytes of the queue, ever.
  std::atomic<uint64_t> retired;           // As SubmissionQueue counts them.
  std::atomic<uint64_t> retired_bytes;
  std::atomic<uint32_t> lost;  // A StatusCode.
  std::atomic<int32_t> lost_driver_code;
  std::atomic<uint32_t> hung;                  // As Owner::Hung, plus 1; 0: nothing is.
  std::atomic<uint32_t> looks;                 // Of the watchdog, ever. 0 without one.
  alignas(64) std::atomic<uint32_t> sleeping;  // As in Bell, for the channel's thread.
  alignas(64) std::atomic<uint32_t> rung;      // The owner is to look.
  alignas(64) std::atomic<uint32_t> call_state;
  CallKind call;
  uint64_t words[8];
  uint64_t call_bytes;
  alignas(64) std::byte call_data[kCallBytes];
  alignas(64) std::byte queue[kQueueBytes];
};

/// How often a timeout is looked at while it passes. Looks are counted, so that the time does not pass while the
/// process that counts is stopped.
inline std::chrono::milliseconds PauseOf(std::chrono::milliseconds timeout) {
  constexpr int kLooks = 10;
  return std::clamp(timeout / kLooks, std::chrono::milliseconds(2), std::chrono::milliseconds(100));
}

constexpr size_t kBlockBytes = (sizeof(SharedBlock) + 4095) / 4096 * 4096;

/// Sleeps while the word has this value, until WakeAll, for at most `timeout`; zero: no limit. Between processes, so
/// not FUTEX_PRIVATE_FLAG.
inline void SleepWhile(std::atomic<uint32_t>& word, uint32_t value,
                       std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
  timespec limit{static_cast<time_t>(timeout.count() / 1'000'000'000),
                 static_cast<long>(timeout.count() % 1'000'000'000)};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, timeout.count() > 0 ? &limit : nullptr, nullptr, 0);
}

inline void Wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

/// Rings for a thread that sleeps while the word is 1, as Bell does.
inline void RingIfSleeping(std::atomic<uint32_t>& sleeping) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleeping.load(std::memory_order_relaxed) != 0 && sleeping.exchange(0, std::memory_order_acq_rel) != 0)
    Wake(sleeping);
}

}  // namespace millrace::remote

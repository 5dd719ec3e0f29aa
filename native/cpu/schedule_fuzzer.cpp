#include "cpu/schedule_fuzzer.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace millrace::cpu {
namespace {

constexpr char kSeedVariable[] = "MILLRACE_CPU_SEED";
// Several times the cost of a wake (7 to 60 us), so that a woken thread can overtake.
constexpr uint32_t kLongestPauseUs = 200;
// After this many pauses they become rare: a test with a million operations is about memory or speed.
constexpr uint32_t kManyPauses = 20000;
constexpr uint32_t kRarer = 32;

// SplitMix64 turns any counter into a random sequence, so threads share it through one addition.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

ScheduleFuzzer::ScheduleFuzzer(uint32_t seed, uint32_t ordinal) : state_(Mix(uint64_t{ordinal} << 32 | seed)) {
  // Each probability ranges from nearly always to hardly ever.
  helper_one_in_ = 1u << Below(4);
  turn_one_in_ = 1u << (1 + Below(5));
  pause_one_in_ = 4u << (2 * Below(4));
}

Result<std::unique_ptr<ScheduleFuzzer>> ScheduleFuzzer::FromEnvironment(uint32_t ordinal) {
  const char* text = std::getenv(kSeedVariable);
  if (text == nullptr || *text == '\0') return std::unique_ptr<ScheduleFuzzer>();
  uint32_t seed = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, seed);
  if (error != std::errc() || rest != end) {
    return Status(StatusCode::kUnavailable, "reading MILLRACE_CPU_SEED, which is not a whole number below 2^32");
  }
  return std::make_unique<ScheduleFuzzer>(seed, ordinal);
}

uint32_t ScheduleFuzzer::Below(uint32_t limit) {
  return static_cast<uint32_t>((Draw() >> 32) * limit >> 32);
}

void ScheduleFuzzer::Pause() {
  // Wraps after 2^32 calls, when the order no longer matters.
  const uint32_t chance = pauses_.fetch_add(1, std::memory_order_relaxed);
  if (Below(chance < kManyPauses ? pause_one_in_ : pause_one_in_ * kRarer) != 0) return;
  if (Below(4) == 0) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(Below(kLongestPauseUs + 1)));
  }
}

uint64_t ScheduleFuzzer::Draw() {
  return Mix(state_.fetch_add(kStep, std::memory_order_relaxed) + kStep);
}

}  // namespace millrace::cpu

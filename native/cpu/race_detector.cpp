#include "cpu/race_detector.h"

#include <algorithm>
#include <cstring>

#include "cpu/kernel_run.h"
#include "cpu/module.h"

namespace millrace::cpu {
namespace {

constexpr unsigned kOrderMask = 7;

bool Releases(unsigned how) {
  const unsigned order = how >> mr_race_order_shift & kOrderMask;
  return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

}  // namespace

template <auto method, typename... Given>
void RaceDetector::Paused(MrRaces* self, Given... given) {
  auto& watch = *static_cast<RaceDetector*>(self);
  watch.run_.is_paused_ = true;
  (watch.*method)(given...);
  watch.run_.is_paused_ = false;
}

RaceDetector::RaceDetector(KernelRun& run, const Image& image, const MrLaunch& launch)
    : MrRaces{.access = &Paused<&RaceDetector::Look>,
              .atomic = &Paused<&RaceDetector::Atomic>,
              .event = &Paused<&RaceDetector::Event>,
              .variables = nullptr,
              .variable_bytes = 0,
              .dynamic = launch.dynamic_shared,
              .dynamic_bytes = launch.shared_bytes,
              .thread = mr_race_no_thread},
      run_(run),
      image_(image) {}

void RaceDetector::FindVariables() {
  MrSpaces found;
  KernelRun::FindSpaces(&run_, &found);
  variables = found.variables;
  variable_bytes = found.variable_bytes;
}

bool RaceDetector::IsIgnored(uintptr_t address) const {
  return std::any_of(ignored_.begin(), ignored_.end(),
                     [&](const auto& range) { return address >= range.first && address < range.second; });
}

void RaceDetector::Look(const void* address, uint64_t bytes, unsigned how, const void* place) {
  const bool is_change = (how & mr_race_write) != 0 && (how & mr_race_atomic) != 0;
  Settle(is_change ? address : nullptr);
  if (!ignored_.empty() && IsIgnored(reinterpret_cast<uintptr_t>(address))) return;
  const auto* at = static_cast<const char*>(address);
  const bool is_dynamic = at >= dynamic && at < dynamic + dynamic_bytes;
  const char* start = is_dynamic ? dynamic : variables;
  const auto from = static_cast<uint64_t>(at - start);
  const uint64_t end = std::min<uint64_t>(from + bytes, is_dynamic ? dynamic_bytes : variable_bytes);
  const RaceAccess access{thread == mr_race_every_thread ? RaceShadow::kEveryThread : thread,
                          (how & mr_race_write) != 0, (how & mr_race_atomic) != 0,
                          static_cast<uint32_t>(reinterpret_cast<uintptr_t>(place) - image_.race_base())};
  const std::optional<Race> race = shadow_.Access(is_dynamic ? 1 : 0, from, end - from, access);
  if (!race) return;
  // The names of variables are found by their bytes from the first variable of the image.
  const uint64_t byte = race->byte + (is_dynamic ? 0 : MR_SHARED_OFFSET);
  const RaceReport report{byte, is_dynamic, race->first, race->second};
  const bool is_plain_write = access.is_write && !access.is_atomic && race->first.is_write && !race->first.is_atomic;
  const bool is_plain_read = !access.is_write && !access.is_atomic && race->first.is_atomic;
  if (!is_plain_write && !is_plain_read) {
    found_ = report;
    LeaveIfFound();
    return;
  }
  undecided_ = report;
  address_ = address;
  const auto* bytes_now = static_cast<const std::byte*>(address);
  before_.assign(bytes_now, bytes_now + (is_plain_write ? end - from : 0));
}

void RaceDetector::Settle(const void* changed) {
  if (!undecided_) return;
  const bool is_race = undecided_->second.is_write ? std::memcmp(address_, before_.data(), before_.size()) != 0
                                                   : changed != address_ || undecided_->second.thread != thread;
  if (is_race) found_ = undecided_;
  undecided_.reset();
  LeaveIfFound();
}

void RaceDetector::LeaveIfFound() {
  if (found_) run_.Leave(KernelFault::kRace, 0);
}

void RaceDetector::Atomic(const void* address, uint64_t bytes, unsigned how, const void* place) {
  const auto* at = static_cast<const char*>(address);
  const bool is_shared =
      (at >= variables && at < variables + variable_bytes) || (at >= dynamic && at < dynamic + dynamic_bytes);
  if (is_shared) Look(address, bytes, how | mr_race_atomic, place);
  const auto object = reinterpret_cast<uintptr_t>(address);
  // As lenient as programs are: the fence before the write counts, and none is needed after the read.
  shadow_.Acquire(thread, object);
  if ((how & mr_race_write) == 0) return;
  if (Releases(how)) shadow_.Release(thread, object);
  shadow_.ReleaseFenced(thread, object);
}

void RaceDetector::Event(unsigned event, uint64_t first, uint64_t second) {
  Settle(nullptr);
  switch (event) {
    case mr_race_begin_block:
      if (variables == nullptr) FindVariables();
      ignored_.clear();
      for (const auto& [from, end] : image_.guards()) {
        const auto start = reinterpret_cast<uintptr_t>(variables) - MR_SHARED_OFFSET;
        ignored_.emplace_back(start + from, start + end);
      }
      shadow_.BeginBlock(static_cast<uint32_t>(first));
      return;
    case mr_race_barrier:
      shadow_.Barrier();
      return;
    case mr_race_warp:
      shadow_.MeetWarp(static_cast<uint32_t>(first), static_cast<uint32_t>(second));
      return;
    case mr_race_fence:
      shadow_.Fence(thread);
      return;
    case mr_race_release:
      shadow_.Release(thread, first);
      return;
    case mr_race_acquire:
      shadow_.Acquire(thread, first);
      return;
    case mr_race_ignore: {
      const std::pair<uintptr_t, uintptr_t> range{first, first + second};
      if (std::find(ignored_.begin(), ignored_.end(), range) == ignored_.end()) ignored_.push_back(range);
      return;
    }
    default:
      return;
  }
}

}  // namespace millrace::cpu

#include "runtime/channel.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "hal/thread.h"
#include "runtime/watcher.h"

namespace millrace {

Channel::Channel(hal::Backend& backend, const Opening& opening, uint32_t id)
    : backend_(backend),
      id_(id),
      max_pending_(opening.max_pending),
      shared_memory_(opening.memory),
      timeline_(opening.timeline),
      streams_(new std::atomic<StreamState*>[opening.timeline.size()]()) {}

Channel::~Channel() {
  for (uint32_t n = 0; n < stream_count_.load(); ++n) delete streams_[n].load();
}

Result<std::shared_ptr<Channel>> Channel::Open(hal::Backend& backend, const Opening& opening, uint32_t id) {
  std::shared_ptr<Channel> channel(new Channel(backend, opening, id));
  auto device = backend.Open(opening.ordinal, opening.timeline);
  if (!device.ok()) return device.status();
  channel->device_ = std::move(device).value();
  channel->needs_polling_ = channel->device_->NeedsPolling();
  channel->needs_locked_memory_ = channel->device_->NeedsLockedMemory();
  Status started = channel->fault_slots_.Reserve(*channel->device_);
  if (started.ok() && channel->needs_polling_) started = Watcher::Instance().Start();
  // The thread keeps its channel alive, also when whoever opened it is long gone. Two may wait for its end at once (a
  // close and the end of the environment), so its end is a flag and not a join.
  Thread thread;
  if (started.ok()) started = thread.Start("mr-channel", [channel] { channel->Run(); });
  if (!started.ok()) {
    channel->fault_slots_.Clear();
    channel->device_->Close();
    return started;
  }
  thread.Detach();
  Status bound;
  channel->RunOnChannel([&] { bound = channel->device_->BindChannelThread(); });
  if (!bound.ok()) {
    channel->Close();
    return bound;
  }
  return channel;
}

// ── Owners ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Channel::Submission Channel::Submit(std::span<const std::byte> bytes) {
  const std::optional<Record> record = Record::Check(bytes);
  if (!record) return {0, StatusCode::kInternal};
  if (const StatusCode lost = LostStatus(); lost != StatusCode::kOk) return {0, lost};
  Ticket ticket = 0;
  {
    std::lock_guard lock(ring_.producer_mutex());
    StreamState* stream = FindStream(record->header.stream);
    if (stream == nullptr || !stream->is_reserved) return {0, StatusCode::kInternal};
    // Behind its end nothing of a stream is issued in order.
    if (is_closing_ || stream->is_ending) return {0, StatusCode::kState};
    if (submitted_ - known_retired_ >= max_pending_) {
      known_retired_ = retired_.load(std::memory_order_relaxed);
      if (submitted_ - known_retired_ >= max_pending_) return {0, StatusCode::kLimit};
    }
    ++submitted_;
    ticket = ++stream->last_ticket;
    if (record->opcode() == protocol::Opcode::kStreamDestroy) stream->is_ending = true;
    ring_.Publish(bytes);
  }
  bell_.Ring();
  return {ticket, StatusCode::kOk};
}

int64_t Channel::ReserveStream(std::shared_ptr<WakeTarget> owner, uint32_t owner_id) {
  std::lock_guard lock(ring_.producer_mutex());
  const auto slots = static_cast<uint32_t>(timeline_.size());
  for (uint32_t tried = 0; tried < slots; ++tried) {
    const uint32_t index = (free_search_ + tried) % slots;
    StreamState* stream = streams_[index].load(std::memory_order_relaxed);
    if (stream != nullptr && stream->is_reserved) continue;
    if (stream == nullptr) {
      stream = new StreamState(index, timeline_[index], *this);
      streams_[index].store(stream, std::memory_order_release);
      stream_count_.store(std::max(stream_count_.load(), index + 1), std::memory_order_release);
    }
    stream->is_reserved = true;
    stream->is_ending = false;
    stream->owner_id = owner_id;
    stream->failures.Restart();
    stream->SetOwner(std::move(owner));
    free_search_ = stream->index() + 1;
    return index;
  }
  return -1;
}

uint32_t Channel::ReserveHandles(protocol::HandleKind kind, uint32_t count) {
  std::atomic<uint32_t>& next = next_handle_[static_cast<uint32_t>(kind)];
  uint32_t first = next.load(std::memory_order_relaxed);
  do {
    if (count > kMaxHandles - first) return kMaxHandles;
  } while (!next.compare_exchange_weak(first, first + count, std::memory_order_relaxed));
  return first;
}

Ticket Channel::LastTicket(uint32_t stream) {
  std::lock_guard lock(ring_.producer_mutex());
  StreamState* state = FindStream(stream);
  return state == nullptr ? 0 : state->last_ticket;
}

bool Channel::Arm(uint32_t stream, Ticket ticket) {
  StreamState* state = FindStream(stream);
  if (state == nullptr || !state->ArmOwner(ticket) || LostStatus() != StatusCode::kOk) return false;
  WatchIfPolled(*state);
  return true;
}

std::vector<Failure> Channel::Failures(uint32_t stream, uint32_t from) {
  StreamState* state = FindStream(stream);
  if (state == nullptr) return {};
  if (std::atomic_ref(state->slot().fault).load(std::memory_order_acquire) != 0) CollectFaults(*state);
  return state->failures.From(from);
}

ChannelStats Channel::Stats() {
  ChannelStats stats;
  stats.ring_bytes = ring_.HeldBytes();
  stats.live_memory = live_memory_.load(std::memory_order_relaxed);
  stats.live_bytes = live_bytes_.load(std::memory_order_relaxed);
  stats.staging_bytes = staging_bytes_.load(std::memory_order_relaxed);
  stats.pinned_bytes = pinned_bytes_.load(std::memory_order_relaxed);
  std::lock_guard lock(ring_.producer_mutex());
  stats.pending_records = submitted_ - retired_.load(std::memory_order_relaxed);
  for (uint32_t n = 0; n < stream_count_.load(); ++n) {
    const StreamState& stream = *streams_[n].load();
    if (!stream.is_reserved) continue;
    ++stats.streams;
    const ParkReason reason = stream.park.load(std::memory_order_relaxed);
    if (reason != ParkReason::kNone) stats.parked.push_back({n, reason, stream.last_ticket - stream.Issued()});
  }
  return stats;
}

void Channel::ReleaseHold(uint32_t stream, Ticket ticket) {
  StreamState* state = FindStream(stream);
  if (state == nullptr) return;
  state->ReleaseHold(ticket);
  WakeStream(stream);
}

std::optional<uint64_t> Channel::StreamHandle(uint32_t stream) {
  StreamState* state = FindStream(stream);
  return state == nullptr ? std::nullopt : state->NativeHandle();
}

std::optional<uint64_t> Channel::MemoryAddress(uint32_t handle) {
  // An allocation may complete a moment before its handle is bound; whoever heard of it asks in that moment.
  constexpr auto kLongestWait = std::chrono::milliseconds(1);
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  while (allocating_.load(std::memory_order_acquire) == handle && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  const std::optional<MemoryRef> found = memory_.Look(handle);
  if (!found || (*found)->address == nullptr) return std::nullopt;
  return reinterpret_cast<uintptr_t>((*found)->address);
}

void Channel::Hold(bool on) {
  is_held_.store(on, std::memory_order_seq_cst);
  bell_.Ring();
}

std::vector<uint32_t> Channel::BusyStreams() {
  std::vector<uint32_t> busy;
  std::lock_guard lock(access_mutex_);
  for (uint32_t n = 0; n < stream_count_.load(); ++n) {
    const StreamState& stream = *streams_[n].load();
    if (stream.backend != nullptr && stream.backend->IsBusy(stream.Issued())) busy.push_back(n);
  }
  return busy;
}

// ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────

void Channel::BeginClose() {
  {
    std::lock_guard lock(ring_.producer_mutex());
    is_closing_ = true;
  }
  stop_when_drained_.store(true, std::memory_order_seq_cst);
  Hold(false);
}

void Channel::Close() {
  BeginClose();
  std::unique_lock lock(exit_mutex_);
  exit_.wait(lock, [&] { return has_exited_; });
}

void Channel::OnExit(std::function<void()> told) {
  {
    std::lock_guard lock(exit_mutex_);
    if (!has_exited_) {
      told_of_exit_.push_back(std::move(told));
      return;
    }
  }
  told();
}

void Channel::BeginAbandon() {
  {
    std::lock_guard lock(ring_.producer_mutex());
    is_closing_ = true;
  }
  MarkLost(Status(StatusCode::kState, "the device's thread was ended"));
  // No record is issued any more that names it, and a kernel of any device that runs beyond the deadline may have
  // copies behind it.
  host_.ForEach([&](const HostEntry& entry) { entry.state->lease.Withdraw(); });
  is_abandoned_.store(true, std::memory_order_seq_cst);
  bell_.Ring();
}

void Channel::Abandon(std::chrono::milliseconds deadline) {
  BeginAbandon();
  std::unique_lock lock(exit_mutex_);
  exit_.wait_for(lock, deadline, [&] { return has_exited_; });
}

// ── Other threads ──────────────────────────────────────────────────────────────────────────────────────────────────

StreamState* Channel::FindStream(uint32_t stream) {
  return stream < stream_count_.load(std::memory_order_acquire) ? streams_[stream].load(std::memory_order_acquire)
                                                                : nullptr;
}

void Channel::WatchIfPolled(StreamState& stream) {
  if (needs_polling_) Watcher::Instance().Watch(shared_from_this(), stream);
}

void Channel::WakeStream(uint32_t stream) noexcept {
  StreamState* state = FindStream(stream);
  if (state == nullptr || state->is_notified.exchange(true)) return;
  {
    std::lock_guard lock(notice_mutex_);
    wakes_.push_back(stream);
  }
  has_notices_.store(true, std::memory_order_release);
  bell_.Ring();
}

bool Channel::Post(std::function<void()> change) {
  {
    std::lock_guard lock(notice_mutex_);
    if (is_finished_) return false;
    changes_.push_back(std::move(change));
  }
  has_notices_.store(true, std::memory_order_release);
  bell_.Ring();
  return true;
}

void Channel::RunOnChannel(std::function<void()> change) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  const bool is_posted = Post([&] {
    change();
    // Notified under the lock: the waiter's locals are gone as soon as it sees `is_done`.
    std::lock_guard lock(mutex);
    is_done = true;
    changed.notify_one();
  });
  if (!is_posted) return;
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_done; });
}

void Channel::MarkLost(Status why) {
  StatusCode none = StatusCode::kOk;
  if (!lost_.compare_exchange_strong(none, why.code())) return;
  for (uint32_t n = 0; n < stream_count_.load(std::memory_order_acquire); ++n) streams_[n].load()->WakeAll();
  // Streams of other channels wait for what never comes.
  memory_.WakeAll();
  host_.WakeAll();
  peer_routes_.WakeAll();
  bell_.Ring();
}

}  // namespace millrace

#include "runtime/completion_watcher.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <tuple>
#include <vector>

#include "hal/thread.h"
#include "runtime/spin.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLongestSleep = std::chrono::nanoseconds(1'000'000);
/// The watcher sleeps for this fraction of the time waited so far before it looks again: 1/20.
constexpr int kSleepShare = 20;
/// While it has waited for less than kShortWait, it sleeps no longer than this. A look at a stream takes about 1 us.
constexpr auto kLongestShortSleep = std::chrono::nanoseconds(50'000);
constexpr auto kShortWait = std::chrono::milliseconds(20);
/// How much later than asked a sleep may end. The default, 50 us, would double the short sleeps.
constexpr unsigned long kTimerSlackNs = 1000;

}  // namespace

struct CompletionWatcher::State {
  struct Watched {
    std::shared_ptr<Channel> channel;
    StreamState* stream;
  };

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  std::vector<Watched> arrived;
  bool has_thread = false;
};

CompletionWatcher& CompletionWatcher::Instance() {
  static auto* instance = new CompletionWatcher;
  return *instance;
}

CompletionWatcher::CompletionWatcher() : state_(new State) {}

Status CompletionWatcher::Start() {
  std::lock_guard lock(state_->mutex);
  if (state_->has_thread) return {};
  Thread thread;
  MR_TRY(thread.Start("mr-watcher", [this] { Run(); }));
  thread.Detach();
  state_->has_thread = true;
  return {};
}

void CompletionWatcher::Watch(std::shared_ptr<Channel> channel, StreamState& stream) {
  if (stream.is_watched.load() || stream.is_watched.exchange(true)) return;
  std::lock_guard lock(state_->mutex);
  state_->arrived.push_back({std::move(channel), &stream});
  state_->changed.notify_one();
}

void CompletionWatcher::Run() {
  std::ignore = prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  std::vector<State::Watched> watched;
  auto since = Clock::now();

  // Looks at one stream. Returns false if it need not be watched any more.
  const auto look = [&](State::Watched& item) {
    StreamState& stream = *item.stream;
    const Ticket wanted = stream.Wanted();
    if (wanted != 0 && wanted <= stream.Issued() && item.channel->LostStatus() == StatusCode::kOk) {
      Status status;
      {
        std::lock_guard access(item.channel->access().streams_mutex());
        if (stream.backend == nullptr) {
          stream.is_watched.store(false);
          return false;
        }
        status = stream.backend->Resolve(wanted).status();
      }
      if (status.code() == StatusCode::kDeviceLost) item.channel->MarkLost(status);
      const Ticket completed = stream.Completed();
      if (completed >= wanted) since = Clock::now();
      stream.Progress(completed);
      return true;
    }
    // Clear the flag before reading the wanted ticket once more. A waiter stores its ticket before it calls Watch, and
    // the channel stores `issued` before it calls Watch. So either this thread sees the ticket here, or their Watch
    // finds the flag cleared and adds the stream again.
    stream.is_watched.store(false, std::memory_order_seq_cst);
    if (!stream.IsWantedOfDevice() || item.channel->LostStatus() != StatusCode::kOk) return false;
    return !stream.is_watched.exchange(true);
  };

  while (true) {
    {
      std::unique_lock lock(state_->mutex);
      if (watched.empty() && state_->arrived.empty()) {
        state_->changed.wait(lock, [&] { return !state_->arrived.empty(); });
      }
      if (!state_->arrived.empty()) since = Clock::now();
      for (auto& item : state_->arrived) watched.push_back(std::move(item));
      state_->arrived.clear();
    }
    std::erase_if(watched, [&](State::Watched& item) { return !look(item); });
    if (watched.empty()) continue;
    const auto waited = Clock::now() - since;
    if (MaySpin() && waited < kSpin) {
      __builtin_ia32_pause();
      continue;
    }
    const auto nap = std::min<std::chrono::nanoseconds>(waited / kSleepShare + std::chrono::microseconds(1),
                                                        waited < kShortWait ? kLongestShortSleep : kLongestSleep);
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, nap, [&] { return !state_->arrived.empty(); });
  }
}

}  // namespace millrace

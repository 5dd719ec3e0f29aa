// Ranks of an NCCL communicator, one for each device of this process that takes part.
//
// A collective is one launch for all of these ranks, so they are issued in one order and none can be left out. It runs
// on the launch's stream for the device of that, and on a stream of the communicator for each other one, which waits
// for the launch's stream and which that waits for. In a capture, all of these are of one graph, so one launch of that
// begins the parts of all ranks. A thread watches the ranks: when NCCL reports an error, or a device
// is lost, it marks the launches in flight as failed and aborts all ranks, so that nothing waits for one that does not
// answer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/context.h"
#include "cuda/executable_graph.h"
#include "cuda/library_kernel.h"
#include "cuda/nccl.h"

namespace millrace::cuda {

/// Why a communicator does not work, in the order of COLLECTIVE_FAULTS in src/core/channel/build-spec.ts. The number is
/// the dimension of a fault report.
enum class CommunicatorFault : uint32_t { kNone, kAborted, kFailed, kLost, kClosed, kGone, kTimeout };

/// Whose thread opened communicators: an environment of Node. They end with it.
struct CommunicatorOwner {
  std::atomic<bool> has_left{false};
  std::atomic<int> open{0};
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  struct Member {
    uint32_t ordinal = 0;
    uint32_t rank = 0;
  };

  /// Joins these ranks to a communicator of `size`, and returns its number. Without an id, the members are all its
  /// ranks. `detail` gets what the library says of a failure. Blocks until all ranks are there. Thread: any.
  static Result<uint32_t> Open(std::span<const Member> members, uint32_t size, const NcclUniqueId* id,
                               std::shared_ptr<CommunicatorOwner> owner, std::string& detail);
  /// For Open in several processes. Nothing without the library, or where it refuses. Thread: any.
  static std::optional<NcclUniqueId> MakeId();
  /// Null if there is none, or it was closed. Thread: any.
  static std::shared_ptr<Communicator> Find(uint32_t number);

  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] CommunicatorFault fault() const { return fault_.load(std::memory_order_acquire); }
  /// Fails what is in flight, soon. `why`: unless the library says why. Thread: any.
  void Abort(CommunicatorFault why);
  /// Waits for what is in flight, at most some seconds, and leaves the library. Thread: any that may block.
  void Close();
  [[nodiscard]] const hal::LibraryInfo& info() const { return library_.info; }

  /// Submits the operations as one group, with the context of the stream current. `place`: as for
  /// LibraryKernel::CallAs. The last two parameters are a fault slot and the word of its device. Thread: any.
  Status Call(const hal::CollectivePlan& plan, const Context& home, uint64_t place, CUstream stream,
              std::span<void* const> params);
  /// The same as a graph, which becomes part of `whole`: the library waits for the end of that before it leaves. No
  /// value if the communicator does not work, as Begin tells of each launch. Thread: any that may block.
  Result<std::optional<CapturedGraph>> Capture(const hal::CollectivePlan& plan, const Context& home,
                                               StreamCapture& capture, std::span<void* const> params,
                                               const std::shared_ptr<ExecutableGraph>& whole);
  /// A launch that has a part in it.
  struct Launch {
    uint64_t number = 0;
  };
  /// Before a launch on a stream of `home`. Reports in the slot, and returns nothing, if the communicator does not
  /// work: then nothing may be submitted. Otherwise End follows. Thread: any.
  std::optional<Launch> Begin(const std::shared_ptr<Context>& home, protocol::FaultSlot* slot, uint32_t* word);
  /// `submitted`: what came of it.
  Status End(Launch launch, CUstream stream, Status submitted);
  /// Instead of End: nothing was submitted. Ends the communicator if it has ranks elsewhere, which may wait.
  void Cancel(Launch launch);
  /// As Begin without a result, for the graph that Capture did not make.
  void Refuse(Launch launch);
  [[nodiscard]] bool Has(const Context& home) const;
  [[nodiscard]] size_t size_here() const { return ranks_.size(); }
  /// Of the ranks here.
  [[nodiscard]] std::vector<std::shared_ptr<Context>> contexts() const;

 private:
  struct Rank {
    std::shared_ptr<Context> context;
    uint32_t rank = 0;
    NcclComm comm = nullptr;
    CUstream stream = nullptr;  // Of launches on streams of other devices.
    CUevent before = nullptr;   // What a launch on a stream of this device waits for.
    CUevent after = nullptr;    // The end of its part.
    /// Of the last launch with a part of this rank, if it was issued whole: `stream` is behind all before that. Guarded
    /// by calls_.
    uint64_t place = 0;
  };
  /// A launch that may not have ended.
  struct Flight {
    uint64_t number = 0;
    CUevent event = nullptr;  // Null while it is issued.
    std::shared_ptr<Context> home;
    protocol::FaultSlot* slot = nullptr;
    uint32_t* word = nullptr;
  };
  struct Arrays;

  Communicator(const NcclLibrary& library, std::shared_ptr<CommunicatorOwner> owner)
      : library_(library), owner_(std::move(owner)) {}
  Status Join(std::span<const Member> members, uint32_t size, const NcclUniqueId* id, std::string& detail);
  Status MakeStreams();
  NcclCode Settle(NcclCode code);
  /// Why the library or another device stopped it. A failure of the driver, or of the home device, is a Status.
  Result<CommunicatorFault> Submit(const hal::CollectivePlan& plan, const Rank& home, uint64_t place, CUstream stream,
                                   std::span<void* const> params);
  [[nodiscard]] const Rank* RankOf(const Context& home) const;
  /// Not while the library leaves, which may wait for work of the device whose thread this is, or for the graph that
  /// this thread builds: without the lock then.
  std::unique_lock<std::timed_mutex> LockCalls();
  NcclCode Enqueue(const hal::CollectivePlan::Operation& operation, const Rank& rank, const Arrays& arrays,
                   CUstream stream);
  void Watch();
  void NoteCode(NcclCode code) {
    auto none = ncclSuccess;
    code_.compare_exchange_strong(none, code);
  }
  /// Whether the library or a device says that a rank failed.
  [[nodiscard]] CommunicatorFault Look();
  void Fail(CommunicatorFault why);
  // Flights. Their mutex is held.
  [[nodiscard]] static bool HasEnded(const Flight& flight);
  /// Forgets those that have ended. Unless it asks `all`, those of a device that are behind one that has not are not
  /// asked: of one thread they end in their order, and a long queue of them would be asked at each call.
  void Retire(bool all);
  void Report(const Flight& flight, CommunicatorFault why) const;
  [[nodiscard]] std::vector<Flight>::iterator FlightOf(Launch launch);
  /// The launch ends with this, and so does the communicator.
  void FailLaunch(Launch launch, CommunicatorFault why);
  /// Ends the graphs first: the library waits for them.
  void Leave(bool aborts);
  /// No longer to be found.
  void Forget();

  const NcclLibrary& library_;
  const std::shared_ptr<CommunicatorOwner> owner_;
  uint32_t size_ = 0;
  std::vector<Rank> ranks_;
  std::atomic<CommunicatorFault> fault_{CommunicatorFault::kNone};
  std::atomic<NcclCode> code_{ncclSuccess};  // The library's first failure.

  // The library takes one call at a time for its ranks. Waits are by the system's clock: glibc 2.28 has no others.
  std::timed_mutex calls_;

  std::mutex flights_mutex_;
  std::vector<Flight> flights_;                                     // Guarded by flights_mutex_.
  uint64_t last_flight_ = 0;                                        // The same.
  std::vector<std::pair<std::shared_ptr<Context>, CUevent>> free_;  // The same: events, each of a device.

  std::mutex graphs_mutex_;
  std::vector<std::weak_ptr<ExecutableGraph>> graphs_;  // Guarded by graphs_mutex_.

  std::mutex watch_mutex_;
  std::condition_variable watch_;
  bool is_over_ = false;  // Guarded by watch_mutex_.
  /// The same: what an abort says, if there was one.
  CommunicatorFault aborting_ = CommunicatorFault::kNone;
  std::atomic<bool> has_left_{false};  // The library has no ranks any more.
};

/// kState if there is no such communicator, or it has no rank on this device. Thread: control.
Result<hal::PlannedCall> PlanCollective(std::shared_ptr<Context> context, const hal::CollectivePlan& plan);

}  // namespace millrace::cuda

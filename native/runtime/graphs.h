// The graphs of a device: from the bytes that define one to the backend's object that launches it.
//
//   defined     the bytes of the definition, not read yet
//   read        GraphDefinition: checked, at the first launch
//   planned     GraphPlan: everything that it names was found, and the nodes are in the backend's form
//   built       BuiltGraph: the blocking-calls thread has built it; streams that launch it before park
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hal/graph.h"
#include "runtime/event_entry.h"
#include "runtime/graph_definition.h"
#include "runtime/graph_faults.h"
#include "runtime/launches.h"
#include "runtime/memory_entry.h"
#include "runtime/stream_state.h"

namespace millrace {

/// A graph whose handles were resolved. Memory is numbered: first `fixed`, which the definition names, then, from
/// kFirstSlot on, `slots`, which each launch names.
struct GraphPlan {
  static constexpr uint32_t kFirstSlot = 1u << 31;

  struct Fixed {
    MemoryRef entry;
    uint32_t handle = 0;
    bool is_own = false;  // Of the graph's device.
  };
  struct Slot {
    uint32_t device = 0;
    uint32_t entry = 0;
    uint64_t reach = 0;          // Copies use this many bytes.
    uint32_t element_bytes = 0;  // Fills overwrite elements of this size, as many as entry `count` says; 0: none does.
    uint32_t count = 0;
    bool is_covered = false;  // The first node that uses it is a copy or fill that should overwrite it as a whole.
  };
  /// Where a node in a condition's body is: the index of the condition, the body, the index of a node in it, and so on.
  using Place = std::vector<uint32_t>;
  /// A parameter that an entry of each launch replaces.
  struct Patch {
    uint32_t node = 0;
    uint32_t param = 0;
    uint32_t entry = 0;
    std::optional<uint32_t> slot;  // Of memory: its number in `slots`.
    uint64_t offset = 0;           // Is added to the entry.
    uint64_t value = 0;            // Of the last launch.
  };
  /// A launch among the nodes. `node` is, for one in a body, the index of the outermost condition around it.
  struct Kernel {
    uint32_t node = 0;
    protocol::LaunchRecord record;
    KernelEntry entry;
  };
  /// A checked kernel, and the first of its two hidden parameters: its fault slot, and then the device's fault word.
  struct Checked {
    uint32_t node = 0;
    uint32_t param = 0;
    uint32_t kernel = 0;
    Place body;  // Empty for a node outside of bodies.
  };
  /// A copy of host memory of another device.
  struct ReportingCopy {
    uint32_t node = 0;
    Place body;
  };

  // Until the graph is built.
  std::vector<hal::GraphNode> nodes;
  std::vector<Kernel> kernels;

  std::vector<Fixed> fixed;
  std::vector<Slot> slots;
  std::vector<uint32_t> inputs;       // What it reads before it overwrites it.
  std::vector<uint32_t> outputs;      // What it writes.
  std::vector<uint32_t> overwritten;  // What it overwrites as a whole, and does not read before.
  std::vector<Patch> patches;
  std::vector<Checked> checked;
  /// A node that records an event.
  struct Record {
    uint32_t node = 0;
    EventRef event;
  };
  std::vector<Record> records;
  std::vector<ReportingCopy> reporting_copies;
  /// A copy whose host memory could not be page-locked, if there is one.
  uint32_t unlocked_copy = hal::kNoNode;
  bool has_slot_copies = false;  // Copies or fills of memory that launches give.
  std::vector<HostUse> host;     // Host memory that copies use.
  uint32_t fault_set = 0;        // The fault slots that the nodes name since the last launch.

  /// Notes the memory that the next node uses. All its reads come before its writes.
  struct Write {
    uint32_t memory = 0;
    bool is_whole = false;
  };
  void AddAccesses(const std::vector<uint32_t>& reads, const std::vector<Write>& writes);
  /// The next nodes may not run: what they overwrite counts as overwritten for the later nodes of the body only.
  void BeginBody() { overwritten_in_bodies_.emplace_back(); }
  void EndBody() { overwritten_in_bodies_.pop_back(); }
  [[nodiscard]] hal::GraphNode& NodeAt(uint32_t node, const Place& body);
  uint32_t NumberOf(const MemoryRef& entry, uint32_t handle, bool is_own);
  uint32_t SlotOf(uint32_t device, uint32_t entry);
  /// Whether no node so far reads the memory or overwrites it as a whole.
  [[nodiscard]] bool IsUnused(uint32_t memory) const;

 private:
  struct Use {
    bool is_input = false;
    bool is_output = false;
    bool is_overwritten = false;
  };
  [[nodiscard]] bool IsOverwrittenInBody(uint32_t memory) const;

  std::unordered_map<uint32_t, Use> uses_;
  std::vector<std::unordered_set<uint32_t>> overwritten_in_bodies_;  // Of the bodies around the next node.
  std::unordered_map<const MemoryEntry*, uint32_t> numbers_;
};

/// What the backend built. The channel launches it; the blocking-calls thread builds and destroys it; another device
/// whose memory it names ends it before that device closes. Thread: any.
class BuiltGraph {
 public:
  /// Keeps the graph, unless End was called.
  void Set(std::unique_ptr<hal::Graph> graph);
  /// Null before Set and after End. It stays while its devices stay open and its launches run.
  [[nodiscard]] hal::Graph* Get();
  void End();

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  std::unique_ptr<hal::Graph> graph_;
  bool is_over_ = false;
};

/// Graphs of other devices that name memory of this one. Thread: any.
class PeerGraphs {
 public:
  void Add(const std::shared_ptr<BuiltGraph>& graph);
  /// This device closes; nothing launches them any more.
  void EndAll();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<BuiltGraph>> graphs_;  // Guarded by mutex_.
  size_t prune_at_ = 64;
};

/// Thread: channel.
struct GraphEntry {
  enum class Build : uint8_t { kNone, kRunning, kDone };
  struct Waiting {
    StreamState* stream = nullptr;
    Ticket ticket = 0;
  };

  std::vector<std::byte> bytes;  // Until they are read.
  bool is_malformed = false;
  std::optional<GraphDefinition> definition;
  std::unique_ptr<GraphPlan> plan;
  Build build = Build::kNone;
  std::vector<Waiting> waiting;  // Launches that are parked until the build is over.
  std::vector<Waiting> refused;  // Those that waited for the last build, which failed.
  Status refusal;                // Why it failed.
  std::shared_ptr<BuiltGraph> built = std::make_shared<BuiltGraph>();
  std::shared_ptr<GraphFaults> faults;                    // Null if nothing of a launch can be reported late.
  std::vector<std::pair<StreamState*, Ticket>> launches;  // The last of each stream.

  /// False if the bytes are malformed.
  [[nodiscard]] bool Read();
  void NoteLaunch(StreamState& stream, Ticket ticket);
  void NoteWaiting(StreamState& stream, Ticket ticket);
  /// Whether this launch waited for a build that failed.
  [[nodiscard]] bool TakeRefusal(const StreamState& stream, Ticket ticket);
  /// The build is over. Returns the launches that waited for it.
  std::vector<Waiting> EndBuild(Status status);
};
using GraphRef = std::shared_ptr<GraphEntry>;

/// Thread: channel.
struct Graphs {
  std::unordered_map<uint32_t, GraphRef> by_handle;
  /// Freed, while launches ran; each with the stream that freed it.
  std::vector<std::pair<GraphRef, StreamState*>> ending;
};

}  // namespace millrace

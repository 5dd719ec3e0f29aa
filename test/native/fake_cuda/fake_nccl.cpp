// An NCCL for machines without one, selected by MILLRACE_NCCL: ranks of one process, which compute on the streams of
// the fake driver. As with the real library, a rank's part of a collective waits on its stream for the others, for ever
// if one does not come. A part that is captured takes part at each launch of its graph, and a rank does not leave
// before these graphs are destroyed.
//
//   MILLRACE_FAKE_NCCL=...              one of these, or several:
//   init:3, call:5   the call that fails, and its code; that of a collective leaves the last rank's context current
//   last:3           the same of the call by which the last rank joins
//   half:5           the same, after the first rank's part was enqueued
//   slow:300         ncclCommAbort takes so many ms before anything ends
//   async:6         what ncclCommGetAsyncError answers once a collective waits
//   stuck:2         the part of the last rank in its second group of calls is not enqueued
//
// More than 400 lines: a whole library.
#include "cuda/nccl.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/driver.h"
#include "entry.h"
#include "streams.h"

namespace millrace::cuda {

namespace {

/// The number behind `what:` in MILLRACE_FAKE_NCCL; 0 if it does not say so.
int Asked(const std::string& what) {
  const char* const text = std::getenv("MILLRACE_FAKE_NCCL");
  const std::string asked = text == nullptr ? "" : text;
  const size_t at = asked.find(what + ":");
  return at == std::string::npos ? 0 : std::atoi(asked.c_str() + at + what.size() + 1);
}

NcclCode Injected(const std::string& call) {
  return static_cast<NcclCode>(Asked(call));
}

constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

float FromHalf(uint16_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
uint16_t ToHalf(float value) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}
float FromBrain(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}
uint16_t ToBrain(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T>
T Fold(int op, T a, T b) {
  switch (op) {
    case 1:
      return static_cast<T>(a * b);
    case 2:
      return std::max(a, b);
    case 3:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

}  // namespace

/// One rank's part of a collective.
struct Part {
  enum class Kind { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv };
  Kind kind = Kind::kAllReduce;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  size_t count = 0;
  int type = 0;
  int op = 0;
  int root = 0;  // Or the other rank.
};

/// Which parts belong together: of all ranks, or those that one sends and another receives, and how many came before.
struct Key {
  int from = -1;
  int to = -1;
  uint64_t number = 0;
  auto operator<=>(const Key&) const = default;
};

/// The parts that have come, by rank. A rank that sends to itself has two.
struct Meeting {
  std::vector<std::pair<int, Part>> parts;
  bool is_finished = false;
};

/// What all ranks share.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0;
  int joined = 0;
  int waiting = 0;
  std::set<int> aborted;          // Ranks, whose own parts end.
  std::map<int, int> persistent;  // The captured parts of each rank that exist.
  /// How many parts of each rank began, by keys without a number.
  std::map<std::pair<int, Key>, uint64_t> begun;
  std::map<Key, Meeting> meetings;
};

/// One rank.
struct ncclComm {
  std::shared_ptr<World> world;
  CUcontext context = nullptr;
  int rank = 0;
  uint64_t groups = 0;
};

namespace {

/// The worlds whose ranks have not all joined, by id.
std::map<std::string, std::shared_ptr<World>>& Joining() {
  static auto& joining = *new std::map<std::string, std::shared_ptr<World>>;
  return joining;
}
std::mutex& JoiningMutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

struct Queued {
  ncclComm* comm;
  CUstream stream;
  Part part;
};
thread_local int depth = 0;
thread_local std::vector<Queued> queued;
thread_local std::vector<std::shared_ptr<World>> joining;
thread_local std::string last_error;

template <typename T, typename Load, typename Store>
void ReduceAs(const std::vector<const Part*>& parts, size_t first, std::byte* to, const Load& load,
              const Store& store) {
  const Part& own = *parts.front();
  std::vector<T> results(own.count);
  for (size_t n = 0; n < own.count; ++n) {
    auto sum = load(parts[0]->from, first + n);
    for (size_t rank = 1; rank < parts.size(); ++rank) sum = Fold(own.op, sum, load(parts[rank]->from, first + n));
    if (own.op == 4) sum = sum / static_cast<decltype(sum)>(parts.size());
    results[n] = store(sum);
  }
  std::memcpy(to, results.data(), results.size() * sizeof(T));
}

template <typename T>
void ReducePlain(const std::vector<const Part*>& parts, size_t first, std::byte* to) {
  const auto load = [](const std::byte* from, size_t at) {
    T value;
    std::memcpy(&value, from + at * sizeof(T), sizeof(T));
    return value;
  };
  ReduceAs<T>(parts, first, to, load, [](T value) { return value; });
}

template <typename Load, typename Store>
void ReduceNarrow(const std::vector<const Part*>& parts, size_t first, std::byte* to, Load load, Store store) {
  const auto wide = [load](const std::byte* from, size_t at) {
    uint16_t bits = 0;
    std::memcpy(&bits, from + at * sizeof(bits), sizeof(bits));
    return load(bits);
  };
  ReduceAs<uint16_t>(parts, first, to, wide, store);
}

void ReduceTo(const std::vector<const Part*>& parts, size_t first, std::byte* to) {
  switch (parts.front()->type) {
    case 0:
      return ReducePlain<int8_t>(parts, first, to);
    case 1:
      return ReducePlain<uint8_t>(parts, first, to);
    case 2:
      return ReducePlain<int32_t>(parts, first, to);
    case 3:
      return ReducePlain<uint32_t>(parts, first, to);
    case 4:
      return ReducePlain<int64_t>(parts, first, to);
    case 5:
      return ReducePlain<uint64_t>(parts, first, to);
    case 6:
      return ReduceNarrow(parts, first, to, FromHalf, ToHalf);
    case 7:
      return ReducePlain<float>(parts, first, to);
    case 8:
      return ReducePlain<double>(parts, first, to);
    default:
      return ReduceNarrow(parts, first, to, FromBrain, ToBrain);
  }
}

/// All parts are there: computes them into memory apart first, because results may be operands.
void Compute(std::vector<std::pair<int, Part>> arrived) {
  struct Result {
    std::byte* to;
    std::vector<std::byte> bytes;
  };
  std::ranges::stable_sort(arrived, {}, &std::pair<int, Part>::first);
  std::vector<Result> results;
  const auto take = [&](std::byte* to, const std::byte* from, size_t bytes) {
    results.push_back({to, std::vector<std::byte>(from, from + bytes)});
  };
  const Part& first = arrived.front().second;
  std::vector<const Part*> parts;
  for (const auto& [rank, part] : arrived) parts.push_back(&part);
  const size_t bytes = first.count * kBytes[first.type];
  for (const auto& [rank, part] : arrived) {
    std::vector<std::byte> reduced(bytes);
    switch (part.kind) {
      case Part::Kind::kAllReduce:
      case Part::Kind::kReduce:
        if (part.kind == Part::Kind::kReduce && rank != part.root) break;
        ReduceTo(parts, 0, reduced.data());
        take(part.to, reduced.data(), bytes);
        break;
      case Part::Kind::kReduceScatter:
        ReduceTo(parts, static_cast<size_t>(rank) * part.count, reduced.data());
        take(part.to, reduced.data(), bytes);
        break;
      case Part::Kind::kBroadcast:
        take(part.to, parts[part.root]->from, bytes);
        break;
      case Part::Kind::kAllGather:
        for (const auto& [other, theirs] : arrived)
          take(part.to + static_cast<size_t>(other) * bytes, theirs.from, bytes);
        break;
      case Part::Kind::kSend:
        break;
      case Part::Kind::kRecv:
        for (const Part* const theirs : parts)
          if (theirs->kind == Part::Kind::kSend) take(part.to, theirs->from, bytes);
        break;
    }
  }
  for (const Result& result : results) std::memcpy(result.to, result.bytes.data(), result.bytes.size());
}

/// What a group is on the stream of one rank: it ends when all of its parts have met the others.
struct Waiting {
  Waiting(std::shared_ptr<World> of, int number, std::vector<Part> list, bool captured)
      : world(std::move(of)), rank(number), parts(std::move(list)), is_captured(captured) {
    const std::lock_guard lock(world->mutex);
    if (is_captured) ++world->persistent[rank];
  }
  ~Waiting() {
    const std::lock_guard lock(world->mutex);
    if (is_captured) --world->persistent[rank];
    world->changed.notify_all();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  const std::shared_ptr<World> world;
  const int rank;
  const std::vector<Part> parts;
  const bool is_captured;

  /// Those of a rank begin in one order, whatever their streams and graphs are.
  Key Begin(const Part& part) {
    Key key;
    if (part.kind == Part::Kind::kSend) key = {rank, part.root};
    if (part.kind == Part::Kind::kRecv) key = {part.root, rank};
    // A rank that sends to itself has two parts of one key, and of others it has one.
    uint64_t& begun = world->begun[{rank, key}];
    const bool is_second = key.from == key.to && key.from >= 0 && part.kind == Part::Kind::kRecv;
    if (!is_second) ++begun;
    key.number = begun;
    return key;
  }

  void Skip() {
    const std::lock_guard lock(world->mutex);
    for (const Part& part : parts) Begin(part);
  }

  void Run() {
    std::unique_lock lock(world->mutex);
    std::vector<Key> keys;
    for (const Part& part : parts) {
      const Key& key = keys.emplace_back(Begin(part));
      Meeting& meeting = world->meetings[key];
      meeting.parts.emplace_back(rank, part);
      if (static_cast<int>(meeting.parts.size()) < (key.from < 0 ? world->size : 2)) continue;
      Compute(meeting.parts);
      meeting.is_finished = true;
      world->changed.notify_all();
    }
    ++world->waiting;
    world->changed.wait(lock, [&] {
      return world->aborted.contains(rank) ||
             std::ranges::all_of(keys, [&](const Key& key) { return world->meetings[key].is_finished; });
    });
    --world->waiting;
  }
};

NcclCode Flush() {
  std::vector<Queued> all = std::move(queued);
  queued.clear();
  const CUcontext last = all.empty() ? nullptr : all.back().comm->context;
  const NcclCode half = all.empty() ? ncclSuccess : Injected("half");
  const auto refuse = [&](NcclCode code) {
    cuCtxSetCurrent(last);
    return code;
  };
  if (const NcclCode code = all.empty() ? ncclSuccess : Injected("call"); code != ncclSuccess) return refuse(code);
  for (size_t n = 0; n < all.size(); ++n) {
    ncclComm* const comm = all[n].comm;
    if (comm == nullptr) continue;
    std::vector<Part> parts;
    const CUstream stream = all[n].stream;
    for (Queued& each : all) {
      if (each.comm != comm) continue;
      if (each.stream != stream) return ncclInvalidUsage;
      parts.push_back(each.part);
      each.comm = nullptr;
    }
    ++comm->groups;
    const bool is_last = comm->rank == comm->world->size - 1;
    const bool is_stuck = is_last && comm->groups == static_cast<uint64_t>(Asked("stuck"));
    auto* const waiting = new Waiting(comm->world, comm->rank, std::move(parts), fakeCudaCaptures(stream));
    if (is_stuck) {
      waiting->Skip();
      delete waiting;
      continue;
    }
    const auto run = [](void* data) { static_cast<Waiting*>(data)->Run(); };
    const auto drop = [](void* data) { delete static_cast<Waiting*>(data); };
    CUcontext before = nullptr;
    cuCtxPushCurrent(comm->context);
    const CUresult pushed = fakeCudaPush(stream, "nccl", run, drop, waiting);
    cuCtxPopCurrent(&before);
    if (pushed != CUDA_SUCCESS) return ncclUnhandledCudaError;
    if (half != ncclSuccess) return refuse(half);
  }
  return ncclSuccess;
}

/// As the real library does before a rank leaves.
void AwaitGraphs(const ncclComm& comm) {
  std::unique_lock lock(comm.world->mutex);
  comm.world->changed.wait(lock, [&] { return comm.world->persistent[comm.rank] == 0; });
}

NcclCode Enqueue(NcclComm comm, CUstream stream, const Part& part) {
  if (comm == nullptr || part.type < 0 || part.type > 9 || part.op < 0 || part.op > 4) return ncclInvalidArgument;
  queued.push_back({comm, stream, part});
  return depth == 0 ? Flush() : ncclSuccess;
}

}  // namespace

extern "C" {

#define MR_NCCL(name, params) __attribute__((visibility("default"))) NcclCode name params;
#include "cuda/nccl_functions.def"
#undef MR_NCCL

/// As the real library has it.
__attribute__((used)) const char kVersionText[] = "NCCL version 2.27.3+cuda13.0";

__attribute__((visibility("default"))) NcclCode ncclGetVersion(int* version) {
  *version = 22703;
  return ncclSuccess;
}
__attribute__((visibility("default"))) const char* ncclGetLastError(NcclComm) {
  return last_error.c_str();
}

NcclCode ncclGetUniqueId(NcclUniqueId* made) {
  static std::atomic<uint64_t> last{0};
  const uint64_t number = ++last;
  *made = {};
  std::memcpy(made->bytes.data(), &number, sizeof(number));
  return ncclSuccess;
}

NcclCode ncclCommInitRank(NcclComm* made, int size, NcclUniqueId id, int rank) {
  if (const NcclCode code = Injected("init"); code != ncclSuccess) {
    last_error = "the fake library was asked to fail";
    return code;
  }
  if (const NcclCode code = Injected("last"); code != ncclSuccess && rank == size - 1) {
    joining.clear();
    return code;
  }
  if (rank < 0 || rank >= size) return ncclInvalidArgument;
  if (std::getenv("NCCL_RUNTIME_CONNECT") == nullptr) {
    last_error = "the first collective would connect the ranks";
    return ncclInvalidUsage;
  }
  const std::lock_guard lock(JoiningMutex());
  const std::string key(reinterpret_cast<const char*>(&id), sizeof(id));
  std::shared_ptr<World>& world = Joining()[key];
  if (world == nullptr) world = std::make_shared<World>();
  world->size = size;
  *made = new ncclComm{.world = world, .rank = rank};
  cuCtxGetCurrent(&(*made)->context);
  joining.push_back(world);
  {
    const std::lock_guard all(world->mutex);
    ++world->joined;
    world->changed.notify_all();
  }
  if (world->joined == size) Joining().erase(key);
  return ncclSuccess;
}

NcclCode ncclCommDestroy(NcclComm comm) {
  AwaitGraphs(*comm);
  delete comm;
  return ncclSuccess;
}

NcclCode ncclCommAbort(NcclComm comm) {
  std::this_thread::sleep_for(std::chrono::milliseconds(Asked("slow")));
  {
    const std::lock_guard lock(comm->world->mutex);
    comm->world->aborted.insert(comm->rank);
    comm->world->changed.notify_all();
  }
  AwaitGraphs(*comm);
  delete comm;
  return ncclSuccess;
}

NcclCode ncclCommGetAsyncError(NcclComm comm, NcclCode* code) {
  const std::lock_guard lock(comm->world->mutex);
  *code = comm->world->waiting > 0 ? Injected("async") : ncclSuccess;
  return ncclSuccess;
}

NcclCode ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

NcclCode ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  CUcontext current = nullptr;
  if (cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) {
    last_error = "no context is current: that of device 0 would be made";
    return ncclInvalidUsage;
  }
  if (--depth > 0) return ncclSuccess;
  // As the real library, until all ranks are there.
  for (const std::shared_ptr<World>& world : std::exchange(joining, {})) {
    std::unique_lock lock(world->mutex);
    world->changed.wait(lock, [&] { return world->joined == world->size; });
  }
  return Flush();
}

NcclCode ncclAllReduce(const void* from, void* to, size_t count, int type, int op, NcclComm comm, CUstream stream) {
  return Enqueue(comm, stream,
                 {.kind = Part::Kind::kAllReduce,
                  .from = static_cast<const std::byte*>(from),
                  .to = static_cast<std::byte*>(to),
                  .count = count,
                  .type = type,
                  .op = op});
}
NcclCode ncclReduce(const void* from, void* to, size_t count, int type, int op, int root, NcclComm comm,
                    CUstream stream) {
  return Enqueue(comm, stream,
                 {.kind = Part::Kind::kReduce,
                  .from = static_cast<const std::byte*>(from),
                  .to = static_cast<std::byte*>(to),
                  .count = count,
                  .type = type,
                  .op = op,
                  .root = root});
}
NcclCode ncclBroadcast(const void* from, void* to, size_t count, int type, int root, NcclComm comm, CUstream stream) {
  return Enqueue(comm, stream,
                 {.kind = Part::Kind::kBroadcast,
                  .from = static_cast<const std::byte*>(from),
                  .to = static_cast<std::byte*>(to),
                  .count = count,
                  .type = type,
                  .root = root});
}
NcclCode ncclAllGather(const void* from, void* to, size_t count, int type, NcclComm comm, CUstream stream) {
  return Enqueue(comm, stream,
                 {.kind = Part::Kind::kAllGather,
                  .from = static_cast<const std::byte*>(from),
                  .to = static_cast<std::byte*>(to),
                  .count = count,
                  .type = type});
}
NcclCode ncclReduceScatter(const void* from, void* to, size_t count, int type, int op, NcclComm comm, CUstream stream) {
  return Enqueue(comm, stream,
                 {.kind = Part::Kind::kReduceScatter,
                  .from = static_cast<const std::byte*>(from),
                  .to = static_cast<std::byte*>(to),
                  .count = count,
                  .type = type,
                  .op = op});
}
NcclCode ncclSend(const void* from, size_t count, int type, int peer, NcclComm comm, CUstream stream) {
  return Enqueue(comm, stream,
                 {.kind = Part::Kind::kSend,
                  .from = static_cast<const std::byte*>(from),
                  .count = count,
                  .type = type,
                  .root = peer});
}
NcclCode ncclRecv(void* to, size_t count, int type, int peer, NcclComm comm, CUstream stream) {
  return Enqueue(
      comm, stream,
      {.kind = Part::Kind::kRecv, .to = static_cast<std::byte*>(to), .count = count, .type = type, .root = peer});
}

}  // extern "C"

}  // namespace millrace::cuda

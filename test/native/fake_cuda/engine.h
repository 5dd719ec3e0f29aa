// The machine behind the fake driver: devices, streams that are threads with a FIFO, events, and who owns which bytes.
//
// Streams of one device run at the same time, as they may on a GPU, so an order that nobody asked for does not come
// about. An event is its latest recorded point: a wait takes the point of that moment, and one on an event that was
// never recorded waits for nothing.
//
// Memory of its own and interprocess events live in files in memory, which another process maps through /proc: a handle
// names the process and its descriptor. As with a real driver, a process does not open its own handles.
//
// A lost device stops: what its streams still hold never runs, their points are never reached, and waits of other
// devices' streams for them end, so that a test can end too.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda/driver_types.h"

namespace millrace::fake_cuda {

using cuda::CUresult;

struct Device;

/// A place in a stream that is reached once.
class Point {
 public:
  explicit Point(Device& device) : device_(device) {}
  void Reach();
  [[nodiscard]] bool IsReached();
  /// Returns when it was reached, or never will be.
  void Await();
  /// When it was reached.
  [[nodiscard]] std::chrono::steady_clock::time_point time();

 private:
  Device& device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_reached_ = false;
  std::chrono::steady_clock::time_point time_;
};

/// What the processes that share an event see of it.
struct SharedEvent {
  std::atomic<uint64_t> recorded{0};
  std::atomic<uint64_t> reached{0};
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Device& device, int number, int priority) : device(device), number(number), priority(priority) {}
  void Start();
  /// The thread ends after what is queued.
  void End();
  void Push(std::function<void()> operation);
  std::shared_ptr<Point> PushPoint();
  [[nodiscard]] bool IsIdle();

  Device& device;
  const int number;
  const int priority;

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool is_busy_ = false;
  bool is_ending_ = false;
};

struct Event {
  Device& device;
  const int number;
  const unsigned flags;
  std::mutex mutex;
  std::shared_ptr<Point> point;   // Guarded by mutex. Null until recorded.
  SharedEvent* shared = nullptr;  // Of an interprocess event. Mapped for good.
  int file = -1;                  // Where it lives, in the process that made it.
};

/// The device's default pool. What was freed stays reserved up to the threshold, which each wait of the host enforces.
struct Pool {
  uint64_t used = 0;
  uint64_t used_high = 0;
  uint64_t miscounted = 0;  // Part of `used` that cuMemFree gave back: a real driver never takes it off again.
  uint64_t reserved = 0;
  uint64_t reserved_high = 0;
  uint64_t threshold = 0;
  std::set<int> readers;  // Ordinals of the peers that may reach it.
  /// By attribute, the three of CU_MEMPOOL_ATTR_REUSE_*: all are on in a new pool.
  std::array<int, 4> may_reuse = {0, 1, 1, 1};
  /// What streams were given to free and have not freed.
  struct Freeing {
    std::shared_ptr<Point> freed;
    uint64_t bytes;
  };
  std::vector<Freeing> freeing;

  [[nodiscard]] uint64_t InUse() const { return used - miscounted; }
  void Shrink(uint64_t keep);
};

/// Also what a CUcontext points to: only primary contexts exist.
struct Device {
  int ordinal = 0;
  std::atomic<int> lost{0};
  std::atomic<bool> is_retained{false};
  // Guarded by World::mutex.
  uint64_t used_bytes = 0;  // Outside the pool.
  Pool pool;
  size_t pending_launches = 2048;  // Limit of launches from kernels.
  std::set<int> peers;             // Ordinals of the devices whose own memory this context may reach.
  std::set<std::shared_ptr<Stream>> streams;
  std::shared_ptr<Stream> legacy;  // The default stream, once somebody used it.
  std::set<Event*> events;
  // Calls of cuMemFree for memory of its own and of cuIpcCloseMemHandle; and those that found work and waited for it.
  std::atomic<int> frees{0};
  std::atomic<int> waiting_frees{0};
  std::atomic<int> questions{0};  // Calls of cuStreamQuery.
};

/// A range the driver knows: a device's own memory or its pool's, another process's, a variable of a module, host
/// memory that it allocated, or host memory registered with it.
struct Range {
  enum class Kind { kDevice, kPool, kOpened, kVariable, kHost, kRegistered };
  uint64_t bytes = 0;
  Kind kind = Kind::kDevice;
  Device* device = nullptr;
  int file = -1;  // Where a device's own memory lives.

  [[nodiscard]] bool IsDevice() const { return kind != Kind::kHost && kind != Kind::kRegistered; }
};

struct World {
  std::mutex mutex;
  bool is_started = false;  // cuInit was called.
  std::vector<std::unique_ptr<Device>> devices;
  std::map<uintptr_t, Range> ranges;  // By first byte.
  int next_number = 1;                // Of streams and events, for the log.

  /// The range that holds all these bytes, or the end. Call with the mutex held.
  std::map<uintptr_t, Range>::iterator Find(uintptr_t address, uint64_t bytes);
  /// Forgets a range and releases what it owns. Call with the mutex held.
  void Erase(std::map<uintptr_t, Range>::iterator range);
};

/// A file in memory of this size, zeroed, and its mapping.
void* MapNew(size_t bytes, int* file);
/// Maps the file that another process has under this descriptor; null when it is gone.
void* MapTheirs(int process, int file, size_t bytes);

/// Never destroyed: streams may run until the process is gone.
World& GetWorld();

/// Logs a call and answers the code it has to fail with. Sticky codes lose the current device.
CUresult Enter(const char* function, const std::string& detail = "");

/// The thread's current contexts, innermost last.
std::vector<Device*>& CurrentDevices();

/// The stream that a handle means on this device: 0 and 1 are its default stream. Null when there is none.
Stream* FindStream(cuda::CUstream handle, Device& device);

/// The current device, if there is one and it still lives.
CUresult Current(Device** device);

}  // namespace millrace::fake_cuda

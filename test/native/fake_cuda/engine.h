// The core of the fake driver: devices, streams as threads with a FIFO, events, and the ownership of memory.
//
// Streams of one device run concurrently, as on a GPU, so nothing adds an order that was not requested. An event is its
// latest record: a wait refers to the record at that moment, and a wait for an event that was never recorded does
// nothing.
//
// The device's own memory and interprocess events live in memory files, which another process maps through /proc: a
// handle names the process and its descriptor. As with a real driver, a process cannot open its own handles.
//
// A lost device stops: the remaining work of its streams never runs, and waits of other devices' streams for it end, so
// that a test can finish.
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
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "cuda/driver_types.h"

namespace millrace::fake_cuda {

using cuda::CUresult;

struct Device;

/// A point in a stream, which is reached once.
class Point {
 public:
  explicit Point(Device& device) : device_(device) {}
  void Reach();
  [[nodiscard]] bool IsReached();
  /// Returns when it was reached or never will be.
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

/// The state of an event that its processes share.
struct SharedEvent {
  std::atomic<uint64_t> recorded{0};
  std::atomic<uint64_t> reached{0};
};

/// A capture in progress: the work of its streams, each with what it comes after.
struct Capture {
  struct Work {
    std::function<void()> run;
    std::set<size_t> after;
  };
  std::mutex mutex;
  // Guarded by mutex.
  std::vector<Work> works;
  /// By stream: what its next work comes after.
  std::map<class Stream*, std::set<size_t>> tips;
  bool is_broken = false;
  bool is_over = false;
};

/// What a captured record of an event stands for.
struct CapturedPoint {
  std::shared_ptr<Capture> capture;
  std::set<size_t> after;
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
  /// What is pushed from now on is kept instead. False if it already is.
  bool BeginCapture();
  /// What was pushed since then, also to streams that joined. The code of the driver if a call broke the capture, this
  /// stream did not begin it, or does not come after all of it.
  CUresult EndCapture(std::vector<Capture::Work>& works);
  /// Records an event in the capture of this stream. Nothing if there is none.
  std::optional<CapturedPoint> CapturePoint();
  /// Comes after a captured event, and joins its capture. False if that is over, or another one.
  bool Join(const CapturedPoint& point);
  /// A call that no capture can contain. False if there is none.
  bool BreakCapture();
  /// Whether the work belongs to a capture, which keeps it.
  bool Captures(const std::function<void()>& work);

  Device& device;
  const int number;
  const int priority;

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::shared_ptr<Capture> Capturing();

  std::shared_ptr<Capture> capture_;
  bool began_capture_ = false;
  bool is_busy_ = false;
  bool is_ending_ = false;
};

struct Event {
  Device& device;
  const int number;
  const unsigned flags;
  std::mutex mutex;
  std::shared_ptr<Point> point;  // Guarded by mutex. Null until recorded.
  /// The same: of a record in a capture.
  std::optional<CapturedPoint> captured;
  SharedEvent* shared = nullptr;  // Of an interprocess event. Mapped for good.
  int file = -1;                  // Where it lives, in the process that made it.
};

/// The device's default pool. Freed memory stays reserved up to the threshold, which each wait of the host enforces.
struct ThreadPool {
  uint64_t used = 0;
  uint64_t used_high = 0;
  uint64_t miscounted = 0;  // Part of `used` that cuMemFree gave back: a real driver never takes it off again.
  uint64_t reserved = 0;
  uint64_t reserved_high = 0;
  uint64_t threshold = 0;
  std::set<int> readers;  // Ordinals of the peers that may reach it.
  /// By attribute, the three of CU_MEMPOOL_ATTR_REUSE_*: all are on in a new pool.
  std::array<int, 4> may_reuse = {0, 1, 1, 1};
  /// Memory whose free is queued in a stream.
  struct Freeing {
    std::shared_ptr<Point> freed;
    uint64_t bytes;
  };
  std::vector<Freeing> freeing;

  [[nodiscard]] uint64_t InUse() const { return used - miscounted; }
  void Shrink(uint64_t keep);
};

/// The target of a primary CUcontext.
struct Device {
  int ordinal = 0;
  std::atomic<int> lost{0};
  /// Held shared while its streams copy and fill. Who is told of the loss may free the memory: nothing uses it any
  /// more.
  std::shared_mutex using_memory;
  std::atomic<bool> is_retained{false};
  // Guarded by World::mutex.
  uint64_t used_bytes = 0;  // Outside the pool.
  ThreadPool pool;
  size_t pending_launches = 2048;  // Limit of launches from kernels.
  std::set<int> peers;             // Ordinals of the devices whose own memory this context may reach.
  std::set<std::shared_ptr<Stream>> streams;
  std::shared_ptr<Stream> legacy;  // The default stream, after its first use.
  std::set<Event*> events;
  // Calls of cuMemFree for memory of its own and of cuIpcCloseMemHandle; and those that found work and waited for it.
  std::atomic<int> frees{0};
  std::atomic<int> waiting_frees{0};
  std::atomic<int> questions{0};  // Calls of cuStreamQuery.
};

/// A range that the driver knows: a device's own or pool memory, another process's memory, a module's variable,
/// allocated host memory, or registered host memory.
struct Range {
  enum class Kind { kDevice, kPool, kOpened, kVariable, kHost, kRegistered };
  uint64_t bytes = 0;
  Kind kind = Kind::kDevice;
  Device* device = nullptr;
  int file = -1;  // Where a device's own memory lives.

  [[nodiscard]] bool IsDevice() const { return kind != Kind::kHost && kind != Kind::kRegistered; }
};

/// Nothing runs on the device from now on.
void Lose(Device& device, int code);

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

/// A zeroed memory file of this size, and its mapping.
void* MapNew(size_t bytes, int* file);
/// Maps another process's file with this descriptor; null if it is gone.
void* MapTheirs(int process, int file, size_t bytes);

/// Never destroyed, because streams may run until the process exits.
World& GetWorld();

/// Logs a call and returns the code with which it must fail. Sticky codes lose the current device.
CUresult Enter(const char* function, const std::string& detail = "");

/// The thread's current contexts, innermost last.
std::vector<cuda::CUcontext>& CurrentContexts();

/// A green context has a share of a device. As a CUcontext, it is its address with the lowest bit set.
struct GreenContext {
  Device* device;
  unsigned multiprocessors;
};
/// Null for a primary context.
GreenContext* GreenOf(cuda::CUcontext context);
/// The device of a primary or green context.
Device* FromHandle(cuda::CUcontext context);
/// That is current; null: a primary context is.
GreenContext* CurrentGreen();

/// The stream of a handle on this device: 0 and 1 are its default stream. Null if there is none.
Stream* FindStream(cuda::CUstream handle, Device& device);

/// The current device; null if there is none or it is lost.
CUresult Current(Device** device);

}  // namespace millrace::fake_cuda

#include "cuda/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <tuple>

#include "cuda/context_scope.h"

namespace millrace::cuda {

namespace {

/// A handle exports the driver's whole block, which several small allocations may share; whole blocks hold one.
constexpr uint64_t kBlock = 2 << 20;
/// Reused memory may leave at most 1 in this many bytes unused.
constexpr uint64_t kIdlePart = 8;

constexpr uint64_t kHugePage = 2 << 20;
/// Where the system provides no huge pages.
constexpr uint64_t kSmallPage = 4096;

/// New pages at a multiple of `alignment`; null without memory. A forked child does not get them: a page that both had
/// would be copied for the parent at its next write, and the device would go on with the other.
std::byte* MapPages(uint64_t bytes, uint64_t alignment) {
  void* const mapped = mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(mapped);
  const uint64_t before = -reinterpret_cast<uintptr_t>(first) % alignment;
  if (before > 0) munmap(first, before);
  munmap(first + before + bytes, alignment - before);
  std::byte* const pages = first + before;
  madvise(pages, bytes, MADV_DONTFORK);
  if (alignment == kHugePage) madvise(pages, bytes, MADV_HUGEPAGE);
  return pages;
}

/// 0 if the size exceeds any memory.
constexpr uint64_t WholeBlocks(uint64_t bytes) {
  return (std::max<uint64_t>(bytes, 1) + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

Result<std::unique_ptr<Memory>> Memory::Allocate(std::shared_ptr<Context> context, CUstream stream, uint64_t bytes,
                                                 bool has_pools) {
  // The driver rejects an empty allocation, but an array without elements has an address here.
  const uint64_t wanted = std::max<uint64_t>(bytes, 1);
  CUdeviceptr address = 0;
  const CUresult code =
      has_pools ? Cuda().cuMemAllocAsync(&address, wanted, stream) : Cuda().cuMemAlloc(&address, wanted);
  MR_TRY(context->Check(code, "allocating device memory"));
  const Origin origin = has_pools ? Origin::kPool : Origin::kPlain;
  return std::unique_ptr<Memory>(new Memory(std::move(context), address, bytes, wanted, origin));
}

Result<std::unique_ptr<Memory>> Memory::AllocateInterprocess(std::shared_ptr<Context> context, uint64_t bytes) {
  MR_TRY(context->Alive());
  const ContextScope scope(context->handle());
  MR_TRY(context->Check(scope.code(), "making the context current"));
  const uint64_t wanted = WholeBlocks(bytes);
  if (wanted < bytes) return Status(StatusCode::kOutOfMemory, "allocating memory for other processes");
  CUdeviceptr address = 0;
  MR_TRY(context->Check(Cuda().cuMemAlloc(&address, wanted), "allocating memory for other processes"));
  return std::unique_ptr<Memory>(new Memory(std::move(context), address, bytes, wanted, Origin::kInterprocess));
}

Result<std::unique_ptr<Memory>> Memory::Open(std::shared_ptr<Context> context, const hal::IpcHandle& handle,
                                             uint64_t bytes) {
  MR_TRY(context->Alive());
  const ContextScope scope(context->handle());
  MR_TRY(context->Check(scope.code(), "making the context current"));
  CUipcMemHandle theirs;
  std::memcpy(&theirs, handle.data(), handle.size());
  CUdeviceptr address = 0;
  MR_TRY(context->CheckOpening(Cuda().cuIpcOpenMemHandle(&address, theirs, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                               "opening memory of another process"));
  return std::unique_ptr<Memory>(new Memory(std::move(context), address, bytes, bytes, Origin::kOpened));
}

Result<hal::IpcHandle> Memory::Export() const {
  if (origin_ != Origin::kInterprocess) {
    return Status(StatusCode::kUnsupported, "exporting memory that was not allocated for other processes");
  }
  MR_TRY(context_->Alive());
  const ContextScope scope(context_->handle());
  MR_TRY(context_->Check(scope.code(), "making the context current"));
  CUipcMemHandle ours;
  MR_TRY(context_->CheckExport(Cuda().cuIpcGetMemHandle(&ours, address_), "exporting memory to other processes"));
  is_exported_ = true;
  hal::IpcHandle handle;
  std::memcpy(handle.data(), &ours, handle.size());
  return handle;
}

bool Memory::Suits(uint64_t bytes) const {
  return bytes <= capacity_ && WholeBlocks(bytes) >= capacity_ - capacity_ / kIdlePart;
}

Memory::~Memory() {
  if (is_freed_ || context_->is_lost()) return;
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  // A loss detected here is recorded; no caller can receive it.
  std::ignore = context_->Check(Cuda().cuCtxSynchronize(), "waiting for the last use of device memory");
  if (!context_->is_lost()) std::ignore = Release();
}

Status Memory::Release() {
  MR_CHECK(!is_freed_);
  is_freed_ = true;
  switch (origin_) {
    case Origin::kArray:
      return context_->Check(Cuda().cuArrayDestroy(reinterpret_cast<CUarray>(address_)), "freeing a CUDA array");
    case Origin::kTexture:
      return context_->Check(Cuda().cuTexObjectDestroy(address_), "destroying a texture object");
    case Origin::kSurface:
      return context_->Check(Cuda().cuSurfObjectDestroy(address_), "destroying a surface object");
    case Origin::kOpened:
      return context_->Check(Cuda().cuIpcCloseMemHandle(address_), "freeing device memory");
    case Origin::kPool:
      // cuMemFree works too, but the pool would count the memory as used for the rest of the process.
      return context_->Check(Cuda().cuMemFreeAsync(address_, nullptr), "freeing device memory");
    default:
      return context_->Check(Cuda().cuMemFree(address_), "freeing device memory");
  }
}

Status Memory::Free(CUstream stream) {
  MR_CHECK(!is_freed_ && !IsFreedLate());
  if (origin_ == Origin::kPlain) {
    // Without pools there is no ordered free, and reusing memory of running work would be worse than waiting.
    MR_TRY(context_->Check(Cuda().cuStreamSynchronize(stream), "waiting for the last use of device memory"));
    return Release();
  }
  MR_TRY(context_->Check(Cuda().cuMemFreeAsync(address_, stream), "freeing device memory"));
  is_freed_ = true;
  return {};
}

Result<std::unique_ptr<LockedBlock>> LockedBlock::Allocate(std::shared_ptr<Context> context, uint64_t bytes,
                                                           bool may_be_unlocked) {
  MR_TRY(context->Alive());
  const uint64_t page = bytes < kHugePage ? kSmallPage : kHugePage;
  const uint64_t whole = (bytes + page - 1) / page * page;
  const std::span pages(MapPages(whole, page), whole);
  if (pages.data() == nullptr) return Status(StatusCode::kOutOfMemory, "allocating page-locked memory");
  // The driver locks pages that exist much faster, and this thread makes them beside other threads that do the same.
  for (size_t at = 0; at < pages.size(); at += kSmallPage) pages[at] = std::byte{0};
  const Status status = RegisterHostRange(context, pages);
  if (status.ok() || (may_be_unlocked && !context->is_lost()))
    return std::unique_ptr<LockedBlock>(new LockedBlock(std::move(context), pages, status.ok()));
  munmap(pages.data(), pages.size());
  return status;
}

LockedBlock::~LockedBlock() {
  const bool is_unlocked = !is_locked_ || UnregisterHostRange(pages_).ok();
  if (is_unlocked && !context_->is_lost()) munmap(pages_.data(), pages_.size());
}

Result<std::unique_ptr<hal::Memory>> SharedMemory::Allocate(std::shared_ptr<Context> context, uint64_t bytes) {
  Result<std::unique_ptr<LockedBlock>> block = LockedBlock::Allocate(std::move(context), bytes);
  MR_TRY(block.status());
  return std::unique_ptr<hal::Memory>(new SharedMemory(std::move(block).value(), bytes));
}

namespace {

struct HostRange {
  std::span<std::byte> range;
  uint32_t users;
  std::shared_ptr<Context> registrar;
};

struct HostRanges {
  std::mutex mutex;  // Held across the driver call: a second user must find the range fully locked.
  std::vector<HostRange> entries;

  std::vector<HostRange>::iterator Find(std::span<std::byte> range) {
    return std::find_if(entries.begin(), entries.end(), [range](const HostRange& entry) {
      return entry.range.data() == range.data() && entry.range.size() == range.size();
    });
  }
};

HostRanges& Ranges() {
  // Never destroyed: a device may still close while the process runs its exit handlers.
  static HostRanges* ranges = new HostRanges();  // NOLINT: leaked by design
  return *ranges;
}

}  // namespace

Status RegisterHostRange(const std::shared_ptr<Context>& context, std::span<std::byte> range) {
  HostRanges& ranges = Ranges();
  const std::lock_guard lock(ranges.mutex);
  if (const auto entry = ranges.Find(range); entry != ranges.entries.end()) {
    ++entry->users;
    return {};
  }
  const ContextScope scope(context->handle());
  MR_TRY(context->Check(scope.code(), "making the context current"));
  MR_TRY(context->Check(
      Cuda().cuMemHostRegister(range.data(), range.size(), CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
      "page-locking host memory"));
  ranges.entries.push_back({range, 1, context});
  return {};
}

Status UnregisterHostRange(std::span<std::byte> range) {
  HostRanges& ranges = Ranges();
  std::shared_ptr<Context> registrar;  // Destroyed after the lock, because it may release the context.
  const std::lock_guard lock(ranges.mutex);
  const auto entry = ranges.Find(range);
  MR_CHECK(entry != ranges.entries.end());
  if (--entry->users > 0) return {};
  registrar = std::move(entry->registrar);
  ranges.entries.erase(entry);
  if (registrar->is_lost()) return {};
  const ContextScope scope(registrar->handle());
  MR_TRY(registrar->Check(scope.code(), "making the context current"));
  return registrar->Check(Cuda().cuMemHostUnregister(range.data()), "unregistering page-locked host memory");
}

}  // namespace millrace::cuda

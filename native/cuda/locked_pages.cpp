#include "cuda/locked_pages.h"

#include <sys/mman.h>

#include <cstdlib>
#include <tuple>
#include <utility>

#include "cuda/memory.h"

namespace millrace::cuda {
namespace {

constexpr size_t kHugePage = 2 << 20;
/// Where the system provides no huge pages.
constexpr size_t kSmallPage = 4096;

}  // namespace

Result<std::unique_ptr<LockedPages>> LockedPages::Allocate(std::shared_ptr<Context> context, uint64_t bytes) {
  MR_TRY(context->Alive());
  MR_CHECK(bytes % kHugePage == 0);
  auto* const data = static_cast<std::byte*>(std::aligned_alloc(kHugePage, bytes));
  if (data == nullptr) return Status(StatusCode::kOutOfMemory, "allocating page-locked memory");
  const std::span pages(data, bytes);
  std::ignore = madvise(data, bytes, MADV_HUGEPAGE);
  // The driver locks pages that exist much faster, and this thread makes them beside other threads that do the same.
  for (size_t at = 0; at < bytes; at += kSmallPage) data[at] = std::byte{0};
  const Status status = RegisterHostRange(context, pages);
  if (status.ok()) return std::unique_ptr<LockedPages>(new LockedPages(std::move(context), pages));
  std::free(data);
  return status;
}

LockedPages::~LockedPages() {
  const Status status = UnregisterHostRange(pages_);
  if (status.ok() && !context_->is_lost()) std::free(pages_.data());
}

}  // namespace millrace::cuda

#include "addon/host_memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "addon/args.h"
#include "addon/shared_pages.h"
#include "addon/values.h"
#include "runtime/host_copy.h"

namespace millrace {
namespace {

/// The bytes of an argument that is a view of a whole SharedArrayBuffer or of a part; the call may write them.
template <size_t N>
std::span<std::byte> WritableBytes(Args<N>& args, size_t n) {
  const std::span<const std::byte> bytes = args.Bytes(n);
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

napi_value MapHost(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const std::span<std::byte> target = WritableBytes(args, 0);
  const std::span<std::byte> source = WritableBytes(args, 1);
  // Mapping more pages than the buffer has would take pages from other buffers.
  args.Require(args.ok() && IsWholeGrowable(env, args[0], target.size()));
  if (!args.ok()) return args.Throw("mapHost");
  return BoolValue(env, MapAlso(target, source));
}

napi_value UnmapHost(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const std::span<std::byte> target = WritableBytes(args, 0);
  args.Require(args.ok() && IsWholeGrowable(env, args[0], target.size()));
  if (!args.ok()) return args.Throw("unmapHost");
  return BoolValue(env, MapApart(target));
}

napi_value CopyHostBytes(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const std::span<std::byte> target = WritableBytes(args, 0);
  const std::span<const std::byte> source = args.Bytes(1);
  args.Require(source.size() == target.size());
  if (!args.ok()) return args.Throw("copyHost");
  CopyHost(target, source);
  return nullptr;
}

napi_value CopyHostApart(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  args.Require(args.Bytes(0).size() == args.Bytes(1).size());
  if (!args.ok()) return args.Throw("copyHostApart");
  Environment& self = args.self();
  Deliveries* const deliveries = self.OpenDeliveries();
  if (deliveries == nullptr) {
    return ThrowStatus(env, "copyHostApart", Status(StatusCode::kUnavailable, "creating a thread-safe function"));
  }
  HeldBytes target = self.Hold(args[0]);
  HeldBytes source = self.Hold(args[1]);
  const auto copy = [to = target.bytes, from = source.bytes] { CopyToFresh(to, from); };
  return deliveries->PromiseOff(env, copy, copy, [&self, target, source](napi_env own) mutable {
    self.Release(target);
    self.Release(source);
    return Undefined(own);
  });
}

napi_value AdviseHuge(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const std::span<std::byte> bytes = WritableBytes(args, 0);
  if (!args.ok()) return args.Throw("adviseHugePages");
  AdviseHugePages(bytes);
  return nullptr;
}

/// 0, or the errno of the refusal.
int TryLock(uint64_t bytes) {
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return errno;
  const int refusal = mlock(pages, bytes) == 0 ? 0 : errno;
  munmap(pages, bytes);
  return refusal;
}

napi_value LockProbe(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint64_t bytes = args.U53(0);
  if (!args.ok()) return args.Throw("lockProbe");
  napi_value result = nullptr;
  napi_create_int32(env, TryLock(bytes), &result);
  return result;
}

}  // namespace

bool DefineHostMemory(Environment& self, napi_value exports) {
  const napi_property_descriptor functions[] = {
      self.Function("mapHost", MapHost),
      self.Function("unmapHost", UnmapHost),
      self.Function("copyHost", CopyHostBytes),
      self.Function("copyHostApart", CopyHostApart),
      self.Function("adviseHugePages", AdviseHuge),
      self.Function("lockProbe", LockProbe),
  };
  return napi_define_properties(self.env, exports, std::size(functions), functions) == napi_ok;
}

}  // namespace millrace

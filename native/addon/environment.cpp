#include "addon/environment.h"

#include <chrono>
#include <cstdint>
#include <thread>

#include "addon/values.h"
#include "runtime/registry.h"

namespace millrace {
namespace {

/// A kernel that runs longer than this after its environment ended keeps its thread and memory.
constexpr auto kJoinDeadline = std::chrono::milliseconds(400);
/// The thread of a compilation that runs longer than this after its environment ended is detached.
constexpr auto kCompileDeadline = std::chrono::milliseconds(2000);

void AdjustExternalMemory(napi_env env, int64_t change) {
  int64_t total = 0;
  napi_adjust_external_memory(env, change, &total);
}

}  // namespace

Deliveries* Environment::OpenDeliveries() {
  if (deliveries == nullptr) deliveries = Deliveries::Open(env);
  return deliveries.get();
}

HeldBytes Environment::Hold(napi_value view) {
  HeldBytes held;
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  napi_value buffer;
  size_t offset = 0;
  if (napi_get_typedarray_info(env, view, &type, &length, &data, &buffer, &offset) != napi_ok ||
      type != napi_uint8_array)
    return held;
  // A reference to the view keeps its memory alive, even if the memory is shared.
  if (napi_create_reference(env, view, 1, &held.reference) != napi_ok) return held;
  bool is_unshared = false;
  held.is_shared = napi_is_arraybuffer(env, buffer, &is_unshared) == napi_ok && !is_unshared;
  held.bytes = {static_cast<std::byte*>(data), length};
  return held;
}

void Environment::Release(HeldBytes& held) {
  if (held.reference != nullptr) napi_delete_reference(env, held.reference);
  held = HeldBytes{};
}

void Environment::Discard(HeldBytes& held) {
  napi_value view = nullptr;
  napi_value buffer = nullptr;
  if (held.reference != nullptr && !held.is_shared && napi_get_reference_value(env, held.reference, &view) == napi_ok &&
      napi_get_typedarray_info(env, view, nullptr, nullptr, nullptr, &buffer, nullptr) == napi_ok) {
    napi_detach_arraybuffer(env, buffer);
  }
  Release(held);
}

void Environment::CountShared(napi_value keeper, size_t bytes) {
  const auto uncount = [](napi_env env, void* data, void*) {
    AdjustExternalMemory(env, -static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)));
  };
  if (napi_add_finalizer(env, keeper, reinterpret_cast<void*>(bytes), uncount, nullptr, nullptr) != napi_ok) return;
  AdjustExternalMemory(env, static_cast<int64_t>(bytes));
}

napi_value ThrowFailure(napi_env env, Channel& channel, const char* function, const Status& status) {
  if (status.code() == StatusCode::kDeviceLost && status.driver_code() != 0) channel.MarkLost(status);
  return ThrowStatus(env, function, status);
}

napi_value NotControlled(napi_env env, const char* function) {
  return ThrowStatus(env, function, Status(StatusCode::kState, "the device was not opened by this thread"));
}

void Environment::CleanUp(void* data) {
  auto* self = static_cast<Environment*>(data);
  if (self->port != nullptr) self->port->Close();
  if (self->deliveries != nullptr) self->deliveries->Close(kCompileDeadline);
  self->attached.clear();
  // Their kernels would keep the devices busy.
  self->communicators->has_left = true;
  const auto latest = std::chrono::steady_clock::now() + kJoinDeadline;
  while (self->communicators->open > 0 && std::chrono::steady_clock::now() < latest)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const auto& remote : self->remotes) {
    if (remote == nullptr) continue;
    remote->owner->Stop();
    remote->owner->ReapLater();
  }
  self->remotes.clear();
  for (auto& [id, controlled] : self->controlled) {
    if (controlled.channel != nullptr) controlled.channel->Abandon(kJoinDeadline);
    Registry::Instance().Remove(id);
  }
}

}  // namespace millrace

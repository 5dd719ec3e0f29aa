#include "addon/environment.h"

#include <chrono>

#include "addon/values.h"
#include "runtime/registry.h"

namespace millrace {
namespace {

/// A kernel that runs longer than this keeps its thread and its memory when the environment ends under it.
constexpr auto kJoinDeadline = std::chrono::milliseconds(400);

}  // namespace

Environment& Environment::Of(napi_env env) {
  void* data = nullptr;
  MR_CHECK(napi_get_instance_data(env, &data) == napi_ok && data != nullptr);
  return *static_cast<Environment*>(data);
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
  // A reference on the view keeps its memory alive, also when the memory is shared.
  if (napi_create_reference(env, view, 1, &held.reference) != napi_ok) return held;
  held.bytes = {static_cast<std::byte*>(data), length};
  return held;
}

void Environment::Release(HeldBytes& held) {
  if (held.reference != nullptr) napi_delete_reference(env, held.reference);
  held = HeldBytes{};
}

napi_value NotControlled(napi_env env, const char* function) {
  return ThrowStatus(env, function, Status(StatusCode::kState, "the device was not opened by this thread"));
}

void Environment::CleanUp(void* data) {
  auto* self = static_cast<Environment*>(data);
  if (self->port != nullptr) self->port->Close();
  self->attached.clear();
  for (auto& [id, controlled] : self->controlled) {
    if (controlled.channel != nullptr) controlled.channel->Abandon(kJoinDeadline);
    Registry::Instance().Remove(id);
  }
}

}  // namespace millrace

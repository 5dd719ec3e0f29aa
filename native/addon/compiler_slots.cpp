#include "addon/compiler_slots.h"

#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "addon/args.h"
#include "addon/values.h"

namespace millrace {

struct AllTurns {
  std::mutex mutex;
  uint32_t taken = 0;                 // Guarded by mutex.
  std::deque<CompilerSlots*> asking;  // Guarded by mutex; holds an environment once per turn that it waits for.

  static AllTurns& Instance() {
    static AllTurns all;
    return all;
  }

  /// Passes one turn of `from` to the next environment, and returns the port to ring after the mutex is unlocked. The
  /// caller holds the mutex.
  std::shared_ptr<Port> PassOn(CompilerSlots& from) {
    from.held_--;
    if (asking.empty()) {
      taken--;
      return nullptr;
    }
    CompilerSlots* next = asking.front();
    asking.pop_front();
    next->held_++;
    next->granted_++;
    return next->port_;
  }
};

void CompilerSlots::Define(napi_env env, napi_value exports) {
  auto* slots = new CompilerSlots();
  const auto function = [slots](const char* name, napi_callback call) {
    return napi_property_descriptor{name, nullptr, call, nullptr, nullptr, nullptr, napi_enumerable, slots};
  };
  const napi_property_descriptor functions[] = {
      function("openCompilerSlots", Open),
      function("takeCompilerSlot", Take),
      function("grantedCompilerSlots", Granted),
      function("releaseCompilerSlot", Give),
  };
  // Node-API fails in an environment that is ending. JavaScript does not call the functions then.
  if (napi_define_properties(env, exports, std::size(functions), functions) != napi_ok ||
      napi_add_env_cleanup_hook(env, CleanUp, slots) != napi_ok) {
    delete slots;
  }
}

napi_value CompilerSlots::Open(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  napi_valuetype type = napi_undefined;
  if (!args.ok() || napi_typeof(env, args[0], &type) != napi_ok || type != napi_function)
    return args.Throw("openCompilerSlots");
  std::shared_ptr<Port> port = Port::Open(env, args[0]);
  if (port == nullptr)
    return ThrowStatus(env, "openCompilerSlots", Status(StatusCode::kInternal, "creating a thread-safe function"));
  auto& self = SelfOf<CompilerSlots>(env, info);
  std::lock_guard lock(AllTurns::Instance().mutex);
  std::swap(self.port_, port);
  return nullptr;
}

napi_value CompilerSlots::Take(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t limit = args.U32(0);
  args.Require(limit > 0);
  if (!args.ok()) return args.Throw("takeCompilerSlot");
  auto& self = SelfOf<CompilerSlots>(env, info);
  AllTurns& all = AllTurns::Instance();
  std::lock_guard lock(all.mutex);
  if (self.port_ == nullptr) return args.Throw("takeCompilerSlot");
  const bool is_taken = all.taken < limit && all.asking.empty();
  if (is_taken) {
    all.taken++;
    self.held_++;
  } else {
    all.asking.push_back(&self);
  }
  return BoolValue(env, is_taken);
}

napi_value CompilerSlots::Granted(napi_env env, napi_callback_info info) {
  auto& self = SelfOf<CompilerSlots>(env, info);
  std::lock_guard lock(AllTurns::Instance().mutex);
  return NumberValue(env, std::exchange(self.granted_, 0));
}

napi_value CompilerSlots::Give(napi_env env, napi_callback_info info) {
  auto& self = SelfOf<CompilerSlots>(env, info);
  AllTurns& all = AllTurns::Instance();
  std::shared_ptr<Port> next;
  {
    std::lock_guard lock(all.mutex);
    if (self.held_ > 0) next = all.PassOn(self);
  }
  if (next != nullptr) next->Ring();
  return nullptr;
}

void CompilerSlots::CleanUp(void* data) {
  auto* self = static_cast<CompilerSlots*>(data);
  AllTurns& all = AllTurns::Instance();
  std::shared_ptr<Port> own;
  std::deque<std::shared_ptr<Port>> others;
  {
    std::lock_guard lock(all.mutex);
    std::erase(all.asking, self);
    while (self->held_ > 0) {
      if (auto next = all.PassOn(*self); next != nullptr) others.push_back(std::move(next));
    }
    own = std::move(self->port_);
  }
  for (const auto& port : others) port->Ring();
  if (own != nullptr) own->Close();
  delete self;
}

}  // namespace millrace

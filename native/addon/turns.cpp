#include "addon/turns.h"

#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "addon/args.h"
#include "addon/values.h"

namespace millrace {

struct AllTurns {
  std::mutex mutex;
  uint32_t taken = 0;         // Guarded by mutex.
  std::deque<Turns*> asking;  // Guarded by mutex; contains an environment once for each turn that it waits for.

  static AllTurns& Instance() {
    static AllTurns all;
    return all;
  }

  /// Passes one turn of `from` to the next environment, and returns the port to ring after the mutex is unlocked. The
  /// caller holds the mutex.
  std::shared_ptr<Port> PassOn(Turns& from) {
    from.held_--;
    if (asking.empty()) {
      taken--;
      return nullptr;
    }
    Turns* next = asking.front();
    asking.pop_front();
    next->held_++;
    next->granted_++;
    return next->port_;
  }
};

namespace {

Turns& Of(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  size_t count = 0;
  napi_get_cb_info(env, info, &count, nullptr, nullptr, &data);
  return *static_cast<Turns*>(data);
}

}  // namespace

void Turns::Define(napi_env env, napi_value exports) {
  auto* turns = new Turns();
  const auto function = [turns](const char* name, napi_callback call) {
    return napi_property_descriptor{name, nullptr, call, nullptr, nullptr, nullptr, napi_enumerable, turns};
  };
  const napi_property_descriptor functions[] = {
      function("openTurns", Open),
      function("takeTurn", Take),
      function("grantedTurns", Granted),
      function("giveTurn", Give),
  };
  // Node-API fails in an environment that is ending. JavaScript does not call the functions then.
  if (napi_define_properties(env, exports, std::size(functions), functions) != napi_ok ||
      napi_add_env_cleanup_hook(env, CleanUp, turns) != napi_ok) {
    delete turns;
  }
}

napi_value Turns::Open(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  napi_valuetype type = napi_undefined;
  if (!args.ok() || napi_typeof(env, args[0], &type) != napi_ok || type != napi_function)
    return args.Throw("openTurns");
  std::shared_ptr<Port> port = Port::Open(env, args[0]);
  if (port == nullptr)
    return ThrowStatus(env, "openTurns", Status(StatusCode::kInternal, "making a function for threads"));
  Turns& self = Of(env, info);
  std::lock_guard lock(AllTurns::Instance().mutex);
  std::swap(self.port_, port);
  return nullptr;
}

napi_value Turns::Take(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t limit = args.U32(0);
  args.Require(limit > 0);
  if (!args.ok()) return args.Throw("takeTurn");
  Turns& self = Of(env, info);
  AllTurns& all = AllTurns::Instance();
  std::lock_guard lock(all.mutex);
  if (self.port_ == nullptr) return args.Throw("takeTurn");
  const bool is_taken = all.taken < limit && all.asking.empty();
  if (is_taken) {
    all.taken++;
    self.held_++;
  } else {
    all.asking.push_back(&self);
  }
  return BoolValue(env, is_taken);
}

napi_value Turns::Granted(napi_env env, napi_callback_info info) {
  Turns& self = Of(env, info);
  std::lock_guard lock(AllTurns::Instance().mutex);
  return NumberValue(env, std::exchange(self.granted_, 0));
}

napi_value Turns::Give(napi_env env, napi_callback_info info) {
  Turns& self = Of(env, info);
  AllTurns& all = AllTurns::Instance();
  std::shared_ptr<Port> next;
  {
    std::lock_guard lock(all.mutex);
    if (self.held_ > 0) next = all.PassOn(self);
  }
  if (next != nullptr) next->Ring();
  return nullptr;
}

void Turns::CleanUp(void* data) {
  auto* self = static_cast<Turns*>(data);
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

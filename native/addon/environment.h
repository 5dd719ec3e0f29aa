// What one environment (the main thread's, or a worker's) holds of the addon. One instance each, freed by Node after
// the clean-up hook ran; nothing of it is global.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "addon/deliveries.h"
#include "addon/port.h"
#include "addon/shared_pages.h"
#include "runtime/channel.h"

namespace millrace {

/// Bytes of a JavaScript view, kept alive by a reference. A reference may die only on its own environment's thread.
struct HeldBytes {
  napi_ref reference = nullptr;
  std::span<std::byte> bytes;
  bool is_shared = false;
};

/// The native side of what JavaScript and a device share. Its channel keeps it too, however long its thread lives.
struct DevicePages {
  SharedPages timeline;
  SharedPages arena;
};

class Environment {
 public:
  explicit Environment(napi_env env) : env(env) {}
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// The clean-up hook: lets go of the port, then ends the devices this environment controls, within a deadline.
  static void CleanUp(void* environment);

  /// An exported function, which finds this environment in its data.
  [[nodiscard]] napi_property_descriptor Function(const char* name, napi_callback call) {
    return {name, nullptr, call, nullptr, nullptr, nullptr, napi_enumerable, this};
  }
  /// Made at the first call that needs it. Null when Node refuses.
  [[nodiscard]] Deliveries* OpenDeliveries();

  /// Holds the memory of a view over an ArrayBuffer or SharedArrayBuffer. Empty bytes when it is no such view.
  HeldBytes Hold(napi_value view);
  void Release(HeldBytes& held);
  /// The same for memory that nobody needs any more: an ArrayBuffer is detached, which frees its memory at once and not
  /// when V8 comes to collect the few small objects of this thread.
  void Discard(HeldBytes& held);
  /// Tells V8 how many bytes of shared memory an object of this environment keeps, until V8 has collected the object.
  /// V8 counts only memory that is not shared, so it would see no reason to collect small objects that keep gigabytes.
  void CountShared(napi_value keeper, size_t bytes);
  [[nodiscard]] Channel* FindAttached(uint32_t channel) {
    return channel < attached.size() ? attached[channel].channel.get() : nullptr;
  }

  struct Attached {
    std::shared_ptr<Channel> channel;
    uint32_t count = 0;
  };
  struct Controlled {
    std::shared_ptr<Channel> channel;
    HeldBytes timeline;
    HeldBytes arena;
    std::shared_ptr<DevicePages> pages;
    std::unordered_map<uint32_t, HeldBytes> host;  // By handle.
  };

  /// Null when the device was not opened by this thread.
  [[nodiscard]] Controlled* FindControlled(uint32_t channel) {
    const auto found = controlled.find(channel);
    return found == controlled.end() ? nullptr : &found->second;
  }

  const napi_env env;
  std::shared_ptr<Port> port;
  std::shared_ptr<Deliveries> deliveries;
  HeldBytes record;
  std::vector<Attached> attached;                       // By channel id: the owner's hot path.
  std::unordered_map<uint32_t, Controlled> controlled;  // By channel id.
};

/// Throws that the device was not opened by this thread, and returns null.
napi_value NotControlled(napi_env env, const char* function);

}  // namespace millrace

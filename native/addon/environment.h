// The addon's state of one environment (the main thread's or a worker's). Node frees it after the clean-up hook ran; no
// state is global.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "addon/deliveries.h"
#include "addon/port.h"
#include "addon/remote_memory.h"
#include "addon/shared_pages.h"
#include "cuda/communicator.h"
#include "runtime/channel.h"
#include "runtime/remote/host.h"
#include "runtime/remote/owner.h"

namespace millrace {

/// Bytes of a JavaScript view, kept alive by a reference. Only its environment's thread may delete the reference.
struct HeldBytes {
  napi_ref reference = nullptr;
  std::span<std::byte> bytes;
  bool is_shared = false;
};

/// The native mapping of memory that JavaScript and a device share. The channel keeps it too, until its thread ends.
struct DevicePages {
  SharedPages timeline;
  SharedPages arena;
  /// For an owner in another process.
  std::shared_ptr<RemoteMemory> memory;
  std::shared_ptr<remote::Host> host;
};

class Environment {
 public:
  explicit Environment(napi_env env) : env(env) {}
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// The clean-up hook: closes the port, then ends the devices that this environment controls, within a deadline.
  static void CleanUp(void* environment);

  /// An exported function, which receives this environment as its data.
  [[nodiscard]] napi_property_descriptor Function(const char* name, napi_callback call) {
    return {name, nullptr, call, nullptr, nullptr, nullptr, napi_enumerable, this};
  }
  /// Created at the first call. Null when Node refuses.
  [[nodiscard]] Deliveries* OpenDeliveries();

  /// Holds the memory of a view of an ArrayBuffer or SharedArrayBuffer. Empty bytes if `view` is neither.
  HeldBytes Hold(napi_value view);
  void Release(HeldBytes& held);
  /// Releases memory that is no longer needed: detaches an ArrayBuffer, which frees its memory at once instead of at
  /// V8's next collection of this thread.
  void Discard(HeldBytes& held);
  /// Reports to V8 the shared memory that an object of this environment keeps, until V8 collects the object. V8 counts
  /// only unshared memory, so it would not collect small objects that keep gigabytes.
  void CountShared(napi_value keeper, size_t bytes);
  [[nodiscard]] Channel* FindAttached(uint32_t channel) {
    return channel < attached.size() ? attached[channel].channel.get() : nullptr;
  }

  struct Attached {
    std::shared_ptr<Channel> channel;
    uint32_t count = 0;
    /// Of an environment that shares a device which another one opened; else 0.
    uint32_t owner_id = 0;
  };
  struct Controlled {
    std::shared_ptr<Channel> channel;
    HeldBytes timeline;
    HeldBytes arena;
    std::shared_ptr<DevicePages> pages;
    std::unordered_map<uint32_t, HeldBytes> host;  // By handle.
    std::vector<HeldBytes> locked;                 // The driver does not unlock them.
  };

  /// A device in another process.
  struct Remote {
    std::shared_ptr<RemoteMemory> memory;
    std::shared_ptr<remote::Owner> owner;
    std::shared_ptr<DevicePages> pages;
    HeldBytes timeline;
    HeldBytes arena;
  };
  [[nodiscard]] Remote* FindRemote(uint32_t channel) {
    return channel < remotes.size() ? remotes[channel].get() : nullptr;
  }

  /// Null if this thread did not open the device.
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
  std::vector<std::unique_ptr<Remote>> remotes;         // By channel id, as `attached`.
  const std::shared_ptr<cuda::CommunicatorOwner> communicators = std::make_shared<cuda::CommunicatorOwner>();
};

/// Throws the failure of a call for a device. A loss that only this call met is told to all who wait for the device.
napi_value ThrowFailure(napi_env env, Channel& channel, const char* function, const Status& status);
/// Throws that this thread did not open the device, and returns null.
napi_value NotControlled(napi_env env, const char* function);

}  // namespace millrace

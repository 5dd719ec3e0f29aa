// Explores every order of the steps in which threads ring an owner and its event loop receives the rings:
// native/addon/port.cpp on the explorer's atomics and locks, and on the test's own Node-API.
#include "addon/port.h"

#include "explorer/explored_test.h"

namespace explorer {
namespace {

/// Node's event loop: makes the queued calls, and sleeps while there are none, until `is_over()` or until the function
/// closes.
template <typename IsOver>
void RunLoop(FakeFunction* function, IsOver is_over) {
  const auto env = reinterpret_cast<napi_env>(function);
  while (!is_over()) {
    while (function->queued == 0 && !function->is_closed) Wait(function);
    if (function->queued == 0) return;
    --function->queued;
    function->call(env, nullptr, function->context, nullptr);
  }
}

struct Owner {
  std::atomic<int> word{0};
  int seen = 0;
  std::shared_ptr<Port> port;

  Owner() : port(Port::Open(nullptr, nullptr)) {
    // JavaScript looks with Atomics.load.
    on_wake_of_scenario = [this] { seen = word.load(std::memory_order_seq_cst); };
  }
  ~Owner() {
    FakeFunction* const function = last_function;
    port->Close();
    function->finalize(nullptr, function->finalize_data, nullptr);
    delete function;
  }
  /// Like a channel: writes the completed ticket, then rings.
  void Reach(int ticket) {
    word.store(ticket, std::memory_order_release);
    port->Ring();
  }
};

MR_TEST(WhatIsWrittenBeforeARingIsSeen) {
  ExpectNoneFails({.switches = 4, .delays = 2}, [] {
    Owner owner;
    Window window;
    const uint32_t device = Spawn("device", [&] {
      owner.Reach(1);
      owner.Reach(2);
    });
    RunLoop(last_function, [&] { return owner.seen == 2; });
    Join(device);
  });
}

MR_TEST(TwoThreadsRingAtOnce) {
  ExpectNoneFails({.switches = 3, .delays = 1}, [] {
    Owner owner;
    std::atomic<int> other{0};
    int seen = 0;
    on_wake_of_scenario = [&] {
      owner.seen = owner.word.load();
      seen = other.load();
    };
    Window window;
    const uint32_t device = Spawn("device", [&] { owner.Reach(1); });
    const uint32_t channel = Spawn("channel", [&] {
      other.store(1, std::memory_order_release);
      owner.port->Ring();
    });
    RunLoop(last_function, [&] { return owner.seen == 1 && seen == 1; });
    Join(device);
    Join(channel);
  });
}

// A ring while the environment ends calls nothing, and accesses no freed object.
MR_TEST(RingingAndClosingMeet) {
  ExpectNoneFails({.switches = 3, .delays = 1}, [] {
    Owner owner;
    Window window;
    const uint32_t device = Spawn("device", [&] { owner.Reach(1); });
    owner.port->Ref(nullptr, true);
    owner.port->Close();
    owner.port->Ref(nullptr, false);
    Expect(last_function->references == 1, "a closed port changed what Node has let go of");
    Join(device);
  });
}

}  // namespace
}  // namespace explorer

MR_TEST_MAIN()

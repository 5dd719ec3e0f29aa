#include "explorer/scheduler.h"

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

namespace explorer {
namespace {

constexpr size_t kStackBytes = 256 << 10;
/// A run with more steps counts as endless.
constexpr uint64_t kMostSteps = 20'000;
/// The last steps of a failed run that the report shows.
constexpr size_t kToldSteps = 120;

struct DelayedStore {
  void* address;
  uint64_t value;
  uint32_t bytes;
};

struct Fiber {
  uint32_t id = 0;
  std::string name;
  std::function<void()> body;
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  bool is_over = false;
  const void* waits_on = nullptr;
  int64_t until_ns = -1;  // Of a wait with a limit.
  bool has_timed_out = false;
  std::deque<DelayedStore> stores;

  [[nodiscard]] bool IsRunnable() const { return !is_over && waits_on == nullptr; }
};

struct Choice {
  uint32_t taken;
  uint32_t count;
};

// Everything runs on one system thread.
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<std::unique_ptr<Fiber>> abandoned;  // Of failed runs: their stacks hold what they wait with.
Fiber* current = nullptr;
ucontext_t outside;
std::vector<Choice> choices;
size_t depth = 0;
uint32_t next_id = 0;
int switches_left = 0;
int delays_left = 0;
int windows = 0;
uint64_t steps = 0;
int64_t now_ns = 0;
std::string failure;
std::deque<std::string> trace;
bool is_traced = false;

void Tell(const char* what, const void* object) {
  if (!is_traced) return;
  char line[160];
  std::snprintf(line, sizeof line, "  %-12s %-8s %p", current == nullptr ? "-" : current->name.c_str(), what, object);
  trace.emplace_back(line);
  if (trace.size() > kToldSteps) trace.pop_front();
}

uint32_t Choose(size_t count) {
  if (count < 2 || windows == 0) return 0;
  if (depth == choices.size()) choices.push_back({0, static_cast<uint32_t>(count)});
  if (choices[depth].count != count && failure.empty()) failure = "the scenario does something else each time";
  return choices[depth++].taken;
}

void SwitchTo(Fiber* next) {
  Fiber* const before = current;
  current = next;
  if (next == before) return;
  swapcontext(before == nullptr ? &outside : &before->context, next == nullptr ? &outside : &next->context);
}

/// Leaves the run; objects that its threads hold leak.
void Fail(std::string what) {
  if (failure.empty()) failure = std::move(what);
  SwitchTo(nullptr);
}

/// The running thread is blocked: another one runs.
void GoOn() {
  std::vector<Fiber*> runnable;
  for (const auto& fiber : fibers) {
    if (fiber->IsRunnable()) runnable.push_back(fiber.get());
  }
  if (!runnable.empty()) {
    const uint32_t chosen = switches_left > 0 ? Choose(runnable.size()) : 0;
    if (chosen > 0) --switches_left;
    return SwitchTo(runnable[chosen]);
  }
  Fiber* next = nullptr;
  for (const auto& fiber : fibers) {
    if (fiber->is_over || fiber->until_ns < 0) continue;
    if (next == nullptr || fiber->until_ns < next->until_ns) next = fiber.get();
  }
  if (next == nullptr) return SwitchTo(nullptr);  // All wait.
  if (++steps > kMostSteps) return Fail("the run never ends");
  now_ns = next->until_ns;
  next->until_ns = -1;
  next->waits_on = nullptr;
  next->has_timed_out = true;
  SwitchTo(next);
}

void Entry() {
  current->body();
  current->body = nullptr;
  Drain();
  current->is_over = true;
  WakeAll(current);
  GoOn();
}

/// One run: the scenario's thread, and all threads that it starts.
void Run(const std::function<void()>& scenario) {
  depth = 0;
  steps = 0;
  windows = 0;
  trace.clear();
  Spawn("scenario", scenario);
  SwitchTo(fibers.back().get());
  current = nullptr;
  if (!failure.empty()) return;
  for (const auto& fiber : fibers) {
    if (fiber->is_over) continue;
    failure = "every thread waits, " + fiber->name + " for what never comes";
    return;
  }
  std::erase_if(fibers, [](const auto& fiber) { return fiber->is_over; });
}

void Abandon() {
  for (auto& fiber : fibers) abandoned.push_back(std::move(fiber));
  fibers.clear();
}

/// The next run takes another choice at the last choice point that has one; false when there is none.
bool Advance() {
  while (!choices.empty() && choices.back().taken + 1 == choices.back().count) choices.pop_back();
  if (choices.empty()) return false;
  ++choices.back().taken;
  return true;
}

}  // namespace

Report Explore(const Bounds& bounds, const std::function<void()>& scenario) {
  Report report;
  choices.clear();
  failure.clear();
  // Once without choices, so that objects created once per process exist.
  const auto run = [&](bool has_choices) {
    switches_left = has_choices ? bounds.switches : 0;
    delays_left = has_choices ? bounds.delays : 0;
    Run(scenario);
  };
  run(false);
  choices.clear();
  if (!failure.empty()) {
    report.failure = failure;
    return report;
  }
  do {
    ++report.runs;
    is_traced = false;
    run(true);
    if (!failure.empty()) break;
  } while (Advance());
  if (failure.empty()) return report;
  // Again, and print its steps.
  const std::string first = failure;
  failure.clear();
  Abandon();
  is_traced = true;
  run(true);
  report.failure = first + ", in run " + std::to_string(report.runs) + ":";
  for (const std::string& line : trace) report.failure += "\n" + line;
  Abandon();
  return report;
}

Window::Window() {
  ++windows;
}

Window::~Window() {
  --windows;
}

void Expect(bool is_true, const char* what) {
  if (!is_true) Fail(what);
}

uint32_t Spawn(const char* name, std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->id = next_id++;
  fiber->name = name;
  fiber->body = std::move(body);
  fiber->stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.get();
  fiber->context.uc_stack.ss_size = kStackBytes;
  makecontext(&fiber->context, &Entry, 0);
  fibers.push_back(std::move(fiber));
  return fibers.back()->id;
}

void Join(uint32_t thread) {
  Step("join", nullptr);
  Drain();
  for (const auto& fiber : fibers) {
    if (fiber->id == thread && !fiber->is_over) {
      Wait(fiber.get());
      return;
    }
  }
}

void Step(const char* what, const void* object) {
  if (current == nullptr) return;
  if (++steps > kMostSteps) Fail("the run never ends");
  if (windows > 0 && switches_left > 0) {
    std::vector<Fiber*> others = {current};
    for (const auto& fiber : fibers) {
      if (fiber.get() != current && fiber->IsRunnable()) others.push_back(fiber.get());
    }
    if (Fiber* const next = others[Choose(others.size())]; next != current) {
      --switches_left;
      Tell("preempted", object);
      SwitchTo(next);
    }
  }
  Tell(what, object);
}

bool Wait(const void* object, int64_t limit_ns) {
  if (current == nullptr) {
    std::fprintf(stderr, "explorer: a wait outside of a run\n");
    std::abort();
  }
  Tell("waits", object);
  Fiber* const self = current;
  self->waits_on = object;
  self->until_ns = limit_ns < 0 ? -1 : now_ns + limit_ns;
  self->has_timed_out = false;
  GoOn();
  Tell("goes on", object);
  return !self->has_timed_out;
}

void WakeOne(const void* object) {
  for (const auto& fiber : fibers) {
    if (fiber->is_over || fiber->waits_on != object) continue;
    fiber->waits_on = nullptr;
    fiber->until_ns = -1;
    return;
  }
}

void WakeAll(const void* object) {
  for (const auto& fiber : fibers) {
    if (fiber->is_over || fiber->waits_on != object) continue;
    fiber->waits_on = nullptr;
    fiber->until_ns = -1;
  }
}

void NameThread(const char* name) {
  if (current == nullptr) return;
  current->name = name;
}

int64_t NowNs() {
  return now_ns;
}

uint64_t Load(const void* address, uint32_t bytes) {
  if (current != nullptr) {
    for (auto store = current->stores.rbegin(); store != current->stores.rend(); ++store) {
      if (store->address == address) return store->value;
    }
  }
  uint64_t value = 0;
  std::memcpy(&value, address, bytes);
  return value;
}

void Store(void* address, uint64_t value, uint32_t bytes) {
  if (current != nullptr) {
    // They become visible in their order.
    bool is_delayed = !current->stores.empty();
    if (!is_delayed && windows > 0 && delays_left > 0 && Choose(2) == 1) {
      --delays_left;
      is_delayed = true;
    }
    if (is_delayed) {
      Tell("delayed", address);
      current->stores.push_back({address, value, bytes});
      return;
    }
  }
  std::memcpy(address, &value, bytes);
}

void Drain() {
  if (current == nullptr || current->stores.empty()) return;
  Step("drain", current);
  for (const DelayedStore& store : current->stores) std::memcpy(store.address, &store.value, store.bytes);
  current->stores.clear();
}

}  // namespace explorer

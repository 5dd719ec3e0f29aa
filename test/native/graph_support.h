// Shared by the graph tests of both backends: building graphs, and random ones with the result that they must have.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "hal/graph.h"
#include "hal/hal.h"

namespace millrace::testing {

template <typename T>
uint64_t Bits(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<uint64_t>(value);
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}

template <typename... Params>
hal::GraphKernel KernelNode(std::shared_ptr<hal::Kernel> kernel, hal::Dim3 grid, Params... params) {
  hal::GraphKernel node;
  node.kernel = std::move(kernel);
  node.grid = grid;
  node.params = {Bits(params)...};
  return node;
}

/// The nodes of a graph, or of a body, on one device unless another is named.
struct Nodes {
  explicit Nodes(hal::Device& device) : device(&device) {}

  uint32_t Add(hal::GraphWork work, std::vector<uint32_t> after = {}, hal::Device* on = nullptr) {
    list.push_back({.device = on == nullptr ? device : on, .work = std::move(work), .after = std::move(after)});
    return static_cast<uint32_t>(list.size() - 1);
  }
  /// After the node that was added last.
  uint32_t Then(hal::GraphWork work) {
    if (list.empty()) return Add(std::move(work));
    return Add(std::move(work), {static_cast<uint32_t>(list.size() - 1)});
  }
  [[nodiscard]] std::unique_ptr<hal::Graph> Build() const {
    Result<std::unique_ptr<hal::Graph>> graph = device->BuildGraph(list);
    if (!graph.ok()) std::printf("  graph: %s (%d)\n", graph.status().note(), graph.status().driver_code());
    MR_CHECK(graph.ok());
    return std::move(graph).value();
  }

  hal::Device* device;
  std::vector<hal::GraphNode> list;
};

inline hal::GraphCondition Condition(hal::GraphCondition::Kind kind, const int32_t* value,
                                     std::initializer_list<Nodes> bodies) {
  hal::GraphCondition condition{kind, value, {}};
  for (const Nodes& body : bodies) condition.bodies.push_back(body.list);
  return condition;
}

/// One step of a random program: the parameters of the kernel `mix`, and the steps that it must come after.
struct MixStep {
  uint32_t to, one, other;
  std::vector<uint32_t> after;
};

/// A program whose order is that of its accesses alone: a step comes after the last writer of what it uses, and after
/// the readers of what it writes since then.
inline std::vector<MixStep> RandomProgram(std::mt19937& random, uint32_t steps, uint32_t words) {
  struct Word {
    int64_t writer = -1;
    std::vector<uint32_t> readers;
  };
  std::vector<Word> state(words);
  std::vector<MixStep> program;
  for (uint32_t index = 0; index < steps; ++index) {
    MixStep step{static_cast<uint32_t>(random() % words),
                 static_cast<uint32_t>(random() % words),
                 static_cast<uint32_t>(random() % words),
                 {}};
    std::set<uint32_t> after;
    for (const uint32_t used : {step.to, step.one, step.other}) {
      if (state[used].writer >= 0) after.insert(static_cast<uint32_t>(state[used].writer));
    }
    for (const uint32_t reader : state[step.to].readers) after.insert(reader);
    state[step.one].readers.push_back(index);
    state[step.other].readers.push_back(index);
    state[step.to] = {index, {}};
    step.after.assign(after.begin(), after.end());
    program.push_back(std::move(step));
  }
  return program;
}

}  // namespace millrace::testing

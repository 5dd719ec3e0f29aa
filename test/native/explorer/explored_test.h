// Shared by the tests that use the explorer.
#pragma once

#include <cstdio>

#include "explorer/scheduler.h"
#include "testing.h"

namespace explorer {

using namespace millrace;  // NOLINT: the scenarios speak of little else

/// Expects that no order of the scenario's steps fails. Prints the number of orders.
inline void ExpectNoneFails(const Bounds& bounds, const std::function<void()>& scenario) {
  const Report report = Explore(bounds, scenario);
  std::printf("  %llu orders\n", static_cast<unsigned long long>(report.runs));
  if (!report.failure.empty()) testing::Fail(__FILE__, __LINE__, report.failure);
}

}  // namespace explorer

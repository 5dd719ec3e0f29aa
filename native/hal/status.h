// Results of calls, without exceptions. A Status is three words and never allocates.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "protocol/protocol.gen.h"

namespace millrace {

using StatusCode = protocol::Status;

/// `driver_code` is the backend's own code (0 for none), `note` a string literal that names the operation.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(StatusCode code, const char* note, int32_t driver_code = 0)
      : code_(code), driver_code_(driver_code), note_(note) {}

  [[nodiscard]] constexpr bool ok() const { return code_ == StatusCode::kOk; }
  [[nodiscard]] constexpr StatusCode code() const { return code_; }
  [[nodiscard]] constexpr int32_t driver_code() const { return driver_code_; }
  [[nodiscard]] constexpr const char* note() const { return note_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  int32_t driver_code_ = 0;
  const char* note_ = "";
};

/// A value, or the Status that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by design
  Result(Status status) : status_(status) {}     // NOLINT: implicit by design

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] T& value() & { return *value_; }
  [[nodiscard]] T&& value() && { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace millrace

/// Returns from the enclosing function when `expression` is a failed Status.
#define MR_TRY(expression)                                                \
  do {                                                                    \
    if (::millrace::Status mr_status_ = (expression); !mr_status_.ok()) { \
      return mr_status_;                                                  \
    }                                                                     \
  } while (false)

/// An invariant that the calling layer guarantees. A violation is a defect of this library, so it aborts the process at
/// once.
#define MR_CHECK(condition)                                                                               \
  do {                                                                                                    \
    if (!(condition)) {                                                                                   \
      std::fprintf(stderr, "millrace: broken invariant (%s) at %s:%d\n", #condition, __FILE__, __LINE__); \
      std::abort();                                                                                       \
    }                                                                                                     \
  } while (false)

// Minimal native test support: named cases, expectations that print both sides, one line per case.
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Options for the sanitizers. Up to GCC 13 and LLVM 16, they may misread the thread-local storage of an opened library
// and crash (google/sanitizers#1322): at a leak check of the address sanitizer while threads that used it are alive,
// and at any use of it under the thread sanitizer.
#define MR_SANITIZER_OPTIONS(name)                                                    \
  extern "C" __attribute__((visibility("default"), used)) inline const char* name() { \
    return "intercept_tls_get_addr=0";                                                \
  }
#if defined(__SANITIZE_ADDRESS__)
MR_SANITIZER_OPTIONS(__asan_default_options)
#elif defined(__SANITIZE_THREAD__)
MR_SANITIZER_OPTIONS(__tsan_default_options)
#endif

namespace millrace::testing {

struct Case {
  const char* file;
  const char* name;
  void (*body)();
};

inline std::vector<Case>& Cases() {
  static std::vector<Case> cases;
  return cases;
}

inline int& FailedExpectations() {
  static int count = 0;
  return count;
}

inline bool Register(const char* file, const char* name, void (*body)()) {
  Cases().push_back({file, name, body});
  return true;
}

inline void Fail(const char* file, int line, const std::string& what) {
  ++FailedExpectations();
  std::printf("  %s:%d: %s\n", file, line, what.c_str());
}

template <typename T>
std::string Show(const T& value) {
  std::ostringstream out;
  if constexpr (requires { out << value; }) {
    out << value;
  } else {
    out << static_cast<long long>(value);
  }
  return out.str();
}

// Expected values are literals, which are signed.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
template <typename A, typename B>
void ExpectEqual(const A& actual, const B& expected, const char* text, const char* file, int line) {
  if (!(actual == expected)) Fail(file, line, std::string(text) + ": " + Show(actual) + ", expected " + Show(expected));
}
#pragma GCC diagnostic pop

/// Threads take many times as long under a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLongestMs = 20'000;
#else
constexpr int kLongestMs = 5000;
#endif

/// True once `condition` holds; false when it does not within `limit_ms`. Time is only the upper bound of a test.
inline bool Eventually(const std::function<bool()>& condition, int limit_ms = kLongestMs) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Runs the cases of a program, or of one of its files, which is named without its folder and extension.
inline int RunAll(const std::string& file = "") {
  int passed = 0;
  int failed = 0;
  for (const Case& test : Cases()) {
    if (!file.empty() && std::filesystem::path(test.file).stem() != file) continue;
    const int before = FailedExpectations();
    test.body();
    const bool ok = FailedExpectations() == before;
    ++(ok ? passed : failed);
    std::printf("%s %s\n", ok ? "ok" : "FAILED", test.name);
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace millrace::testing

/// MR_TEST(RingWrapsAround) { ... }
#define MR_TEST(name)                                                                                              \
  static void name();                                                                                              \
  [[maybe_unused]] static const bool name##_is_registered = ::millrace::testing::Register(__FILE__, #name, &name); \
  static void name()

#define MR_EXPECT(condition)                                                                  \
  do {                                                                                        \
    if (!(condition)) ::millrace::testing::Fail(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)

#define MR_EXPECT_EQ(actual, expected) \
  ::millrace::testing::ExpectEqual((actual), (expected), #actual, __FILE__, __LINE__)

/// Leaves the test if continuing would make no sense.
#define MR_REQUIRE(condition)                                                              \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      ::millrace::testing::Fail(__FILE__, __LINE__, "required and not true: " #condition); \
      return;                                                                              \
    }                                                                                      \
  } while (false)

#define MR_TEST_MAIN() \
  int main() { return ::millrace::testing::RunAll(); }

#include "cuda/driver_log.h"

#include <pthread.h>

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "cuda/driver.h"

namespace millrace::cuda {

namespace {

/// All that the driver keeps.
constexpr size_t kLogBytes = 25600;
/// Notes are few: a driver that puts numbers into them ends here.
constexpr size_t kMostNotes = 1000;
constexpr std::string_view kReturning = "Returning ";
/// Of modules, whose compiler's own words are in the error already.
constexpr std::string_view kOfBuffers = "CU_JIT_ERROR_LOG_BUFFER";

/// The text of a line "[time][thread][CUDA][E] text" of this thread; empty for those of others.
std::string_view TextOf(std::string_view line, std::string_view thread) {
  const size_t first = line.find(']');
  if (first == std::string_view::npos || line.substr(first + 1, thread.size()) != thread) return {};
  const size_t end = line.find("] ");
  return end == std::string_view::npos ? std::string_view() : line.substr(end + 2);
}

/// The lines in front of this thread's last "Returning CODE", behind the one before.
std::string LastOf(std::string_view log, CUresult code) {
  const std::string thread = "[" + std::to_string(static_cast<unsigned long>(pthread_self())) + "]";
  std::string lines;
  std::string last;
  bool is_of_code = false;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view text = TextOf(log.substr(0, end), thread);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (text.starts_with(kReturning)) {
      is_of_code = text.substr(kReturning.size()).starts_with(std::to_string(code) + " ");
      last = std::exchange(lines, {});
    } else if (!text.empty() && text.find(kOfBuffers) == std::string_view::npos) {
      lines.append(lines.empty() ? "" : "; ").append(text);
    }
  }
  return is_of_code ? last : "";
}

const char* Kept(std::string text) {
  static auto* mutex = new std::mutex;
  static auto* kept = new std::unordered_set<std::string>;
  const std::lock_guard lock(*mutex);
  const auto known = kept->find(text);
  if (known != kept->end()) return known->c_str();
  return kept->size() < kMostNotes ? kept->insert(std::move(text)).first->c_str() : nullptr;
}

}  // namespace

const char* Explained(CUresult code, const char* note) {
  std::array<char, kLogBytes + 1> buffer;
  size_t size = kLogBytes;
  if (Cuda().cuLogsDumpToMemory(nullptr, buffer.data(), &size, 0) != CUDA_SUCCESS) return note;
  const std::string said = LastOf({buffer.data(), size}, code);
  const char* kept = said.empty() ? nullptr : Kept(std::string(note) + "; the driver: " + said);
  return kept == nullptr ? note : kept;
}

}  // namespace millrace::cuda

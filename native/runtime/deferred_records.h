// The records of one stream that the channel has taken out of the ring and not issued, because the stream is parked or
// earlier records of it have not been issued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/record_reader.h"

namespace millrace {

/// Thread: channel. A parked record may be tried many times; its header is kept and not read again.
class DeferredRecords {
 public:
  [[nodiscard]] bool empty() const { return at_ == bytes_.size(); }
  /// How many FREE records there are among them.
  [[nodiscard]] uint32_t frees() const { return frees_; }
  void Add(const Record& record);
  /// Only if there is one. Valid until the next Add or DropFirst.
  [[nodiscard]] Record First() const { return {first_, std::span(bytes_).subspan(at_, first_.size)}; }
  /// The first record was issued.
  void DropFirst();

 private:
  std::vector<std::byte> bytes_;  // Whole records, in order, from `at_` on.
  size_t at_ = 0;
  protocol::RecordHeader first_{};  // Of the record at `at_`, if there is one.
  uint32_t frees_ = 0;
};

}  // namespace millrace

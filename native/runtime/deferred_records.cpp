#include "runtime/deferred_records.h"

namespace millrace {

void DeferredRecords::Add(const Record& record) {
  if (empty()) first_ = record.header;
  if (record.opcode() == protocol::Opcode::kFree) ++frees_;
  bytes_.insert(bytes_.end(), record.bytes.begin(), record.bytes.end());
}

void DeferredRecords::DropFirst() {
  if (First().opcode() == protocol::Opcode::kFree) --frees_;
  // Compact only rarely, and free the memory of a long queue once it is empty.
  constexpr size_t kCompactBytes = 1 << 20;
  at_ += first_.size;
  if (empty()) {
    at_ = 0;
    if (bytes_.capacity() > kCompactBytes) {
      std::vector<std::byte>().swap(bytes_);
    } else {
      bytes_.clear();
    }
    return;
  }
  if (at_ > kCompactBytes && at_ > bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(at_));
    at_ = 0;
  }
  first_ = Record::First(std::span(bytes_).subspan(at_)).header;
}

}  // namespace millrace

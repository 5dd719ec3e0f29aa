#include "runtime/registry.h"

#include <utility>

namespace millrace {

Registry& Registry::Instance() {
  static auto* instance = new Registry;
  return *instance;
}

void Registry::AddBackend(std::unique_ptr<hal::Backend> backend) {
  std::lock_guard lock(mutex_);
  backends_.push_back(std::move(backend));
}

hal::Backend* Registry::FindBackend(std::string_view name) {
  std::lock_guard lock(mutex_);
  for (const auto& backend : backends_) {
    if (backend->name() == name) return backend.get();
  }
  return nullptr;
}

std::vector<hal::BackendReport> Registry::Enumerate() {
  std::vector<hal::Backend*> backends;
  {
    std::lock_guard lock(mutex_);
    for (const auto& backend : backends_) backends.push_back(backend.get());
  }
  std::vector<hal::BackendReport> reports;
  for (hal::Backend* backend : backends) reports.push_back(backend->Enumerate());
  return reports;
}

Result<std::shared_ptr<Channel>> Registry::Open(hal::Backend& backend, const Channel::Opening& opening) {
  if (opening.id != 0 && Find(opening.id) != nullptr)
    return Status(StatusCode::kState, "the id of a channel that is open");
  const uint32_t id = opening.id == 0 ? TakeId() : opening.id;
  auto channel = Channel::Open(backend, opening, id);
  if (channel.ok()) {
    std::lock_guard lock(mutex_);
    channels_.emplace(id, channel.value());
  }
  return channel;
}

uint32_t Registry::TakeId() {
  std::lock_guard lock(mutex_);
  while (channels_.contains(next_id_)) ++next_id_;
  return next_id_++;
}

std::shared_ptr<Channel> Registry::Find(uint32_t channel) {
  std::lock_guard lock(mutex_);
  const auto found = channels_.find(channel);
  return found == channels_.end() ? nullptr : found->second;
}

void Registry::Remove(uint32_t channel) {
  std::shared_ptr<Channel> last;  // Destroyed after the lock is released.
  std::lock_guard lock(mutex_);
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  last = std::move(found->second);
  channels_.erase(found);
}

}  // namespace millrace

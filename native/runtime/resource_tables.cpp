#include "runtime/resource_tables.h"

#include <chrono>
#include <thread>
#include <utility>

namespace millrace {

using protocol::AllocKind;

uint32_t ResourceTables::ReserveHandles(protocol::HandleKind kind, uint32_t count) {
  std::atomic<uint32_t>& next = next_handle_[static_cast<uint32_t>(kind)];
  uint32_t first = next.load(std::memory_order_relaxed);
  do {
    if (count > kMaxHandles - first) return kMaxHandles;
  } while (!next.compare_exchange_weak(first, first + count, std::memory_order_relaxed));
  return first;
}

std::optional<uint64_t> ResourceTables::AddressOf(uint32_t handle) {
  // An allocation may complete a moment before its handle is bound, so a caller that has observed it may come too
  // early.
  constexpr auto kLongestWait = std::chrono::milliseconds(1);
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  while (allocating_.load(std::memory_order_acquire) == handle && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  const std::optional<MemoryRef> found = memory.Look(handle);
  if (!found || (*found)->address == nullptr) return std::nullopt;
  return reinterpret_cast<uintptr_t>((*found)->address);
}

void ResourceTables::Describe(ChannelStats& stats) const {
  stats.live_memory = live_memory_.load(std::memory_order_relaxed);
  stats.live_bytes = live_bytes_.load(std::memory_order_relaxed);
  stats.staging_bytes = staging_bytes_.load(std::memory_order_relaxed);
}

void ResourceTables::WakeAll() {
  memory.WakeAll();
  host.WakeAll();
  kernels.WakeAll();
}

void ResourceTables::BindMemory(uint32_t handle, AllocKind kind, uint64_t bytes, std::unique_ptr<hal::Memory> made) {
  auto entry = std::make_shared<MemoryEntry>();
  entry->address = made->address();
  entry->memory = std::move(made);
  entry->bytes = bytes;
  entry->kind = kind;
  live_memory_.fetch_add(1, std::memory_order_relaxed);
  live_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (kind == AllocKind::kStaging) staging_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  memory.Bind(handle, std::move(entry));
}

void ResourceTables::BindPoisoned(uint32_t handle, uint64_t bytes, FailureId failure) {
  auto entry = std::make_shared<MemoryEntry>();
  entry->bytes = bytes;
  entry->poison.Add(failure);
  memory.Bind(handle, std::move(entry));
}

void ResourceTables::BindAdopted(uint32_t handle, const MemoryRef& entry) {
  ++entry->handles;
  memory.Bind(handle, entry);
}

void ResourceTables::CountFreed(const MemoryEntry& entry) {
  live_memory_.fetch_sub(1, std::memory_order_relaxed);
  live_bytes_.fetch_sub(entry.bytes, std::memory_order_relaxed);
  if (entry.kind == AllocKind::kStaging) staging_bytes_.fetch_sub(entry.bytes, std::memory_order_relaxed);
}

Result<EventRef> ResourceTables::CreateEvent(hal::Device& device, uint32_t handle, protocol::EventKind kind) {
  auto created = device.CreateEvent(kind);
  if (!created.ok()) return created.status();
  auto entry = std::make_shared<EventEntry>();
  entry->event_handle = std::move(created).value();
  entry->kind = kind;
  return events.Bind(handle, std::move(entry));
}

EventRef ResourceTables::BindGraphEvent(uint32_t handle) {
  auto entry = std::make_shared<EventEntry>();
  entry->is_of_graph = true;
  return events.Bind(handle, std::move(entry));
}

void ResourceTables::DefineGraph(uint32_t handle, GraphRef graph, uint32_t owner_id) {
  const bool is_new = graphs.by_handle.try_emplace(handle, std::move(graph)).second;
  if (is_new) owned.AddGraph(owner_id, handle);
}

void ResourceTables::Clear() {
  // Records in flight of other devices may know an entry for longer.
  memory.ForEach([](const MemoryRef& entry) { entry->memory.reset(); });
  memory.TakeAll();
  events.Clear();
  kernels.TakeAll();
}

}  // namespace millrace

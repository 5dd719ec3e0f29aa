// Plans the copies and fills of a graph whose memory each launch gives (slots). graph_plan.cpp plans the other nodes.

#include <algorithm>
#include <utility>

#include "runtime/channel.h"
#include "runtime/issue/graph_launch.h"

namespace millrace {

namespace {

constexpr uint32_t kNoEntry = GraphDefinition::kNoEntry;

}  // namespace

void GraphLaunch::AddPatch(uint32_t param, uint32_t entry, std::optional<uint32_t> slot, uint64_t offset) {
  const auto node = static_cast<uint32_t>(plan_->nodes.size() - 1);
  plan_->patches.push_back({.node = node, .param = param, .entry = entry, .slot = slot, .offset = offset});
}

void GraphLaunch::AddSlotWrite(uint32_t slot, bool is_whole) {
  const uint32_t number = GraphPlan::kFirstSlot + slot;
  if (is_whole) plan_->slots[slot].is_covered |= plan_->IsUnused(number);
  accesses_.writes.push_back({number, is_whole});
}

GraphLaunch::Ended GraphLaunch::AddSlotCopy(Home& home, CopyWork& copy, const GraphDefinition::Copy& defined) {
  if (home.is_gone) return std::nullopt;
  plan_->has_slot_copies = true;
  auto& [bytes, flags, told, dst, src, memory_uses, memory_count, host_uses, host_count] = copy;
  for (CopyEnd* const end : {&dst, &src}) {
    const bool is_dst = end == &dst;
    const uint32_t entry = is_dst ? defined.dst_entry : defined.src_entry;
    // The owner makes no node of a copy between devices, and none without bytes.
    if (bytes == 0 || (end->IsDevice() && end->device != home.id)) return Malformed();
    if (entry == kNoEntry) {
      if (const Ended ended = FindCopyEnd(copy, *end)) return ended;
      if (end->home == nullptr) return std::nullopt;
      if (end->entry != nullptr && is_dst) AddWrite(home, *end->entry, end->handle, copy.IsWhole());
      if (end->entry != nullptr && !is_dst) AddRead(home, *end->entry, end->handle);
      continue;
    }
    if (!end->IsDevice() || end->offset > UINT64_MAX - bytes) return Malformed();
    end->home = home.channel.get();
    const uint32_t slot = plan_->SlotOf(home.id, entry);
    uint64_t& reach = plan_->slots[slot].reach;
    reach = std::max(reach, end->offset + bytes);
    AddPatch(is_dst ? hal::GraphPatch::kDst : hal::GraphPatch::kSrc, entry, slot, end->offset);
    if (is_dst) {
      AddSlotWrite(slot, end->offset == 0);
    } else {
      accesses_.reads.push_back(GraphPlan::kFirstSlot + slot);
    }
  }
  AddHostUses(copy);
  hal::GraphCopy work{.dst = dst.address, .src = src.address, .bytes = bytes};
  work.host = {.dst = dst.Lease(), .src = src.Lease()};
  Node().work = std::move(work);
  return CheckHostMemory(copy);
}

GraphLaunch::Ended GraphLaunch::AddSlotFill(Home& home, const GraphDefinition::Fill& fill) {
  if (home.is_gone) return std::nullopt;
  plan_->has_slot_copies = true;
  const protocol::FillRecord& record = fill.record;
  const uint32_t slot = plan_->SlotOf(home.id, fill.memory_entry);
  GraphPlan::Slot& filled = plan_->slots[slot];
  filled.element_bytes = record.element_bytes;
  filled.count = fill.count_entry;
  AddSlotWrite(slot, true);
  Node().work = hal::GraphFill{.element_bytes = record.element_bytes, .pattern = record.pattern, .is_patched = true};
  AddPatch(hal::GraphPatch::kDst, fill.memory_entry, slot);
  AddPatch(hal::GraphPatch::kCount, fill.count_entry);
  if (fill.pattern_entry != kNoEntry) AddPatch(hal::GraphPatch::kPattern, fill.pattern_entry);
  return std::nullopt;
}

uint64_t GraphLaunch::ReachOf(const GraphPlan::Slot& slot) const {
  if (slot.element_bytes == 0) return slot.reach;
  const uint64_t count = entries_[slot.count].value;
  if (count > UINT64_MAX / slot.element_bytes) return UINT64_MAX;
  return std::max(slot.reach, count * slot.element_bytes);
}

}  // namespace millrace

// More than 400 lines: all of one class.
#include "cuda/graph_nodes.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cuda/context_scope.h"
#include "cuda/device.h"
#include "cuda/event_handle.h"
#include "cuda/kernels/condition.ptx.gen.h"
#include "cuda/strided.h"

namespace millrace::cuda {

namespace {

const BuiltIns& BuiltInsOf(const hal::GraphNode& node) {
  return static_cast<Device*>(node.device)->built_ins();
}

/// A driver's conditional node has one context, which its bodies share.
bool IsOnOneDevice(const hal::GraphCondition& condition, const hal::Device* device) {
  for (const std::vector<hal::GraphNode>& body : condition.bodies) {
    for (const hal::GraphNode& node : body) {
      if (node.device != device) return false;
      const auto* inner = std::get_if<hal::GraphCondition>(&node.work);
      if (inner != nullptr && !IsOnOneDevice(*inner, device)) return false;
    }
  }
  return true;
}

// Unified addressing tells the driver where each side is.
CUDA_MEMCPY3D CopyParams(uint64_t dst, uint64_t src, uint64_t bytes) {
  return {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
          .srcDevice = src,
          .srcPitch = bytes,
          .srcHeight = 1,
          .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
          .dstDevice = dst,
          .dstPitch = bytes,
          .dstHeight = 1,
          .WidthInBytes = bytes,
          .Height = 1,
          .Depth = 1};
}

/// `element_bytes`: 1, 2 or 4.
CUDA_MEMSET_NODE_PARAMS FillParams(uint64_t dst, uint32_t element_bytes, uint64_t pattern, uint64_t count) {
  const uint32_t mask = element_bytes == 4 ? ~0u : (1u << 8 * element_bytes) - 1;
  return {.dst = dst,
          .pitch = count * element_bytes,
          .value = static_cast<uint32_t>(pattern) & mask,
          .elementSize = element_bytes,
          .width = count,
          .height = 1};
}

/// A fill with 8-byte elements. `params` are pointers to its parts.
CUDA_KERNEL_NODE_PARAMS Fill64Params(const BuiltInLaunch& launch, void** params) {
  return {.func = launch.kernel->function(),
          .gridDimX = launch.blocks,
          .gridDimY = 1,
          .gridDimZ = 1,
          .blockDimX = launch.block,
          .blockDimY = 1,
          .blockDimZ = 1,
          .kernelParams = params,
          .ctx = launch.kernel->context()->handle()};
}

/// A longer copy takes turns in one block. Page-locking costs about 0.3 ms per MiB, and each such node has a block.
constexpr uint64_t kStagingBytes = 4 << 20;

}  // namespace

const std::shared_ptr<Context>& ContextOf(const hal::GraphNode& node) {
  return static_cast<Device*>(node.device)->context();
}

void GraphParts::AddContext(const Context& home, const std::shared_ptr<Context>& context) {
  if (context.get() != &home && std::ranges::find(others, context) == others.end()) others.push_back(context);
}

CUresult GraphParts::Set(CUgraphExec exec, uint32_t node) {
  KernelNode& kernel = kernels[node];
  if (kernel.event != nullptr) return Cuda().cuGraphExecEventRecordNodeSetEvent(exec, kernel.node, kernel.event);
  const hal::GraphNode& on = nodes[node];
  if (const auto* copy = std::get_if<hal::GraphCopy>(&on.work)) {
    const CUDA_MEMCPY3D params = CopyParams(AddressOf(copy->dst), AddressOf(copy->src), copy->bytes);
    return Cuda().cuGraphExecMemcpyNodeSetParams(exec, kernel.node, &params, ContextOf(on)->handle());
  }
  const auto* fill = std::get_if<hal::GraphFill>(&on.work);
  if (fill != nullptr && fill->element_bytes < 8) {
    const CUDA_MEMSET_NODE_PARAMS params =
        FillParams(AddressOf(fill->dst), fill->element_bytes, fill->pattern, fill->count);
    return Cuda().cuGraphExecMemsetNodeSetParams(exec, kernel.node, &params, ContextOf(on)->handle());
  }
  if (fill != nullptr) {
    kernel.params = Fill64Params(Fill64Launch(BuiltInsOf(on), fill->count), kernel.pointers.data());
  }
  if (!kernel.partition.exists()) return Cuda().cuGraphExecKernelNodeSetParams(exec, kernel.node, &kernel.params);
  // The driver refuses to give a node another context.
  const ContextScope scope(kernel.partition.context);
  if (scope.code() != CUDA_SUCCESS) return scope.code();
  return Cuda().cuGraphExecKernelNodeSetParams(exec, kernel.node, &kernel.params);
}

Status CheckBuilding(Context& context, CUresult code, const char* note) {
  if (code == CUDA_ERROR_NOT_FOUND) {
    return {StatusCode::kUnsupported, "graphs need a driver of CUDA 12.0, with conditions of 12.4, or newer",
            static_cast<int32_t>(code)};
  }
  return context.Check(code, note);
}

Status GraphWriter::WriteWhole(CUgraph graph, std::vector<hal::GraphNode> nodes) {
  parts_.nodes = std::move(nodes);
  parts_.kernels.resize(parts_.nodes.size());
  std::vector<CUgraphNode> last;
  return Write(graph, parts_.nodes, true, &last);
}

Status GraphWriter::Write(CUgraph graph, std::span<const hal::GraphNode> nodes, bool is_whole,
                          std::vector<CUgraphNode>* last) {
  std::vector<CUgraphNode> written;
  std::vector<bool> is_last(nodes.size(), true);
  std::vector<CUgraphNode> before;
  written.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::shared_ptr<Context>& context = ContextOf(nodes[i]);
    if (context->is_lost() && context != home_) {
      return {StatusCode::kUpstream, "building a graph with nodes on a lost device"};
    }
    parts_.AddContext(*home_, context);
    before.clear();
    for (const uint32_t index : nodes[i].after) {
      MR_CHECK(index < i);
      is_last[index] = false;
      before.push_back(written[index]);
    }
    GraphParts::KernelNode in_body;
    Result<CUgraphNode> node = WriteOnShare(graph, before, nodes[i], is_whole ? parts_.kernels[i] : in_body);
    MR_TRY(node.status());
    written.push_back(node.value());
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (is_last[i]) last->push_back(written[i]);
  }
  return {};
}

// A kernel node has the context that is current when it is added, and keeps it: the stream of a launch does not matter.
Result<CUgraphNode> GraphWriter::WriteOnShare(CUgraph graph, Before before, const hal::GraphNode& node,
                                              GraphParts::KernelNode& kernel) {
  Result<std::shared_ptr<const Partition>> partition = static_cast<Device*>(node.device)->PartitionOf(node.partition);
  MR_TRY(partition.status());
  if (partition.value() != nullptr) kernel.partition = *partition.value();
  const bool has_kernel = std::holds_alternative<hal::GraphKernel>(node.work) ||
                          std::holds_alternative<hal::GraphFill>(node.work) ||
                          std::holds_alternative<hal::GraphStrided>(node.work);
  if (!kernel.partition.exists() || !has_kernel) return WriteOne(graph, before, node, kernel);
  const ContextScope scope(kernel.partition.context);
  MR_TRY(home_->Check(scope.code(), "making the context of a partition current"));
  return WriteOne(graph, before, node, kernel);
}

Result<CUgraphNode> GraphWriter::WriteOne(CUgraph graph, Before before, const hal::GraphNode& node,
                                          GraphParts::KernelNode& kernel) {
  if (const auto* work = std::get_if<hal::GraphKernel>(&node.work)) {
    if (work->kernel->IsOfLibrary()) return WriteCall(graph, before, ContextOf(node), *work, kernel);
    MR_CHECK(static_cast<Kernel&>(*work->kernel).context() == ContextOf(node).get());
    for (hal::Device* const peer : work->peers) MR_TRY(TakeAccess(*static_cast<Device*>(peer), ContextOf(node)));
    return WriteKernel(graph, before, *work, kernel);
  }
  if (const auto* copy = std::get_if<hal::GraphCopy>(&node.work)) {
    Result<CUgraphNode> made =
        WriteCopy(graph, before, *ContextOf(node), AddressOf(copy->dst), AddressOf(copy->src), copy->bytes);
    if (made.ok() && copy->bytes != 0) kernel.node = made.value();
    return made;
  }
  if (const auto* peer = std::get_if<hal::GraphPeerCopy>(&node.work)) return WritePeerCopy(graph, before, peer->copy);
  if (const auto* fill = std::get_if<hal::GraphFill>(&node.work)) {
    if (fill->is_patched) return WritePatchedFill(graph, before, node, *fill, kernel);
    return WriteFill(graph, before, node, AddressOf(fill->dst), fill->element_bytes, fill->pattern, fill->count);
  }
  if (const auto* strided = std::get_if<hal::GraphStrided>(&node.work)) {
    return WriteStrided(graph, before, node, *strided);
  }
  if (const auto* record = std::get_if<hal::GraphRecord>(&node.work)) {
    MR_CHECK(ContextOf(node) == home_);
    return WriteRecord(graph, before, *record, kernel);
  }
  if (const auto* condition = std::get_if<hal::GraphCondition>(&node.work)) {
    return WriteCondition(graph, before, node, *condition);
  }
  return WriteEmpty(graph, before);
}

Result<CUgraphNode> GraphWriter::WriteEmpty(CUgraph graph, Before before) {
  CUgraphNode made = nullptr;
  MR_TRY(CheckBuilding(*home_, Cuda().cuGraphAddEmptyNode(&made, graph, before.data(), before.size()),
                       "adding an empty node to a graph"));
  return made;
}

Result<CUgraphNode> GraphWriter::WriteRecord(CUgraph graph, Before before, const hal::GraphRecord& node,
                                             GraphParts::KernelNode& record) {
  record.event = static_cast<const EventHandle&>(*node.event).event();
  MR_TRY(CheckBuilding(
      *home_, Cuda().cuGraphAddEventRecordNode(&record.node, graph, before.data(), before.size(), record.event),
      "adding the record of an event to a graph"));
  return record.node;
}

Result<CUgraphNode> GraphWriter::WriteKernel(CUgraph graph, Before before, const hal::GraphKernel& node,
                                             GraphParts::KernelNode& kernel) {
  if (uint64_t{node.grid.x} * node.grid.y * node.grid.z == 0) return WriteEmpty(graph, before);
  auto& loaded = static_cast<Kernel&>(*node.kernel);
  {
    const ContextScope scope(loaded.context()->handle());
    MR_TRY(home_->Check(scope.code(), "making the context current"));
    MR_TRY(loaded.AllowShared(node.shared_bytes));
  }
  kernel.pointers = hal::ParamPointers(node.params, node.wide);
  kernel.params = {.func = loaded.function(),
                   .gridDimX = node.grid.x,
                   .gridDimY = node.grid.y,
                   .gridDimZ = node.grid.z,
                   .blockDimX = node.block.x,
                   .blockDimY = node.block.y,
                   .blockDimZ = node.block.z,
                   .sharedMemBytes = node.shared_bytes,
                   .kernelParams = kernel.pointers.data(),
                   .ctx = loaded.context()->handle()};
  MR_TRY(CheckBuilding(*home_,
                       Cuda().cuGraphAddKernelNode(&kernel.node, graph, before.data(), before.size(), &kernel.params),
                       "adding a kernel to a graph"));
  if (node.is_cooperative) {
    if (kernel.partition.exists())
      MR_TRY(kernel.partition.CheckHolds(loaded, node.grid, node.block, node.shared_bytes));
    const CUlaunchAttributeValue value{.cooperative = 1};
    MR_TRY(CheckBuilding(*home_,
                         Cuda().cuGraphKernelNodeSetAttribute(kernel.node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value),
                         "adding a cooperative kernel to a graph"));
  }
  return kernel.node;
}

Result<CUgraphNode> GraphWriter::WriteLaunch(CUgraph graph, Before before, const Kernel& kernel, unsigned int blocks,
                                             unsigned int block, void** params) {
  const CUDA_KERNEL_NODE_PARAMS launch = {.func = kernel.function(),
                                          .gridDimX = blocks,
                                          .gridDimY = 1,
                                          .gridDimZ = 1,
                                          .blockDimX = block,
                                          .blockDimY = 1,
                                          .blockDimZ = 1,
                                          .kernelParams = params,
                                          .ctx = kernel.context()->handle()};
  CUgraphNode made = nullptr;
  MR_TRY(CheckBuilding(*home_, Cuda().cuGraphAddKernelNode(&made, graph, before.data(), before.size(), &launch),
                       "adding a kernel of the library to a graph"));
  return made;
}

Result<CUgraphNode> GraphWriter::WriteCopy(CUgraph graph, Before before, Context& context, uint64_t dst, uint64_t src,
                                           uint64_t bytes) {
  if (bytes == 0) return WriteEmpty(graph, before);
  const CUDA_MEMCPY3D copy = CopyParams(dst, src, bytes);
  CUgraphNode made = nullptr;
  MR_TRY(CheckBuilding(*home_,
                       Cuda().cuGraphAddMemcpyNode(&made, graph, before.data(), before.size(), &copy, context.handle()),
                       "adding a copy to a graph"));
  return made;
}

Result<CUgraphNode> GraphWriter::WriteFill(CUgraph graph, Before before, const hal::GraphNode& on, uint64_t dst,
                                           uint32_t element_bytes, uint64_t pattern, uint64_t count) {
  if (count == 0) return WriteEmpty(graph, before);
  const auto low = static_cast<uint32_t>(pattern);
  if (element_bytes == 8 && low != static_cast<uint32_t>(pattern >> 32)) {
    const auto [kernel, blocks, block] = Fill64Launch(BuiltInsOf(on), count);
    if (kernel == nullptr) return kNoFill64;
    void* params[] = {&dst, &pattern, &count};
    return WriteLaunch(graph, before, *kernel, blocks, block, params);
  }
  if (element_bytes == 8) return WriteFill(graph, before, on, dst, 4, low, 2 * count);
  const CUDA_MEMSET_NODE_PARAMS fill = FillParams(dst, element_bytes, pattern, count);
  CUgraphNode made = nullptr;
  MR_TRY(CheckBuilding(
      *home_, Cuda().cuGraphAddMemsetNode(&made, graph, before.data(), before.size(), &fill, ContextOf(on)->handle()),
      "adding a fill to a graph"));
  return made;
}

// One node of the driver whatever the values: a pattern of 8 bytes may or may not repeat its halves.
Result<CUgraphNode> GraphWriter::WritePatchedFill(CUgraph graph, Before before, const hal::GraphNode& on,
                                                  const hal::GraphFill& fill, GraphParts::KernelNode& kernel) {
  if (fill.element_bytes < 8) {
    Result<CUgraphNode> made =
        WriteFill(graph, before, on, AddressOf(fill.dst), fill.element_bytes, fill.pattern, fill.count);
    if (made.ok()) kernel.node = made.value();
    return made;
  }
  const BuiltInLaunch launch = Fill64Launch(BuiltInsOf(on), fill.count);
  if (launch.kernel == nullptr) return kNoFill64;
  for (const void* const part : {static_cast<const void*>(&fill.dst), static_cast<const void*>(&fill.pattern),
                                 static_cast<const void*>(&fill.count)}) {
    kernel.pointers.push_back(const_cast<void*>(part));
  }
  kernel.params = Fill64Params(launch, kernel.pointers.data());
  MR_TRY(CheckBuilding(*home_,
                       Cuda().cuGraphAddKernelNode(&kernel.node, graph, before.data(), before.size(), &kernel.params),
                       "adding a fill to a graph"));
  return kernel.node;
}

Result<CUgraphNode> GraphWriter::WriteStrided(CUgraph graph, Before before, const hal::GraphNode& on,
                                              const hal::GraphStrided& node) {
  StridedPlan plan = PlanStrided(node.dst, node.src, node.element_bytes, node.pattern, node.axes);
  if (IsRun(plan)) {
    const uint64_t bytes = plan.count * plan.element_bytes;
    if (node.src != nullptr) return WriteCopy(graph, before, *ContextOf(on), plan.dst, plan.src, bytes);
    return WriteFill(graph, before, on, plan.dst, node.element_bytes, node.pattern, bytes / node.element_bytes);
  }
  const auto [kernel, blocks, block] = StridedLaunch(BuiltInsOf(on), plan);
  if (kernel == nullptr) return kNoStrided;
  void* params[] = {&plan};
  return WriteLaunch(graph, before, *kernel, blocks, block, params);
}

Result<CUgraphNode> GraphWriter::WriteCondition(CUgraph graph, Before before, const hal::GraphNode& on,
                                                const hal::GraphCondition& node) {
  using Kind = hal::GraphCondition::Kind;
  if (on.partition != 0) return Status(StatusCode::kUnsupported, "a condition in a partition");
  if (!IsOnOneDevice(node, on.device)) {
    return Status(StatusCode::kUnsupported, "a condition with a body on another device");
  }
  const std::shared_ptr<Context>& context = ContextOf(on);
  const bool is_while = node.kind == Kind::kWhile;
  struct Body {
    CUgraphConditionalHandle handle = 0;
    int expected = 0;
    bool is_equal = true;
  };
  std::vector<Body> bodies(node.bodies.size());
  std::vector<CUgraphNode> settings;
  // All read the value before a body can change it.
  for (size_t i = 0; i < bodies.size(); ++i) {
    Body& body = bodies[i];
    body.is_equal = node.kind == Kind::kSwitch || i == 1;
    body.expected = node.kind == Kind::kSwitch ? static_cast<int>(i) : 0;
    MR_TRY(CheckBuilding(
        *home_,
        Cuda().cuGraphConditionalHandleCreate(&body.handle, graph, context->handle(), 0, CU_GRAPH_COND_ASSIGN_DEFAULT),
        "adding a condition to a graph"));
    Result<CUgraphNode> setting = WriteSetting(graph, before, context, body.handle, node, body.expected, body.is_equal);
    MR_TRY(setting.status());
    settings.push_back(setting.value());
  }
  std::vector<CUgraphNode> ends;
  for (size_t i = 0; i < bodies.size(); ++i) {
    CUgraphNodeParams params = {};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional = {.handle = bodies[i].handle,
                          .type = is_while ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_IF,
                          .size = 1,
                          .phGraph_out = nullptr,
                          .ctx = context->handle()};
    CUgraphNode made = nullptr;
    MR_TRY(CheckBuilding(*home_, Cuda().cuGraphAddNode(&made, graph, settings.data(), settings.size(), &params),
                         "adding a condition to a graph"));
    CUgraph const inside = params.conditional.phGraph_out[0];
    std::vector<CUgraphNode> last;
    MR_TRY(Write(inside, node.bodies[i], false, &last));
    if (is_while) {
      MR_TRY(
          WriteSetting(inside, last, context, bodies[i].handle, node, bodies[i].expected, bodies[i].is_equal).status());
    }
    ends.push_back(made);
  }
  if (ends.size() == 1) return ends[0];
  return WriteEmpty(graph, ends.empty() ? before : Before(ends));
}

Result<CUgraphNode> GraphWriter::WriteSetting(CUgraph graph, Before before, const std::shared_ptr<Context>& context,
                                              CUgraphConditionalHandle handle, const hal::GraphCondition& node,
                                              int expected, bool is_equal) {
  std::shared_ptr<Kernel>& kernel = parts_.conditions[context.get()];
  if (kernel == nullptr) {
    const std::string names[] = {"millrace_condition"};
    // Module::Load makes the context current.
    auto loaded =
        Kernel::LoadAll(context, std::as_bytes(std::span(kConditionPtx).first(sizeof(kConditionPtx) - 1)), names);
    if (!loaded.ok() && loaded.status().code() != StatusCode::kDeviceLost) {
      return Status(StatusCode::kUnsupported, "loading the kernel that sets the conditions of graphs",
                    loaded.status().driver_code());
    }
    MR_TRY(loaded.status());
    kernel = std::move(loaded.value()[0]);
  }
  int equal = is_equal ? 1 : 0;
  const int32_t* value = node.value;
  const uint32_t* stop = node.stop;
  void* params[] = {&handle, &value, &expected, &equal, &stop};
  return WriteLaunch(graph, before, *kernel, 1, 1, params);
}

// ── Copies between devices: one copy if they are peers, else copies through host memory ────────────────────────────

Result<CUgraphNode> GraphWriter::WritePeerCopy(CUgraph graph, Before before, const hal::PeerCopy& copy) {
  const auto& to = *static_cast<const Device*>(copy.dst_device);
  const auto& from = *static_cast<const Device*>(copy.src_device);
  if (copy.route == protocol::PeerRoute::kStaged) return WriteStagedCopy(graph, before, copy);
  const Status access = TakeAccess(from, to.context());
  if (access.code() == StatusCode::kUnsupported) return WriteStagedCopy(graph, before, copy);
  MR_TRY(access);
  return WriteCopy(graph, before, *to.context(), AddressOf(copy.dst), AddressOf(copy.src), copy.bytes);
}

Status GraphWriter::TakeAccess(const Device& owner, const std::shared_ptr<Context>& peer) {
  const auto is_same = [&](const auto& access) { return access->IsOf(*owner.context(), *peer); };
  if (std::ranges::any_of(parts_.accesses, is_same)) return {};
  Result<std::unique_ptr<PoolAccess>> access = PoolAccess::Take(owner.End(), peer);
  MR_TRY(access.status());
  parts_.accesses.push_back(std::move(access).value());
  return {};
}

Result<CUgraphNode> GraphWriter::WriteStagedCopy(CUgraph graph, Before before, const hal::PeerCopy& copy) {
  if (copy.bytes == 0) return WriteEmpty(graph, before);
  Result<std::unique_ptr<LockedBlock>> block = LockedBlock::Allocate(home_, std::min(copy.bytes, kStagingBytes));
  MR_TRY(block.status());
  const uint64_t host = AddressOf(block.value()->data());
  parts_.staging.push_back(std::move(block).value());
  const std::shared_ptr<Context>& to = static_cast<Device*>(copy.dst_device)->context();
  const std::shared_ptr<Context>& from = static_cast<Device*>(copy.src_device)->context();
  CUgraphNode last = nullptr;
  for (uint64_t at = 0; at < copy.bytes; at += kStagingBytes) {
    const uint64_t bytes = std::min(copy.bytes - at, kStagingBytes);
    Result<CUgraphNode> taken =
        WriteCopy(graph, at == 0 ? before : Before(&last, 1), *from, host, AddressOf(copy.src) + at, bytes);
    MR_TRY(taken.status());
    const CUgraphNode first = taken.value();
    Result<CUgraphNode> given = WriteCopy(graph, Before(&first, 1), *to, AddressOf(copy.dst) + at, host, bytes);
    MR_TRY(given.status());
    last = given.value();
  }
  return last;
}

}  // namespace millrace::cuda

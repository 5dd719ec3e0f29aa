// More than 400 lines: the nodes, their graphs and their programs are private to one another.
// The fake driver's graphs: explicit nodes, instantiated and launched.
//
// A launch is one piece of work of its stream, which runs the nodes one after the other in a random order that their
// dependencies allow: a missing dependency shows. A launch keeps the parameters that it was queued with.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <random>
#include <thread>

#include "device_code.h"
#include "entry.h"
#include "options.h"
#include "streams.h"

namespace millrace::fake_cuda {

namespace {

struct GraphCondition {
  std::atomic<unsigned> value{0};
  unsigned initial = 0;
};

struct FakeGraph;
struct Program;

struct FakeNode {
  FakeGraph* graph = nullptr;
  size_t index = 0;
  std::vector<size_t> after;
  std::function<void(bool)> run;  // Empty: does nothing.
  enum class Kind { kOther, kKernel, kCopy, kFill, kRecord, kChild } kind = Kind::kOther;
  bool is_cooperative = false;
  GreenContext* green = nullptr;
  GraphCondition* condition = nullptr;
  cuda::CUgraphConditionalNodeType type = cuda::CU_GRAPH_COND_TYPE_IF;
  std::unique_ptr<FakeGraph> body;
  cuda::CUgraph body_handle = nullptr;
  std::shared_ptr<const Program> child;
};

struct FakeGraph {
  std::vector<std::unique_ptr<FakeNode>> nodes;
  std::vector<std::unique_ptr<GraphCondition>> conditions;
  bool is_captured = false;  // From a stream.
};

/// An instantiated graph or body. It does not change; new parameters make another.
struct Program {
  struct Step {
    std::vector<size_t> after;
    std::function<void(bool)> run;
    bool is_cooperative;
    GraphCondition* condition;
    bool is_while;
    std::shared_ptr<const Program> body;
  };
  std::vector<Step> steps;
  std::vector<GraphCondition*> conditions;
  bool is_captured = false;
};

struct Exec {
  std::shared_ptr<const Program> program;
};

/// Those that exist. The graphs of a lost device are never destroyed. Guarded by World::mutex.
struct LiveGraphs {
  std::map<FakeGraph*, std::unique_ptr<FakeGraph>> graphs;
  std::map<Exec*, std::unique_ptr<Exec>> execs;
};
LiveGraphs& Live() {
  static auto* const live = new LiveGraphs();
  return *live;
}

FakeGraph* FromHandle(cuda::CUgraph graph) {
  return reinterpret_cast<FakeGraph*>(graph);
}
FakeNode* FromHandle(cuda::CUgraphNode node) {
  return reinterpret_cast<FakeNode*>(node);
}
Exec* FromHandle(cuda::CUgraphExec exec) {
  return reinterpret_cast<Exec*>(exec);
}

std::shared_ptr<const Program> Instantiate(const FakeGraph& graph) {
  auto program = std::make_shared<Program>();
  for (const auto& node : graph.nodes) {
    program->steps.push_back({node->after, node->run, node->is_cooperative, node->condition,
                              node->type == cuda::CU_GRAPH_COND_TYPE_WHILE,
                              node->body == nullptr ? node->child : Instantiate(*node->body)});
  }
  program->is_captured = graph.is_captured;
  for (const auto& condition : graph.conditions) program->conditions.push_back(condition.get());
  return program;
}

void Reset(const Program& program) {
  for (GraphCondition* condition : program.conditions) condition->value.store(condition->initial);
  for (const Program::Step& step : program.steps) {
    if (step.body != nullptr) Reset(*step.body);
  }
}

/// Each step on a thread of its own: those of a captured library may wait for each other.
void RunAtOnce(const Program& program, const Device& device) {
  std::vector<std::promise<void>> ended(program.steps.size());
  std::vector<std::shared_future<void>> ends;
  for (std::promise<void>& each : ended) ends.push_back(each.get_future().share());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    threads.emplace_back([&, i] {
      for (const size_t before : program.steps[i].after) ends[before].wait();
      if (device.lost.load() == 0) program.steps[i].run(false);
      ended[i].set_value();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Run(const Program& program, const Device& device) {
  if (program.is_captured && program.steps.size() > 1) return RunAtOnce(program, device);
  thread_local std::mt19937 random(std::random_device{}());
  std::vector<size_t> missing;
  std::vector<size_t> ready;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    missing.push_back(program.steps[i].after.size());
    if (missing[i] == 0) ready.push_back(i);
  }
  std::vector<std::vector<size_t>> next(program.steps.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    for (const size_t before : program.steps[i].after) next[before].push_back(i);
  }
  while (!ready.empty() && device.lost.load() == 0) {
    std::swap(ready[random() % ready.size()], ready.back());
    const size_t index = ready.back();
    ready.pop_back();
    const Program::Step& step = program.steps[index];
    if (step.run) step.run(step.is_cooperative);
    if (step.condition == nullptr && step.body != nullptr) Run(*step.body, device);
    if (step.condition != nullptr && step.condition->value.load() != 0) {
      do {
        Run(*step.body, device);
      } while (step.is_while && step.condition->value.load() != 0 && device.lost.load() == 0);
    }
    for (const size_t after : next[index]) {
      if (--missing[after] == 0) ready.push_back(after);
    }
  }
}

/// What the record of an event does; empty if the event is not of the device.
std::function<void(bool)> AcceptRecord(Device& device, cuda::CUevent handle) {
  Event& event = *fake_cuda::FromHandle(handle);
  if (&event.device != &device || event.flags != cuda::CU_EVENT_DEFAULT) return {};
  return [&event](bool) {
    auto point = std::make_shared<Point>(event.device);
    point->Reach();
    const std::lock_guard lock(event.mutex);
    event.point = std::move(point);
  };
}

CUresult Add(cuda::CUgraphNode* made, cuda::CUgraph handle, const cuda::CUgraphNode* after, size_t count,
             FakeNode node) {
  FakeGraph& graph = *FromHandle(handle);
  for (size_t i = 0; i < count; ++i) {
    const FakeNode* const before = FromHandle(after[i]);
    if (before->graph != &graph) return cuda::CUDA_ERROR_INVALID_VALUE;
    // As a real driver: each edge once.
    if (std::find(node.after.begin(), node.after.end(), before->index) != node.after.end()) {
      return cuda::CUDA_ERROR_INVALID_VALUE;
    }
    node.after.push_back(before->index);
  }
  node.graph = &graph;
  node.index = graph.nodes.size();
  graph.nodes.push_back(std::make_unique<FakeNode>(std::move(node)));
  *made = reinterpret_cast<cuda::CUgraphNode>(graph.nodes.back().get());
  return cuda::CUDA_SUCCESS;
}

/// As a real driver: the node's device must have access to the pool of each end. Other memory needs none.
bool MayCopy(const Device& device, uintptr_t address, size_t bytes) {
  World& world = fake_cuda::GetWorld();
  const std::lock_guard lock(world.mutex);
  const auto range = world.Find(address, bytes);
  if (range == world.ranges.end()) return false;
  const Range& found = range->second;
  return found.kind != Range::Kind::kPool || found.device == &device ||
         found.device->pool.readers.contains(device.ordinal);
}

template <typename Copy>
std::function<void(bool)> UsingMemory(cuda::CUcontext context, Copy copy) {
  return [&device = *fake_cuda::FromHandle(context), copy](bool) {
    const std::shared_lock lock(device.using_memory);
    if (device.lost.load() == 0) copy();
  };
}

/// Null: the parameters are invalid.
std::function<void(bool)> AcceptCopy(const cuda::CUDA_MEMCPY3D& params, cuda::CUcontext context) {
  const cuda::CUdeviceptr dst = params.dstDevice;
  const cuda::CUdeviceptr src = params.srcDevice;
  const size_t bytes = params.WidthInBytes;
  if (params.srcMemoryType != cuda::CU_MEMORYTYPE_UNIFIED || params.dstMemoryType != cuda::CU_MEMORYTYPE_UNIFIED ||
      bytes == 0 || params.Height != 1 || params.Depth != 1 || !MayCopy(*fake_cuda::FromHandle(context), dst, bytes) ||
      !MayCopy(*fake_cuda::FromHandle(context), src, bytes)) {
    return nullptr;
  }
  return UsingMemory(context,
                     [=] { std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes); });
}

std::function<void(bool)> AcceptFill(const cuda::CUDA_MEMSET_NODE_PARAMS& fill, cuda::CUcontext context) {
  const unsigned size = fill.elementSize;
  if ((size != 1 && size != 2 && size != 4) || fill.width == 0 || fill.height != 1 || fill.dst % size != 0 ||
      (size < 4 && fill.value >> 8 * size != 0) ||
      !Reaches(*fake_cuda::FromHandle(context), fill.dst, fill.width * size)) {
    return nullptr;
  }
  return UsingMemory(context, [=] {
    for (size_t i = 0; i < fill.width; ++i)
      std::memcpy(reinterpret_cast<char*>(fill.dst) + i * size, &fill.value, size);
  });
}

CUresult Change(cuda::CUgraphExec exec, cuda::CUgraphNode handle, FakeNode::Kind kind, std::function<void(bool)> run) {
  const FakeNode& node = *FromHandle(handle);
  if (node.kind != kind || !run) return cuda::CUDA_ERROR_INVALID_VALUE;
  auto changed = std::make_shared<Program>(*FromHandle(exec)->program);
  changed->steps[node.index].run = std::move(run);
  FromHandle(exec)->program = std::move(changed);
  return cuda::CUDA_SUCCESS;
}

}  // namespace

void SetConditional(unsigned long long handle, unsigned value) {
  reinterpret_cast<GraphCondition*>(handle)->value.store(value);
}

}  // namespace millrace::fake_cuda

namespace millrace::cuda {

using namespace fake_cuda;  // NOLINT: these are its entry points

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned int) {
  MR_ENTER("cuGraphCreate");
  MR_CURRENT(device);
  auto made = std::make_unique<FakeGraph>();
  *graph = reinterpret_cast<CUgraph>(made.get());
  const std::lock_guard lock(GetWorld().mutex);
  Live().graphs[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  MR_ENTER("cuGraphDestroy");
  const std::lock_guard lock(GetWorld().mutex);
  return Live().graphs.erase(FromHandle(graph)) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count,
                              const CUDA_KERNEL_NODE_PARAMS* params) {
  GreenContext* const green = CurrentGreen();
  MR_ENTER("cuGraphAddKernelNode", green == nullptr ? "" : "multiprocessors=" + std::to_string(green->multiprocessors));
  MR_CURRENT(device);
  FakeNode made;
  // Of a `func`, the context that is current decides, and not that of the parameters.
  made.green = green;
  made.run = AcceptNode(*params);
  made.kind = FakeNode::Kind::kKernel;
  if (!made.run) return CUDA_ERROR_INVALID_VALUE;
  return Add(node, graph, after, after_count, std::move(made));
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count,
                              const CUDA_MEMCPY3D* params, CUcontext context) {
  MR_ENTER("cuGraphAddMemcpyNode", "bytes=" + std::to_string(params->WidthInBytes));
  MR_CURRENT(device);
  FakeNode made;
  made.run = AcceptCopy(*params, context);
  made.kind = FakeNode::Kind::kCopy;
  if (!made.run) return CUDA_ERROR_INVALID_VALUE;
  return Add(node, graph, after, after_count, std::move(made));
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count,
                              const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  MR_ENTER("cuGraphAddMemsetNode");
  MR_CURRENT(device);
  FakeNode made;
  made.run = AcceptFill(*params, context);
  made.kind = FakeNode::Kind::kFill;
  if (!made.run) return CUDA_ERROR_INVALID_VALUE;
  return Add(node, graph, after, after_count, std::move(made));
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count) {
  MR_ENTER("cuGraphAddEmptyNode");
  return Add(node, graph, after, after_count, {});
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count,
                                  CUgraph child) {
  MR_ENTER("cuGraphAddChildGraphNode");
  FakeNode made;
  made.kind = FakeNode::Kind::kChild;
  made.child = Instantiate(*FromHandle(child));
  return Add(node, graph, after, after_count, std::move(made));
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode handle, CUgraph child) {
  MR_ENTER("cuGraphExecChildGraphNodeSetParams");
  const FakeNode& node = *FromHandle(handle);
  // The nodes and their order stay.
  if (node.kind != FakeNode::Kind::kChild || node.child->steps.size() != FromHandle(child)->nodes.size())
    return CUDA_ERROR_INVALID_VALUE;
  auto changed = std::make_shared<Program>(*FromHandle(exec)->program);
  changed->steps[node.index].body = Instantiate(*FromHandle(child));
  FromHandle(exec)->program = std::move(changed);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  MR_ENTER("cuGraphGetNodes");
  if (nodes != nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = FromHandle(graph)->nodes.size();
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  MR_ENTER("cuStreamBeginCapture", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (mode != CU_STREAM_CAPTURE_MODE_RELAXED || !queue->BeginCapture()) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  MR_ENTER("cuStreamEndCapture", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  std::vector<Capture::Work> captured;
  if (const CUresult code = queue->EndCapture(captured); code != CUDA_SUCCESS) return code;
  auto made = std::make_unique<FakeGraph>();
  made->is_captured = true;
  *graph = reinterpret_cast<CUgraph>(made.get());
  std::vector<CUgraphNode> nodes;
  for (Capture::Work& work : captured) {
    FakeNode node;
    node.run = [run = std::move(work.run)](bool) { run(); };
    std::vector<CUgraphNode> before;
    for (const size_t each : work.after) before.push_back(nodes[each]);
    const CUresult code = Add(&nodes.emplace_back(), *graph, before.data(), before.size(), std::move(node));
    if (code != CUDA_SUCCESS) return code;
  }
  const std::lock_guard lock(GetWorld().mutex);
  Live().graphs[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count,
                                   CUevent event) {
  MR_ENTER("cuGraphAddEventRecordNode", Name(event));
  MR_CURRENT(device);
  FakeNode made;
  made.run = AcceptRecord(*device, event);
  made.kind = FakeNode::Kind::kRecord;
  if (!made.run) return CUDA_ERROR_INVALID_HANDLE;
  return Add(node, graph, after, after_count, std::move(made));
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count,
                        CUgraphNodeParams* params) {
  MR_ENTER("cuGraphAddNode");
  CUDA_CONDITIONAL_NODE_PARAMS& conditional = params->conditional;
  if (params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL || conditional.size != 1 || conditional.ctx == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  FakeNode made;
  made.condition = reinterpret_cast<GraphCondition*>(conditional.handle);
  made.type = conditional.type;
  made.body = std::make_unique<FakeGraph>();
  made.body_handle = reinterpret_cast<CUgraph>(made.body.get());
  const CUresult code = Add(node, graph, after, after_count, std::move(made));
  if (code == CUDA_SUCCESS) conditional.phGraph_out = &FromHandle(*node)->body_handle;
  return code;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID attribute,
                                       const CUlaunchAttributeValue* value) {
  MR_ENTER("cuGraphKernelNodeSetAttribute");
  if (attribute != CU_LAUNCH_ATTRIBUTE_COOPERATIVE || FromHandle(node)->kind != FakeNode::Kind::kKernel) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  FromHandle(node)->is_cooperative = value->cooperative != 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext, unsigned int value,
                                        unsigned int flags) {
  MR_ENTER("cuGraphConditionalHandleCreate");
  if (flags != CU_GRAPH_COND_ASSIGN_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<GraphCondition>();
  made->initial = value;
  *handle = reinterpret_cast<CUgraphConditionalHandle>(made.get());
  FromHandle(graph)->conditions.push_back(std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  MR_ENTER("cuGraphInstantiateWithFlags");
  MR_CURRENT(device);
  auto made = std::make_unique<Exec>(Exec{Instantiate(*FromHandle(graph))});
  *exec = reinterpret_cast<CUgraphExec>(made.get());
  const std::lock_guard lock(GetWorld().mutex);
  Live().execs[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  MR_ENTER("cuGraphExecDestroy");
  const std::lock_guard lock(GetWorld().mutex);
  return Live().execs.erase(FromHandle(exec)) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS* params) {
  MR_ENTER("cuGraphExecKernelNodeSetParams");
  if (FromHandle(handle)->green != CurrentGreen()) return CUDA_ERROR_INVALID_VALUE;
  return Change(exec, handle, FakeNode::Kind::kKernel, AcceptNode(*params));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                        CUcontext context) {
  MR_ENTER("cuGraphExecMemcpyNodeSetParams");
  return Change(exec, node, FakeNode::Kind::kCopy, AcceptCopy(*params, context));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
                                        CUcontext context) {
  MR_ENTER("cuGraphExecMemsetNodeSetParams");
  return Change(exec, node, FakeNode::Kind::kFill, AcceptFill(*params, context));
}

CUresult cuGraphUpload(CUgraphExec, CUstream stream) {
  MR_ENTER("cuGraphUpload", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  PushWork(*queue, [] {});
  return CUDA_SUCCESS;
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode handle, CUevent event) {
  MR_ENTER("cuGraphExecEventRecordNodeSetEvent", Name(event));
  MR_CURRENT(device);
  return Change(exec, handle, FakeNode::Kind::kRecord, AcceptRecord(*device, event));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  MR_ENTER("cuGraphLaunch", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  PushWork(*queue, [program = FromHandle(exec)->program, device] {
    Reset(*program);
    Run(*program, *device);
  });
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace millrace::cuda

using namespace millrace::cuda;       // NOLINT: as above
using namespace millrace::fake_cuda;  // NOLINT

extern "C" CUresult fakeCudaPush(CUstream stream, const char* call, void (*run)(void*), void (*drop)(void*),
                                 void* data) {
  const std::shared_ptr<void> kept(data, drop);
  MR_ENTER(call, Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  PushWork(*queue, [kept, run] { run(kept.get()); });
  return CUDA_SUCCESS;
}

extern "C" bool fakeCudaCaptures(CUstream stream) {
  return reinterpret_cast<Stream*>(stream)->CapturePoint().has_value();
}

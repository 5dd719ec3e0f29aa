// NCCL's all-reduce in a plain loop over two GPUs of one process, beside which bench/programs/collectives.mjs measures
// the library: the same NCCL, one thread, one group a call.
//
//   nccl_loop BYTES ROUNDS   prints microseconds: a call of a queue of ROUNDS, a call that is awaited, and a call of a
//   graph of ROUNDS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/nccl.h"

namespace {

using namespace millrace::cuda;  // NOLINT: a program

constexpr int kRanks = 2;
constexpr int kFloat = 7;
constexpr int kSum = 0;
/// NCCL's device memory is allocated, its kernels are loaded, and the driver is at its speed.
constexpr int kWarm = 1000;
/// For large arrays.
constexpr int kWarmLarge = 20;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "nccl_loop: %s failed\n", what);
  std::exit(1);
}

struct Rank {
  std::shared_ptr<Context> context;
  NcclComm comm = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
};

double Now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int count, char** arguments) {
  Require(count == 3, "reading the arguments");
  const size_t bytes = std::strtoull(arguments[1], nullptr, 10);
  const int rounds = std::atoi(arguments[2]);
  Require(LoadDriver().is_loaded, "loading the driver");
  const NcclLibrary* const library = OpenNccl();
  Require(library != nullptr, "finding NCCL");
  const NcclTable& nccl = library->functions;
  NcclUniqueId id;
  Require(nccl.ncclGetUniqueId(&id) == ncclSuccess, "ncclGetUniqueId");
  std::vector<Rank> ranks(kRanks);
  const auto enter = [](const Rank& rank) {
    Require(Cuda().cuCtxSetCurrent(rank.context->handle()) == CUDA_SUCCESS, "cuCtxSetCurrent");
  };
  Require(nccl.ncclGroupStart() == ncclSuccess, "ncclGroupStart");
  for (int n = 0; n < kRanks; ++n) {
    auto context = Context::Retain(static_cast<uint32_t>(n));
    Require(context.ok(), "making a context");
    ranks[n].context = std::move(context).value();
    enter(ranks[n]);
    Require(Cuda().cuStreamCreateWithPriority(&ranks[n].stream, 1, 0) == CUDA_SUCCESS, "making a stream");
    Require(Cuda().cuMemAlloc(&ranks[n].memory, bytes) == CUDA_SUCCESS, "allocating");
    Require(nccl.ncclCommInitRank(&ranks[n].comm, kRanks, id, n) == ncclSuccess, "ncclCommInitRank");
  }
  Require(nccl.ncclGroupEnd() == ncclSuccess, "joining the ranks");
  const auto call = [&] {
    Require(nccl.ncclGroupStart() == ncclSuccess, "ncclGroupStart");
    for (const Rank& rank : ranks) {
      void* const memory = reinterpret_cast<void*>(rank.memory);
      Require(nccl.ncclAllReduce(memory, memory, bytes / sizeof(float), kFloat, kSum, rank.comm, rank.stream) ==
                  ncclSuccess,
              "ncclAllReduce");
    }
    Require(nccl.ncclGroupEnd() == ncclSuccess, "ncclGroupEnd");
  };
  const auto await = [&] {
    for (const Rank& rank : ranks) {
      enter(rank);
      Require(Cuda().cuStreamSynchronize(rank.stream) == CUDA_SUCCESS, "cuStreamSynchronize");
    }
  };
  for (int n = 0; n < (rounds > kWarmLarge ? kWarm : kWarmLarge); ++n) call();
  await();
  double queued = 1e30;
  for (int turn = 0; turn < 5; ++turn) {
    const double start = Now();
    for (int n = 0; n < rounds; ++n) call();
    await();
    queued = std::min(queued, (Now() - start) / rounds);
  }
  std::vector<double> awaited;
  for (int n = 0; n < rounds; ++n) {
    const double start = Now();
    call();
    await();
    awaited.push_back(Now() - start);
  }
  std::sort(awaited.begin(), awaited.end());
  // A graph of both devices: the stream of the second one joins the capture of the first one, and is joined at its end.
  CUevent joined[kRanks] = {};
  for (int n = 0; n < kRanks; ++n) {
    enter(ranks[n]);
    Require(Cuda().cuEventCreate(&joined[n], CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS, "making an event");
  }
  const auto follow = [&](int from, int to) {
    enter(ranks[from]);
    Require(Cuda().cuEventRecord(joined[from], ranks[from].stream) == CUDA_SUCCESS, "recording an event");
    enter(ranks[to]);
    Require(Cuda().cuStreamWaitEvent(ranks[to].stream, joined[from], 0) == CUDA_SUCCESS, "waiting for an event");
  };
  enter(ranks[0]);
  Require(Cuda().cuStreamBeginCapture(ranks[0].stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS,
          "beginning a capture");
  follow(0, 1);
  for (int n = 0; n < rounds; ++n) call();
  follow(1, 0);
  CUgraph graph = nullptr;
  enter(ranks[0]);
  Require(Cuda().cuStreamEndCapture(ranks[0].stream, &graph) == CUDA_SUCCESS, "ending a capture");
  CUgraphExec whole = nullptr;
  Require(Cuda().cuGraphInstantiateWithFlags(&whole, graph, 0) == CUDA_SUCCESS, "building a graph");
  Require(Cuda().cuGraphLaunch(whole, ranks[0].stream) == CUDA_SUCCESS, "launching a graph");
  await();
  double replayed = 1e30;
  for (int turn = 0; turn < 5; ++turn) {
    const double start = Now();
    Require(Cuda().cuGraphLaunch(whole, ranks[0].stream) == CUDA_SUCCESS, "launching a graph");
    await();
    replayed = std::min(replayed, (Now() - start) / rounds);
  }
  std::printf("%.2f %.2f %.2f\n", queued, awaited[awaited.size() / 2], replayed);
  return 0;
}

// Driver states of a machine: absent, too old, without a device, or lacking a function. A process loads the driver only
// once, so each case runs in a child process.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "cuda/backend.h"
#include "cuda/driver.h"
#include "cuda/driver_errors.h"
#include "testing.h"

namespace {

using namespace millrace;  // NOLINT: the test speaks of little else

/// Runs `body` in a child with these variables; its failed expectations count as one here.
bool InChild(const std::map<std::string, std::string>& environment, const std::function<void()>& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("MILLRACE_CUDA_DRIVER", MILLRACE_FAKE_CUDA, 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    body();
    std::fflush(stdout);
    _exit(testing::FailedExpectations() == 0 ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void ExpectRefusal(const char* reason, const char* version) {
  const auto backend = MakeCudaBackend();
  const hal::BackendReport report = backend->Enumerate();
  MR_EXPECT(report.devices.empty());
  MR_EXPECT(report.reason.find(reason) != std::string::npos);
  if (report.reason.find(reason) == std::string::npos) std::printf("  the reason: %s\n", report.reason.c_str());
  MR_EXPECT(report.help.size() >= 2);
  MR_EXPECT_EQ(report.driver_version, version);
  const Status status = backend->Open(0, {}).status();
  MR_EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(StatusCode::kUnavailable));
}

MR_TEST(ADriverThatIsAbsentIsNamed) {
  MR_EXPECT(InChild({{"MILLRACE_CUDA_DRIVER", "/nowhere/libcuda.so.1"}}, [] {
    ExpectRefusal("could not be opened (/nowhere/libcuda.so.1", "");
    // The table answers without a driver.
    MR_EXPECT_EQ(static_cast<int>(cuda::Cuda().cuCtxSynchronize()), static_cast<int>(cuda::CUDA_ERROR_NOT_FOUND));
  }));
}

MR_TEST(AFailureHasTheDriversExplanation) {
  MR_EXPECT(InChild(
      {{"MILLRACE_FAKE_CUDA_FAIL", "cuDeviceGetCount:1:1,cuDeviceGetCount:3:1"},
       {"MILLRACE_FAKE_CUDA_SAYS", "too large\nat most 3\nuse CU_JIT_ERROR_LOG_BUFFER"}},
      [] {
        MR_EXPECT(cuda::LoadDriver().is_loaded);
        int count = 0;
        const auto ask = [&] { return cuda::FromDriver(cuda::Cuda().cuDeviceGetCount(&count), "counting"); };
        MR_EXPECT_EQ(std::string(ask().note()), "counting; the driver: too large; at most 3");
        MR_EXPECT_EQ(std::string(ask().note()), "");
        // The log's last lines are of another code, and of other threads.
        setenv("MILLRACE_FAKE_CUDA_SAYS", "elsewhere", 1);
        MR_EXPECT_EQ(std::string(cuda::FromDriver(cuda::CUDA_ERROR_INVALID_HANDLE, "counting").note()), "counting");
        std::thread([&] { MR_EXPECT_EQ(std::string(ask().note()), "counting; the driver: elsewhere"); }).join();
        MR_EXPECT_EQ(std::string(cuda::FromDriver(cuda::CUDA_ERROR_INVALID_VALUE, "x").note()),
                     "x; the driver: too large; at most 3");
      }));
  MR_EXPECT(InChild(
      {{"MILLRACE_FAKE_CUDA_FAIL", "cuDeviceGetCount:1:1"}, {"MILLRACE_FAKE_CUDA_MISSING", "cuLogsDumpToMemory"}}, [] {
        MR_EXPECT(cuda::LoadDriver().is_loaded);
        int count = 0;
        MR_EXPECT_EQ(std::string(cuda::FromDriver(cuda::Cuda().cuDeviceGetCount(&count), "counting").note()),
                     "counting");
      }));
}

MR_TEST(AnOldDriverIsRefusedWithBothVersions) {
  MR_EXPECT(InChild({{"MILLRACE_FAKE_CUDA_VERSION", "11080"}}, [] {
    ExpectRefusal("The CUDA driver (11.8) is older than the oldest supported (12.0).", "11.8");
  }));
}

MR_TEST(ADriverWithoutADeviceIsRefused) {
  MR_EXPECT(InChild({{"MILLRACE_FAKE_CUDA_DEVICES", "0"}}, [] { ExpectRefusal("finds no device", "13.0"); }));
}

MR_TEST(ADriverThatDoesNotStartIsRefused) {
  MR_EXPECT(InChild({{"MILLRACE_FAKE_CUDA_FAIL", "cuInit:0:803"}},
                    [] { ExpectRefusal("different versions (driver error 803).", "13.0"); }));
}

MR_TEST(AMissingRequiredFunctionIsNamed) {
  MR_EXPECT(InChild({{"MILLRACE_FAKE_CUDA_MISSING", "cuEventQuery"}},
                    [] { ExpectRefusal("lacks the function cuEventQuery.", "13.0"); }));
}

MR_TEST(ModulesAreLoadedEagerlyUnlessTheUserChose) {
  MR_EXPECT(InChild({}, [] {
    const auto backend = MakeCudaBackend();
    MR_EXPECT_EQ(std::string(std::getenv("CUDA_MODULE_LOADING")), "EAGER");
  }));
  MR_EXPECT(InChild({{"CUDA_MODULE_LOADING", "LAZY"}}, [] {
    const auto backend = MakeCudaBackend();
    MR_EXPECT_EQ(std::string(std::getenv("CUDA_MODULE_LOADING")), "LAZY");
  }));
}

// Without pools, memory is allocated and freed synchronously; without word writes, only events tell the progress.
MR_TEST(MissingOptionalFunctionsAreDoneWithout) {
  MR_EXPECT(
      InChild({{"MILLRACE_FAKE_CUDA_MISSING",
                "cuMemAllocAsync,cuMemFreeAsync,cuDeviceGetDefaultMemPool,cuStreamWriteValue64,cuMemcpyBatchAsync"}},
              [] {
                const auto backend = MakeCudaBackend();
                static protocol::TimelineSlot slots[4];
                auto opened = backend->Open(0, slots);
                MR_REQUIRE(opened.ok());
                hal::Device& device = *opened.value();
                MR_REQUIRE(device.BindChannelThread().ok());
                {
                  auto created = device.CreateStream({.priority = 0, .slot = &slots[0], .sink = nullptr});
                  MR_REQUIRE(created.ok());
                  hal::Stream& stream = *created.value();
                  const uint64_t before = device.FreeBytes();
                  auto memory = stream.Allocate(1, 1 << 20);
                  MR_REQUIRE(memory.ok());
                  MR_EXPECT_EQ(before - device.FreeBytes(), 1u << 20);
                  MR_EXPECT(stream.Fill(2, memory.value()->address(), 8, 0x0102030405060708, 1 << 17).ok());
                  std::byte* const at = memory.value()->address();
                  const hal::BatchedCopy copies[] = {{at, at + 512, 8, {}}, {at + 8, at + 512, 8, {}}};
                  MR_EXPECT(stream.CopyBatch(3, copies).ok());
                  MR_EXPECT(stream.Free(4, std::move(memory).value()).ok());
                  MR_EXPECT_EQ(device.FreeBytes(), before);
                  MR_EXPECT(stream.Signal().ok());
                  MR_EXPECT(testing::Eventually([&] { return stream.Resolve(4).value() == 4; }));
                  MR_EXPECT_EQ(slots[0].device_word, 0u);
                }
                device.Close();
              }));
}

MR_TEST(CodesMeanWhatTheUserCanDo) {
  const auto code_of = [](cuda::CUresult code) { return static_cast<int>(cuda::FromDriver(code, "").code()); };
  MR_EXPECT(cuda::FromDriver(cuda::CUDA_SUCCESS, "").ok());
  MR_EXPECT_EQ(code_of(cuda::CUDA_ERROR_OUT_OF_MEMORY), static_cast<int>(StatusCode::kOutOfMemory));
  MR_EXPECT_EQ(code_of(cuda::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES), static_cast<int>(StatusCode::kLaunchFailed));
  MR_EXPECT_EQ(code_of(cuda::CUDA_ERROR_NO_BINARY_FOR_GPU), static_cast<int>(StatusCode::kCompile));
  for (const int sticky : {4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999}) {
    MR_EXPECT_EQ(code_of(static_cast<cuda::CUresult>(sticky)), static_cast<int>(StatusCode::kDeviceLost));
  }
  for (const int passing : {1, 2, 400, 600, 701, 712, 713, 720, 900}) {
    MR_EXPECT(!cuda::IsSticky(static_cast<cuda::CUresult>(passing)));
  }
}

}  // namespace

MR_TEST_MAIN()

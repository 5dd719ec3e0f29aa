// Builds through the fake NVRTC; without NVRTC, a build reports that.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cuda/nvrtc.h"
#include "testing.h"

namespace {

using namespace millrace;  // NOLINT: the test speaks of little else

std::string Text(const NvrtcResult& result) {
  return {reinterpret_cast<const char*>(result.image.data()), result.image.size()};
}

// First, and in a child process: a process searches for the library only once.
MR_TEST(WithoutNvrtcABuildIsUnavailable) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("MILLRACE_NVRTC", "/nowhere/libnvrtc.so", 1);
    const auto code = NvrtcCompile({"", "k.cu", {}}).status().code();
    _exit(NvrtcFind() == nullptr && code == StatusCode::kUnavailable ? 0 : 1);
  }
  int status = 1;
  MR_EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

MR_TEST(TheLibraryIsDescribed) {
  const NvrtcInfo* info = NvrtcFind();
  MR_REQUIRE(info != nullptr);
  MR_EXPECT_EQ(info->major, 12);
  MR_EXPECT_EQ(info->minor, 8);
  MR_EXPECT(info->architectures == std::vector<int>({75, 90}));
  MR_EXPECT(info->path.find("fake_nvrtc") != std::string::npos);
}

MR_TEST(ARealArchitectureGivesACubinAndAVirtualOnePtx) {
  auto cubin = NvrtcCompile({"text", "k.cu", {"-arch=sm_90", "-DN=3"}});
  MR_REQUIRE(cubin.ok() && cubin.value().ok);
  MR_EXPECT_EQ(Text(cubin.value()), "cubin\n-arch=sm_90\n-DN=3\ntext");
  MR_EXPECT_EQ(cubin.value().log, "");

  auto ptx = NvrtcCompile({"#warning", "k.cu", {"--gpu-architecture=compute_75"}});
  MR_REQUIRE(ptx.ok() && ptx.value().ok);
  MR_EXPECT_EQ(Text(ptx.value()), std::string("ptx\n--gpu-architecture=compute_75\n#warning") + '\0');
  MR_EXPECT_EQ(ptx.value().log, "k.cu(1): warning\n");
}

MR_TEST(ABadProgramIsAResultWithItsLog) {
  auto bad = NvrtcCompile({"#error", "bad.cu", {}});
  MR_REQUIRE(bad.ok());
  MR_EXPECT(!bad.value().ok && bad.value().image.empty());
  MR_EXPECT_EQ(bad.value().log, "bad.cu(1): error\n");

  auto option = NvrtcCompile({"text", "k.cu", {"-nonsense"}});
  MR_REQUIRE(option.ok());
  MR_EXPECT(!option.value().ok);
  MR_EXPECT_EQ(option.value().log, "unrecognized option -nonsense found\n");

  const Status crash = NvrtcCompile({"#crash", "k.cu", {}}).status();
  MR_EXPECT_EQ(static_cast<int>(crash.code()), static_cast<int>(StatusCode::kCompile));
  MR_EXPECT_EQ(crash.driver_code(), 11);
}

MR_TEST(HeadersAndNamesOfKernelsArrive) {
  auto built =
      NvrtcCompile({"text", "k.cu", {"-arch=sm_75"}, {{"a.h", "one"}, {"b/c", "two"}}, {"scale", "f<int, 2>"}});
  MR_REQUIRE(built.ok() && built.value().ok);
  MR_EXPECT_EQ(Text(built.value()), "cubin\na.h: one\nb/c: two\n-arch=sm_75\ntext");
  MR_EXPECT(built.value().symbols == std::vector<std::string>({"_Z_scale", "_Z_f<int, 2>"}));
}

MR_TEST(ManyThreadsMayBuild) {
  std::vector<std::thread> threads;
  std::vector<int> good(8);
  for (size_t i = 0; i < good.size(); ++i) {
    threads.emplace_back([&good, i] {
      const std::string source = "text " + std::to_string(i);
      auto result = NvrtcCompile({source, "k.cu", {"-arch=sm_75"}});
      good[i] = result.ok() && Text(result.value()) == "cubin\n-arch=sm_75\n" + source;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int each : good) MR_EXPECT_EQ(each, 1);
}

}  // namespace

int main() {
  // Neither a driver nor an NVRTC of this machine.
  setenv("MILLRACE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  setenv("MILLRACE_NVRTC", MILLRACE_FAKE_NVRTC, 1);
  return millrace::testing::RunAll();
}

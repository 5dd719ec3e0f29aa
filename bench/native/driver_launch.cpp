// The driver's own launch rate and round trip, without Millrace: what bench/spine.ts is compared with. Opens
// libcuda.so.1 at run time, loads an empty kernel from PTX text, and prints one line of JSON.
//
//   driver_launch [ordinal] [launches]
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kEmptyPtx[] = ".version 6.0\n.target sm_52\n.address_size 64\n.visible .entry empty() { ret; }\n";
constexpr unsigned kNonBlocking = 1;        // CU_STREAM_NON_BLOCKING
constexpr unsigned kHostMemMapped = 2;      // CU_MEMHOSTALLOC_DEVICEMAP
constexpr unsigned kWriteValueDefault = 0;  // CU_STREAM_WRITE_VALUE_DEFAULT

struct Driver {
  int (*init)(unsigned);
  int (*device_get)(int*, int);
  int (*primary_retain)(void**, int);
  int (*set_current)(void*);
  int (*module_load)(void**, const void*);
  int (*module_function)(void**, void*, const char*);
  int (*stream_create)(void**, unsigned);
  int (*stream_synchronize)(void*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  int (*host_alloc)(void**, size_t, unsigned);
  int (*host_device_pointer)(uint64_t*, void*, unsigned);
  int (*write_value64)(void*, uint64_t, uint64_t, unsigned);
};

template <typename F>
void Find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) {
    std::fprintf(stderr, "The driver has no %s.\n", name);
    std::exit(2);
  }
}

Driver OpenDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "There is no CUDA driver: %s.\n", dlerror());
    std::exit(2);
  }
  Driver driver{};
  Find(library, "cuInit", driver.init);
  Find(library, "cuDeviceGet", driver.device_get);
  Find(library, "cuDevicePrimaryCtxRetain", driver.primary_retain);
  Find(library, "cuCtxSetCurrent", driver.set_current);
  Find(library, "cuModuleLoadData", driver.module_load);
  Find(library, "cuModuleGetFunction", driver.module_function);
  Find(library, "cuStreamCreate", driver.stream_create);
  Find(library, "cuStreamSynchronize", driver.stream_synchronize);
  Find(library, "cuLaunchKernel", driver.launch);
  Find(library, "cuMemHostAlloc", driver.host_alloc);
  Find(library, "cuMemHostGetDevicePointer_v2", driver.host_device_pointer);
  Find(library, "cuStreamWriteValue64_v2", driver.write_value64);
  return driver;
}

void Check(int code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s answered %d.\n", what, code);
  std::exit(2);
}

double Seconds(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

double Quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const int ordinal = argc > 1 ? std::atoi(argv[1]) : 0;
  const int launches = argc > 2 ? std::atoi(argv[2]) : 200000;
  const Driver driver = OpenDriver();

  int device = 0;
  void* context = nullptr;
  void* module = nullptr;
  void* kernel = nullptr;
  void* stream = nullptr;
  void* host = nullptr;
  uint64_t word_address = 0;
  Check(driver.init(0), "cuInit");
  Check(driver.device_get(&device, ordinal), "cuDeviceGet");
  Check(driver.primary_retain(&context, device), "cuDevicePrimaryCtxRetain");
  Check(driver.set_current(context), "cuCtxSetCurrent");
  Check(driver.module_load(&module, kEmptyPtx), "cuModuleLoadData");
  Check(driver.module_function(&kernel, module, "empty"), "cuModuleGetFunction");
  Check(driver.stream_create(&stream, kNonBlocking), "cuStreamCreate");
  Check(driver.host_alloc(&host, 4096, kHostMemMapped), "cuMemHostAlloc");
  Check(driver.host_device_pointer(&word_address, host, 0), "cuMemHostGetDevicePointer");

  const auto launch = [&] {
    Check(driver.launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), "cuLaunchKernel");
  };
  for (int i = 0; i < 2000; ++i) launch();
  Check(driver.stream_synchronize(stream), "cuStreamSynchronize");

  // Sustained: the host's launch calls and the device's work, to the end of both.
  const auto start = Clock::now();
  for (int i = 0; i < launches; ++i) launch();
  const double issued = Seconds(start);
  Check(driver.stream_synchronize(stream), "cuStreamSynchronize");
  const double finished = Seconds(start);

  // Round trip: a launch, a word that the device writes, and a host that spins on it.
  volatile uint64_t* word = static_cast<volatile uint64_t*>(host);
  std::vector<double> round_trips;
  for (uint64_t i = 1; i <= 5000; ++i) {
    const auto before = Clock::now();
    launch();
    Check(driver.write_value64(stream, word_address, i, kWriteValueDefault), "cuStreamWriteValue64");
    while (*word < i) {
    }
    round_trips.push_back(Seconds(before) * 1e6);
  }
  const double median = Quantile(round_trips, 0.5);
  const double p99 = Quantile(round_trips, 0.99);

  std::printf(
      "{\"launches\": %d, \"issueNs\": %.1f, \"sustainedNs\": %.1f, \"launchesPerSecond\": %.0f, "
      "\"roundTripP50Us\": %.2f, \"roundTripP99Us\": %.2f}\n",
      launches, issued / launches * 1e9, finished / launches * 1e9, launches / finished, median, p99);
  return 0;
}

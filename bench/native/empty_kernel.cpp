// CPU kernels with the symbols that the kernel builder exports for a kernel: `empty` has no parameters and `three` a
// number and two arrays, and both do nothing; `increment` adds one to each of `length` numbers in a single block, and
// `spin` takes a time that grows with `steps`. The fake driver of the tests loads this library in place of PTX.
extern "C" {
__attribute__((visibility("default"))) extern const unsigned mr_params_empty[] = {0};
__attribute__((visibility("default"))) extern const unsigned mr_params_three[] = {3, 4, 8, 8};
__attribute__((visibility("default"))) extern const unsigned mr_params_increment[] = {2, 8, 4};
__attribute__((visibility("default"))) extern const unsigned mr_params_spin[] = {2, 8, 4};

/// As MrLaunch of native/cpu/shim/launch_abi.h begins.
struct Launch {
  void* const* params;
};

__attribute__((visibility("default"))) void mr_entry_empty(const void*, unsigned long long, unsigned long long) {}
__attribute__((visibility("default"))) void mr_entry_three(const void*, unsigned long long, unsigned long long) {}

__attribute__((visibility("default"))) void mr_entry_increment(const Launch* launch, unsigned long long first,
                                                               unsigned long long) {
  if (first != 0) return;
  auto* x = *static_cast<float* const*>(launch->params[0]);
  const int length = *static_cast<const int*>(launch->params[1]);
  for (int i = 0; i < length; ++i) x[i] += 1;
}

__attribute__((visibility("default"))) void mr_entry_spin(const Launch* launch, unsigned long long,
                                                          unsigned long long) {
  const int steps = *static_cast<const int*>(launch->params[1]);
  float value = 0;
  for (int n = 0; n < steps; ++n) value = value * 0.5f + 1;
  **static_cast<float* const*>(launch->params[0]) = value;
}
}

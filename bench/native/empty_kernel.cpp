// Two CPU kernels that do nothing, with the symbols that the kernel builder exports for a kernel: `empty` has no
// parameters, and `three` a number and two arrays. The fake driver of the tests loads this library in place of PTX.
extern "C" {
__attribute__((visibility("default"))) extern const unsigned mr_params_empty[] = {0};
__attribute__((visibility("default"))) extern const unsigned mr_params_three[] = {3, 4, 8, 8};

__attribute__((visibility("default"))) void mr_entry_empty(const void*, unsigned long long, unsigned long long) {}
__attribute__((visibility("default"))) void mr_entry_three(const void*, unsigned long long, unsigned long long) {}
}

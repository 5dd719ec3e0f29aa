// The tests of the CUDA backend: the first argument names the file whose cases are run. A second one is the image of
// the kernels for a GPU, on which they then run; without it they run on the fake driver.
#include <cstdlib>

#include "cuda_fixture.h"

int main(int argc, char** argv) {
  const bool is_fake = argc < 3;
  if (is_fake) setenv("MILLRACE_CUDA_DRIVER", MILLRACE_FAKE_CUDA, 1);
  if (!millrace::testing::ReadKernels(is_fake ? MILLRACE_CUDA_KERNELS : argv[2])) return 1;
  return millrace::testing::RunAll(argc > 1 ? argv[1] : "");
}

// The fake driver's linker: its output is its input, if the library to link exists.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "entry.h"

namespace millrace::fake_cuda {
namespace {

struct Link {
  std::vector<char> image;
  bool has_library = false;
  char* log = nullptr;
  size_t log_bytes = 0;
};

}  // namespace
}  // namespace millrace::fake_cuda

namespace millrace::cuda {

using namespace fake_cuda;  // NOLINT: these are its entry points

extern "C" {

CUresult cuLinkCreate(unsigned int count, CUjit_option* options, void** values, CUlinkState* state) {
  MR_ENTER("cuLinkCreate");
  MR_CURRENT(device);
  auto* link = new Link;
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) link->log = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) link->log_bytes = reinterpret_cast<size_t>(values[i]);
  }
  *state = reinterpret_cast<CUlinkState>(link);
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char*, unsigned int,
                       CUjit_option*, void**) {
  MR_ENTER("cuLinkAddData");
  if (type != CU_JIT_INPUT_CUBIN || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto* from = static_cast<const char*>(data);
  reinterpret_cast<Link*>(state)->image.assign(from, from + bytes);
  return CUDA_SUCCESS;
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int, CUjit_option*, void**) {
  MR_ENTER("cuLinkAddFile");
  auto* link = reinterpret_cast<Link*>(state);
  if (type != CU_JIT_INPUT_LIBRARY) return CUDA_ERROR_INVALID_VALUE;
  link->has_library = access(path, R_OK) == 0;
  if (!link->has_library) std::snprintf(link->log, link->log_bytes, "cannot open %s", path);
  return link->has_library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuLinkComplete(CUlinkState state, void** cubin, size_t* bytes) {
  MR_ENTER("cuLinkComplete");
  auto* link = reinterpret_cast<Link*>(state);
  if (!link->has_library || link->image.empty()) return CUDA_ERROR_INVALID_IMAGE;
  *cubin = link->image.data();
  *bytes = link->image.size();
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  MR_ENTER("cuLinkDestroy");
  delete reinterpret_cast<Link*>(state);
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace millrace::cuda

#include "cuda/libraries.h"

#include "cuda/cublaslt.h"
#include "cuda/cufft.h"
#include "cuda/nccl.h"

namespace millrace::cuda {

std::vector<hal::LibraryInfo> FindLibraries() {
  std::vector<hal::LibraryInfo> found;
  if (const CublasLtLibrary* const library = OpenCublasLt()) found.push_back(library->info);
  if (const CufftLibrary* const library = OpenCufft()) found.push_back(library->info);
  if (const NcclLibrary* const library = OpenNccl()) found.push_back(library->info);
  return found;
}

bool HasTransforms() {
  return HasCufft();
}

}  // namespace millrace::cuda

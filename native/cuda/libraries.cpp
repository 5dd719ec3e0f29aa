#include "cuda/libraries.h"

#include "cuda/cublaslt.h"

namespace millrace::cuda {

std::vector<hal::LibraryInfo> FindLibraries() {
  std::vector<hal::LibraryInfo> found;
  if (const CublasLtLibrary* const library = OpenCublasLt()) found.push_back(library->info);
  return found;
}

}  // namespace millrace::cuda

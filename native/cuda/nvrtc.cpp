#include "cuda/nvrtc.h"

#include <algorithm>
#include <mutex>

#include "cuda/nvrtc_library.h"

namespace millrace {

namespace {

using cuda::NvrtcCode;
using cuda::NvrtcProgram;
using cuda::NvrtcTable;

Status Failed(NvrtcCode code, const char* note) {
  return code == cuda::NVRTC_SUCCESS ? Status() : Status(StatusCode::kCompile, note, static_cast<int32_t>(code));
}

/// NVRTC generates machine code only for a real architecture, and accepts both spellings.
bool NamesRealArchitecture(const std::string& option) {
  return option.starts_with("-arch=sm_") || option.starts_with("--gpu-architecture=sm_");
}

/// The log, without the terminating zero that its size includes.
std::string ReadLog(const NvrtcTable& nvrtc, NvrtcProgram program) {
  size_t bytes = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &bytes) != cuda::NVRTC_SUCCESS || bytes <= 1) return "";
  std::string log(bytes, '\0');
  if (nvrtc.nvrtcGetProgramLog(program, log.data()) != cuda::NVRTC_SUCCESS) return "";
  log.pop_back();
  return log;
}

Status ReadImage(const NvrtcTable& nvrtc, NvrtcProgram program, bool is_cubin, std::vector<std::byte>* image) {
  const auto size = is_cubin ? nvrtc.nvrtcGetCUBINSize : nvrtc.nvrtcGetPTXSize;
  const auto read = is_cubin ? nvrtc.nvrtcGetCUBIN : nvrtc.nvrtcGetPTX;
  size_t bytes = 0;
  MR_TRY(Failed(size(program, &bytes), "reading the size of a compiled program"));
  image->resize(bytes);
  return Failed(read(program, reinterpret_cast<char*>(image->data())), "reading a compiled program");
}

/// The names belong to the program.
Status ReadSymbols(const NvrtcTable& nvrtc, NvrtcProgram program, const std::vector<std::string>& kernels,
                   std::vector<std::string>* symbols) {
  for (const std::string& kernel : kernels) {
    const char* symbol = nullptr;
    MR_TRY(Failed(nvrtc.nvrtcGetLoweredName(program, kernel.c_str(), &symbol), "reading the symbol of a kernel"));
    symbols->emplace_back(symbol);
  }
  return Status();
}

Result<NvrtcResult> Compile(const NvrtcTable& nvrtc, NvrtcProgram program, const NvrtcSource& source) {
  for (const std::string& kernel : source.kernels) {
    MR_TRY(Failed(nvrtc.nvrtcAddNameExpression(program, kernel.c_str()), "adding the name of a kernel"));
  }
  std::vector<const char*> arguments;
  for (const std::string& option : source.options) arguments.push_back(option.c_str());
  const NvrtcCode code = nvrtc.nvrtcCompileProgram(program, static_cast<int>(arguments.size()), arguments.data());
  NvrtcResult result;
  result.log = ReadLog(nvrtc, program);
  if (code == cuda::NVRTC_SUCCESS) {
    const bool is_cubin = std::any_of(source.options.begin(), source.options.end(), NamesRealArchitecture);
    MR_TRY(ReadImage(nvrtc, program, is_cubin, &result.image));
    MR_TRY(ReadSymbols(nvrtc, program, source.kernels, &result.symbols));
    result.ok = true;
  } else if (code != cuda::NVRTC_ERROR_COMPILATION && result.log.empty()) {
    // An invalid option has a log; without a log, the error is not in the user's source.
    return Failed(code, "compiling a program");
  }
  return result;
}

}  // namespace

const NvrtcInfo* NvrtcFind() {
  const cuda::NvrtcLibrary* library = cuda::OpenNvrtc();
  return library == nullptr ? nullptr : &library->info;
}

Result<NvrtcResult> NvrtcCompile(const NvrtcSource& source) {
  const cuda::NvrtcLibrary* library = cuda::OpenNvrtc();
  if (library == nullptr) return Status(StatusCode::kUnavailable, "looking for NVRTC");
  const NvrtcTable& nvrtc = library->functions;

  // Releases of NVRTC differ in thread safety, and builds are short.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);

  std::vector<const char*> texts;
  std::vector<const char*> names;
  for (const NvrtcHeader& header : source.headers) {
    texts.push_back(header.text.c_str());
    names.push_back(header.name.c_str());
  }
  NvrtcProgram program = nullptr;
  MR_TRY(Failed(nvrtc.nvrtcCreateProgram(&program, source.text.c_str(), source.name.c_str(),
                                         static_cast<int>(names.size()), texts.data(), names.data()),
                "creating a program"));
  Result<NvrtcResult> result = Compile(nvrtc, program, source);
  nvrtc.nvrtcDestroyProgram(&program);
  return result;
}

}  // namespace millrace

// An NVRTC for machines without one, selected by MILLRACE_NVRTC. It compiles nothing: the cubin or PTX of an accepted
// program is the headers, the options and the source, so that tests see what arrived.
//
//   #error in the text      not accepted, with a log
//   #warning in the text    accepted, with a log
//   #crash in the text      fails without a log
//   the option -nonsense    fails with a log and a code other than that of a bad program
#include <cstring>
#include <map>
#include <string>

#include "cuda/nvrtc_library.h"

namespace millrace::cuda {

struct _nvrtcProgram {
  std::string source;
  std::string name;
  std::string log;
  std::string options;  // And the headers.
  std::map<std::string, std::string> symbols;
  bool is_real = false;  // Options name a real architecture, so there is a cubin.
};

extern "C" {

#define MR_NVRTC(name, params) __attribute__((visibility("default"))) NvrtcCode name params;
#include "cuda/nvrtc_functions.def"
#undef MR_NVRTC

NvrtcCode nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 8;
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcGetSupportedArchs(int* architectures) {
  architectures[0] = 75;
  architectures[1] = 90;
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcCreateProgram(NvrtcProgram* program, const char* source, const char* name, int count,
                             const char* const* headers, const char* const* include_names) {
  *program = new _nvrtcProgram{source, name, "", "", {}, false};
  for (int i = 0; i < count; ++i) {
    (*program)->options += std::string(include_names[i]) + ": " + headers[i] + "\n";
  }
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcAddNameExpression(NvrtcProgram program, const char* expression) {
  program->symbols[expression] = "_Z_" + std::string(expression);
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcGetLoweredName(NvrtcProgram program, const char* expression, const char** name) {
  const auto found = program->symbols.find(expression);
  if (found == program->symbols.end()) return static_cast<NvrtcCode>(10);
  *name = found->second.c_str();
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcDestroyProgram(NvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcCompileProgram(NvrtcProgram program, int count, const char* const* options) {
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i];
    program->options += option + "\n";
    if (option.find("arch=sm_") != std::string::npos) program->is_real = true;
    if (option == "-nonsense") {
      program->log = "unrecognized option -nonsense found\n";
      return static_cast<NvrtcCode>(5);
    }
  }
  const auto has = [&](const char* text) { return program->source.find(text) != std::string::npos; };
  if (has("#crash")) return static_cast<NvrtcCode>(11);
  if (has("#warning")) program->log = program->name + "(1): warning\n";
  if (!has("#error")) return NVRTC_SUCCESS;
  program->log = program->name + "(1): error\n";
  return NVRTC_ERROR_COMPILATION;
}

NvrtcCode nvrtcGetProgramLogSize(NvrtcProgram program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcGetProgramLog(NvrtcProgram program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcGetPTXSize(NvrtcProgram program, size_t* bytes) {
  *bytes = program->options.size() + program->source.size() + 5;
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcGetPTX(NvrtcProgram program, char* ptx) {
  const std::string text = "ptx\n" + program->options + program->source;
  std::memcpy(ptx, text.c_str(), text.size() + 1);
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcGetCUBINSize(NvrtcProgram program, size_t* bytes) {
  *bytes = program->is_real ? program->options.size() + program->source.size() + 6 : 0;
  return NVRTC_SUCCESS;
}

NvrtcCode nvrtcGetCUBIN(NvrtcProgram program, char* cubin) {
  const std::string text = "cubin\n" + program->options + program->source;
  std::memcpy(cubin, text.c_str(), text.size());
  return NVRTC_SUCCESS;
}

}  // extern "C"

}  // namespace millrace::cuda

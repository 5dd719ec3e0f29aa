// Names for NVIDIA's tools: ranges of NVTX, if a tool asks for them.
//
// NVTX 3 needs no library of its own. A tool names its library by NVTX_INJECTION64_PATH. A program that finds the
// variable loads the library and gives it a function that finds tables; there the tool writes the functions that it
// wants to be called. Without the variable nothing is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/protocol.gen.h"

namespace millrace::nvtx {

/// Loads the tool's library, at the first call. Thread: any, before the first channel.
void Load();
/// Whether a tool listens. Set by Load.
extern bool is_on;
/// Why the tool's library does not work; empty if it does, nothing without a tool.
[[nodiscard]] std::optional<std::string> State();

/// A number for a text, at most 65,535; the same one for the same text. 0 if there are no more. Thread: any.
[[nodiscard]] uint16_t Label(std::string_view text);
/// A range of the process that begins now. Returns a number for End. Thread: any.
[[nodiscard]] uint32_t Start(std::string_view text);
void End(uint32_t range);

/// A range of this thread, around the driver calls of one record. Without a label it has the name of the opcode.
class Range {
 public:
  Range(uint16_t label, protocol::Opcode opcode);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  bool is_open_ = false;
};

}  // namespace millrace::nvtx

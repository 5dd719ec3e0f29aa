// A side of a copy between devices, for tests of the CUDA backend.
#pragma once

#include <memory>
#include <utility>

#include "cuda_fixture.h"

namespace millrace::testing {

/// A device with memory of its pool and a stream.
struct Side {
  Side(uint32_t ordinal, uint64_t bytes) : opened(ordinal), stream(opened.NewStream(0)) {
    auto allocated = stream->Allocate(++ticket, bytes);
    MR_CHECK(allocated.ok());
    memory = std::move(allocated).value();
    MR_CHECK(Finish(*stream, ticket));
  }
  ~Side() {
    MR_CHECK(opened.device->BindChannelThread().ok());
    MR_CHECK(stream->Free(++ticket, std::move(memory)).ok());
    MR_CHECK(Finish(*stream, ticket));
    stream.reset();
  }
  /// Makes its context current on this thread, as on its channel's thread.
  hal::Stream& Bind() {
    MR_CHECK(opened.device->BindChannelThread().ok());
    return *stream;
  }
  Opened opened;
  std::unique_ptr<hal::Stream> stream;
  Ticket ticket = 0;
  std::unique_ptr<hal::Memory> memory;
};

}  // namespace millrace::testing

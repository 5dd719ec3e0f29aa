// What the issue functions of all kinds of records share. Thread: channel, for everything in this folder.
#pragma once

#include <cstdint>

#include "runtime/channel_parts.h"

namespace millrace {

class DeviceProgress;
class PendingFrees;
class RecordEnds;
class StreamWaits;

/// A record is issued, with success or not, or it stays the next one of its stream, which is parked. A malformed one
/// was not issued: the issuer fails it (issue/malformed_record.h).
enum class Outcome : uint8_t { kIssued, kParked, kMalformed };

struct IssueParts : ChannelParts {
  DeviceProgress& progress;
  StreamWaits& waits;
  RecordEnds& ends;
  PendingFrees& frees;
};

}  // namespace millrace

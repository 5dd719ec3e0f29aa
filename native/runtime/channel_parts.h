// References to the parts of one channel, for a part that uses several others. Each part's header names its lock or its
// thread.
#pragma once

namespace millrace {

class Channel;
class DeviceAccess;
class DeviceLoss;
class FaultReports;
class OwnerCleanup;
class BlockingCallsThread;
class ResourceTables;
class StreamTable;
class SubmissionQueue;
class ThreadInbox;
struct Peers;

struct ChannelParts {
  Channel& channel;  // Other channels know the channel, and keep it.
  DeviceAccess& device;
  StreamTable& streams;
  ThreadInbox& inbox;
  ResourceTables& tables;
  Peers& peers;
  DeviceLoss& loss;
  SubmissionQueue& submissions;
  FaultReports& faults;
  OwnerCleanup& owners;
  BlockingCallsThread& blocking_calls;
};

}  // namespace millrace

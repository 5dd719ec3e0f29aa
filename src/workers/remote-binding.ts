// The binding of a channel whose device is in another process.
// Thread: owner.
import type { Binding } from '../native/binding.js';

/** The functions of an owner, for this device in another process. What needs an address or a handle of the driver finds none. */
export function remoteBinding(binding: Binding, channel: number): Binding {
  return {
    ...binding,
    attach: () => 0,
    detach: binding.remoteEnd,
    submit: binding.remoteSubmit,
    reserveHandles: binding.remoteReserveHandles,
    reserveFailure: () => binding.remoteReserveFailure(channel),
    defineGraph: binding.remoteDefineGraph,
    reserveStream: binding.remoteReserveStream,
    lastTicket: binding.remoteLastTicket,
    pendingPoints: binding.remotePendingPoints,
    arm: binding.remoteArm,
    failures: binding.remoteFailures,
    reported: binding.remoteReported,
    reportedOf: binding.remoteReportedOf,
    releaseHold: binding.remoteReleaseHold,
    failExternal: binding.remoteFailExternal,
    readyExternal: () => 0,
    loss: binding.remoteLoss,
    stats: binding.remoteStats,
    busyStreams: binding.remoteBusyStreams,
    holdChannel: binding.remoteHold,
    startRecording: binding.remoteStartRecording,
    stopRecording: binding.remoteStopRecording,
    takeTimes: binding.remoteTakeTimes,
    streamHandle: () => undefined,
    memoryAddress: () => undefined,
    isPeerGranted: () => false,
  };
}

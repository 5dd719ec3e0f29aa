// The addon's functions for an owner whose device is in another process.
import type { DeviceTimes, HandleKind } from '../protocol/protocol.gen.js';
import type { ChannelStats, DeviceLoss, FailurePart } from '../protocol/reports.js';

export interface RemoteBinding {
  /**
   * Makes the memory that this thread and the device's process share, and maps it at these buffers, as for `openDevice`. The child is to
   * inherit `file`. `channel`: what the device is called from now on.
   */
  remoteOpen(timeline: Uint8Array, arena: Uint8Array, arenaBytes: number, maxPending: number): { channel: number; file: number };
  /** From now on the port is rung for the device of this child. With `launchTimeoutMs`, 0 for none, also when the child stands still for so long. */
  remoteWatch(channel: number, pid: number, launchTimeoutMs: number): void;
  /** Nothing reads or writes the memory any more. */
  remoteEnd(channel: number): void;
  /** This process is killed when the thread that started it ends. False if `parent` is not its parent any more. */
  endWithParent(parent: number): boolean;
  /** The offset of a new range of the shared memory, of whole pages that are all 0; undefined if the system refuses. */
  remoteTake(channel: number, bytes: number): number | undefined;
  /** Gives the pages of a range back. */
  remoteRelease(channel: number, offset: number, bytes: number): void;
  /** Writes into, or reads from, a range. False if the system refuses. */
  remoteWrite(channel: number, offset: number, bytes: Uint8Array): boolean;
  remoteRead(channel: number, offset: number, bytes: Uint8Array): boolean;
  /**
   * Maps a range also as a whole growable buffer, in the owner with what the buffer holds. Returns false if the system refuses; the buffer
   * then keeps its pages. Also for the channel of a device that this process hosts for another one.
   */
  remoteMap(channel: number, offset: number, buffer: Uint8Array): boolean;
  // The others are as those of Binding.
  remoteSubmit(): void;
  remoteReserveHandles(channel: number, kind: HandleKind, count: number): number;
  remoteReserveFailure(channel: number): number;
  remoteDefineGraph(channel: number, handle: number, definition: Uint8Array): void;
  remoteReserveStream(channel: number): number;
  remoteLastTicket(channel: number, stream: number): number;
  remotePendingPoints(channel: number): number[];
  remoteArm(channel: number, stream: number, ticket: number): boolean;
  remoteFailures(channel: number, stream: number, from: number, count: number): FailurePart;
  remoteReported(channel: number, stream: number, through: number): void;
  remoteReportedOf(channel: number, handle: number, offset: number, bytes: number): void;
  remoteReleaseHold(channel: number, stream: number, ticket: number): void;
  remoteFailExternal(channel: number, stream: number, ticket: number): void;
  remoteLoss(channel: number): DeviceLoss | undefined;
  /** How the process has ended, before its exit event: the number of the signal, or 0 and the exit code. Undefined if it has not. */
  remoteEnded(channel: number): { readonly code: number; readonly signal: number } | undefined;
  /** The stream whose work did not end in time, so that the process ended itself; NO_STREAM for the channel's thread. */
  remoteHung(channel: number): number | undefined;
  remoteStats(channel: number): ChannelStats;
  remoteBusyStreams(channel: number): number[];
  remoteHold(channel: number, on: boolean): void;
  remoteStartRecording(channel: number, most: number, times: DeviceTimes): void;
  remoteStopRecording(channel: number): void;
  remoteTakeTimes(channel: number, into: Uint8Array): readonly [count: number, dropped: number];
}

// The functions that the addon exports. On the hot path they take and return numbers only.
// The owner is the thread that opened a device; the control thread is the device's worker.
import type { DeviceTimes, HandleKind, PeerRoute, PeerWhat, Status } from '../protocol/protocol.gen.js';
import type {
  BackendName,
  BackendReport,
  ChannelStats,
  DeviceLoss,
  DivisionReport,
  FailurePart,
  GpuReport,
  KernelLimits,
  LibraryReport,
  NativeDeviceInfo,
  PeerReport,
  PoolReport,
} from '../protocol/reports.js';

import type { RemoteBinding } from './remote-calls.js';

export type { BackendName, BackendReport, ChannelStats, FailureRecord, NativeDeviceInfo } from '../protocol/reports.js';

/** The Error that a failed native call throws; src/workers encodes it for the owner. */
export interface NativeFailure extends Error {
  readonly status: Status;
  readonly driverStatus: number;
}

export interface KernelInstall {
  /** cubin or PTX bytes; on the CPU device the UTF-8 path of a shared object. */
  readonly image: Uint8Array;
  readonly entry: string;
  readonly isBounded: boolean;
  /** Kernels of the image launch kernels. */
  readonly isLaunching: boolean;
  /** The kernel has the two hidden fault parameters after its own. */
  readonly isChecked: boolean;
  /** The number of the loaded module that has the kernel; `image` is then ignored. */
  readonly module?: number | undefined;
}

export interface Binding extends RemoteBinding {
  protocolHash(): string;
  /** Any thread. Creates no context. */
  enumerate(): BackendReport[];
  /** The libraries for GPUs that this machine has. Any thread. The first call opens them, which takes some milliseconds. */
  libraries(): LibraryReport[];
  /** What NVML tells of all GPUs of the machine. Any thread; takes milliseconds. Throws a NativeFailure. */
  allTelemetry(): GpuReport[];
  /** Whether there is a file that cuFFT may be opened from. Any thread. Opens nothing. */
  hasCufft(): boolean;

  /**
   * Joins ranks of this process to a communicator of so many, on a thread of its own, and returns its number. `ranks`: of each device; `id`: as
   * ncclUniqueId, or empty if all ranks are here. Any thread, as those below. Rejects with a NativeFailure.
   */
  openCommunicator(ordinals: Float64Array, ranks: Float64Array, size: number, id: Uint8Array): Promise<number>;
  /** For `openCommunicator` in several processes; undefined without NCCL, or where it refuses. Blocks while the library is opened. */
  communicatorId(): Uint8Array<ArrayBuffer> | undefined;
  /** Why it does not work: CommunicatorFault in native/cuda/communicator.h; 0 if it does. */
  communicatorState(communicator: number): number;
  /** `why`: an index into COLLECTIVE_FAULTS. */
  abortCommunicator(communicator: number, why: number): void;
  closeCommunicator(communicator: number): Promise<void>;

  // ── control: the device's worker ────────────────────────────────────────────────────────────────────────────
  /**
   * Opens the device (blocks), starts its channel thread and returns the channel's id. `timeline` and `arena` are whole buffers that no
   * code has accessed yet, each of whole pages; the arena may grow to `arenaBytes`. Both are referenced until `closeDevice`.
   */
  openDevice(
    backend: BackendName,
    ordinal: number,
    timeline: Uint8Array,
    arena: Uint8Array,
    arenaBytes: number,
    maxPending: number,
    isGuarded: boolean,
    memoryLimitBytes: number,
    schedule: number,
    /** 2^32: none. */
    seed: number,
    /** The descriptor of memory that an owner in another process shares; 0: none. */
    file: number,
    /** The id of the channel; 0: the next one of this process. */
    channel: number,
    /** After so long without progress the process ends itself; 0: never. Only for an owner in another process. */
    launchTimeoutMs: number,
    /** Of a CPU device; 0: as many as the machine has. */
    threads: number,
  ): number;
  /** The info of an open device, which is more complete than that of `enumerate`. */
  deviceInfo(channel: number): NativeDeviceInfo;
  /** Stops after the queued records, joins the channel thread and closes the device, without blocking the event loop. */
  closeDevice(channel: number): Promise<void>;
  /**
   * Drops the queued records, stops running kernels if the device can, and then closes it like closeDevice, after which it may also be
   * called. Settles when nothing runs any more, so never if a kernel does not end.
   */
  destroyDevice(channel: number): Promise<void>;
  /**
   * An environment that shared the device is gone. Resolves when all that it submitted has run, its streams are destroyed, and the memory
   * that it had not freed is freed.
   */
  ownerLeft(channel: number, owner: number): Promise<void>;
  /** Loads an image (blocks) and continues the streams that wait for this kernel. If it throws a NativeFailure, call failKernel. */
  installKernel(channel: number, handle: number, install: KernelInstall): KernelLimits;
  /**
   * Binds a library's call to the handle of a kernel (blocks) and continues the streams that wait for it; returns the library. `plan`: as in
   * hal/library_plan.h. If it throws a NativeFailure, nothing is bound.
   */
  installPlan(channel: number, handle: number, plan: Float64Array): LibraryReport;
  /** The build failed: launches of this kernel fail with this status. */
  failKernel(channel: number, handle: number, status: Status): void;
  /** Loads the image of a module (blocks) under a number that the caller chooses. Throws a NativeFailure. */
  loadModule(channel: number, module: number, image: Uint8Array): void;
  /**
   * Returns the size of the variable in bytes. If it equals `byteLength`, binds the variable to the memory handle. Throws a NativeFailure:
   * ARGUMENT if there is no variable of that name, UNSUPPORTED if it is const. Then, and for another size, call failVariable.
   */
  bindVariable(channel: number, handle: number, module: number, name: string, byteLength: number): number;
  /** Operations that use the memory handle fail with this failure. */
  failVariable(channel: number, handle: number, byteLength: number, failure: number): void;
  /** References the bytes, page-locks them if `pageLock` (blocks), and continues the streams that wait for this handle. */
  registerHost(channel: number, handle: number, bytes: Uint8Array, pageLock: boolean): void;
  /**
   * Unbinds the handle (blocks). Call it only after every operation that used the handle completed. Unless `isKept`, an ArrayBuffer is
   * detached and its memory freed at once.
   */
  unregisterHost(channel: number, handle: number, isKept: boolean): void;
  // Each of these may block, and throws a NativeFailure. core/channel/control.ts describes them.
  poolStats(channel: number): PoolReport;
  setReleaseThreshold(channel: number, bytes: number): void;
  releaseThreshold(channel: number): number;
  trimPool(channel: number, keepBytes: number): void;
  resetHighWater(channel: number): void;
  peerState(channel: number, ordinal: number, what: PeerWhat): PeerReport;
  setPeer(channel: number, ordinal: number, what: PeerWhat, isGranted: boolean): boolean;
  probePeer(channel: number, other: number): PeerRoute;
  divide(channel: number, shares: Float64Array): DivisionReport;
  endPartition(channel: number, id: number): void;
  elapsed(channel: number, start: number, end: number): number;
  alignClocks(channel: number): void;
  telemetry(channel: number): GpuReport;
  exportEvent(channel: number, eventHandle: number): Uint8Array<ArrayBuffer>;
  openEvent(channel: number, eventHandle: number, ipc: Uint8Array): void;
  exportMemory(channel: number, memory: number): Uint8Array<ArrayBuffer>;
  openMemory(channel: number, memory: number, ipc: Uint8Array, byteLength: number): void;
  /** The version and path of NVRTC, and the GPUs that it builds for; undefined if the library cannot be opened. */
  nvrtc(): { readonly version: readonly [number, number]; readonly path: string; readonly architectures: readonly number[] } | undefined;
  /** `headers` are the names, and `texts` what they contain. `kernels` are C++ names, whose `symbols` the result has in the same order. */
  compileNvrtc(
    source: string,
    name: string,
    options: readonly string[],
    headers: readonly string[],
    texts: readonly string[],
    kernels: readonly string[],
  ): Promise<{ readonly image?: Uint8Array; readonly symbols: readonly string[]; readonly log: string }>;
  /** Links relocatable code with the device runtime in the file `library` for `architecture` ('sm_90'), without blocking the event loop. */
  linkDevice(
    ordinal: number,
    cubin: Uint8Array,
    library: string,
    architecture: string,
  ): Promise<{ readonly image?: Uint8Array; readonly log: string }>;

  /** When this environment ends, kills the process group of this child. Call it again with `isRunning` false after the child has ended. */
  keepGroup(pid: number, isRunning: boolean): void;
  /** When this environment ends, kills the process group of every child that this thread started and that leads its group. */
  keepChildren(): void;
  /** When this environment ends, removes the folder with its contents. Call it again with `isThere` false after removing the folder. */
  keepFolder(path: string, isThere: boolean): void;
  /** Call it once, before `takeCompilerSlot`. The addon calls `onGranted` on this thread after it granted turns. */
  openCompilerSlots(onGranted: () => void): void;
  /** Takes one of the `limit` turns that all environments share, and returns true. If all are taken, returns false and grants one later. */
  takeCompilerSlot(limit: number): boolean;
  /** The number of turns granted since the last call. */
  grantedCompilerSlots(): number;
  /** Releases a turn. An environment that ends releases all turns that it holds. */
  releaseCompilerSlot(): void;

  // ── owner ───────────────────────────────────────────────────────────────────────────────────────────────────
  /**
   * Opens this environment's port. `record` is the record block with a SubmitCall behind it, referenced until closePort. `onWake` is called
   * on this thread; calls are coalesced.
   */
  openPort(record: Uint8Array, onWake: () => void): void;
  closePort(): void;
  /** Whether the port keeps the event loop alive. Calls are not counted. */
  refPort(on: boolean): void;
  /**
   * Attaches this environment to a channel that another thread of the process opened. Calls are counted. `isShared`: another environment
   * opened the device, and outlives this one. Returns the number by which `ownerLeft` knows this environment, or 0 for one that opened the
   * device.
   */
  attach(channel: number, isShared: boolean): number;
  detach(channel: number): void;
  /** Reports these bytes to V8 as memory of this thread until the buffer is collected. V8 does not count shared memory by itself. */
  countShared(buffer: SharedArrayBuffer, byteLength: number): void;
  /**
   * Maps the pages of `source`, a part of an arena, also at `target`, a whole growable buffer that no code has accessed yet. Both consist of
   * the same number of whole pages. Returns false if the system refuses; `target` then keeps its own pages.
   */
  mapHost(target: Uint8Array, source: Uint8Array): boolean;
  /** Replaces the pages that `mapHost` mapped by empty ones. Returns false if the system refuses; the buffer then keeps the arena's pages. */
  unmapHost(target: Uint8Array): boolean;
  /** Copies `source` to `target`, which have the same size and do not overlap. Several threads share a large copy. Blocks. */
  copyHost(target: Uint8Array, source: Uint8Array): void;
  /**
   * The same on other threads, into memory that no code has accessed yet and that none detaches meanwhile. The promise keeps the event loop
   * alive.
   */
  copyHostApart(target: Uint8Array, source: Uint8Array): Promise<void>;
  /** Asks the system for huge pages, whose first touch is fast, for memory that no code has accessed yet. */
  adviseHugePages(bytes: Uint8Array): void;
  /** Locks so many bytes of memory and gives them back. Returns 0, or the system's errno. Takes milliseconds. */
  lockProbe(bytes: number): number;
  /** Reserves a contiguous run of unused handle indices for this environment and returns the first one. */
  reserveHandles(channel: number, kind: HandleKind, count: number): number;
  /** Defines a graph by a copy of these bytes (GraphDefinition). Its first launch reads them; if they are malformed, every launch fails. */
  defineGraph(channel: number, handle: number, definition: Uint8Array): void;
  /** The id of a failure that belongs to no record. Any thread. */
  reserveFailure(): number;
  /** A free timeline slot, or -1. Its tickets continue after those of the slot's last stream; see `lastTicket`. */
  reserveStream(channel: number): number;
  lastTicket(channel: number, stream: number): number;
  /** The streams, of all threads, that have not completed their last ticket: a stream and its last ticket, one pair after another. */
  pendingPoints(channel: number): number[];
  /** Copies the record in the record block into the ring. The SubmitCall behind it says of which channel, and gets the ticket. */
  submit(): void;
  /** Requests a wake when the stream reaches `ticket`. Returns true if it has already; then no wake follows. */
  arm(channel: number, stream: number, ticket: number): boolean;
  /** At most `count` failures of a stream whose number (its order in the stream) is at least `from`. */
  failures(channel: number, stream: number, from: number, count: number): FailurePart;
  /** As Channel.reported. */
  reported(channel: number, stream: number, through: number): void;
  /** As Channel.reportedOf. */
  reportedOf(channel: number, handle: number, offset: number, bytes: number): void;
  /** Undefined while the device is not lost. */
  loss(channel: number): DeviceLoss | undefined;
  stats(channel: number): ChannelStats;
  /** Streams with issued records that have not completed. For a device that is being destroyed, streams that still run. */
  busyStreams(channel: number): number[];
  /** Completes the HOLD record with this ticket: the owner's function has returned. */
  // core/channel/channel.ts describes these. `into` begins at a multiple of 8 bytes.
  startRecording(channel: number, most: number, times: DeviceTimes): void;
  stopRecording(channel: number): void;
  /** Why the library of an NVTX tool does not work; '' if it does, undefined without a tool. */
  nvtxState(): string | undefined;
  /** A number for a name, for the `label` of records; 0 if there are no more. */
  nvtxLabel(name: string): number;
  /** Begins a range of the process. Returns a number for `nvtxEnd`. */
  nvtxStart(name: string): number;
  nvtxEnd(range: number): void;
  takeTimes(channel: number, into: Uint8Array): readonly [count: number, dropped: number];
  releaseHold(channel: number, stream: number, ticket: number): void;
  /** Fails the EXTERNAL record with this ticket: the owner's function failed. */
  failExternal(channel: number, stream: number, ticket: number): void;
  /** As Channel.readyExternal. */
  readyExternal(channel: number, stream: number): number;
  /** As CallCaptures.capture. Throws a NativeFailure. */
  captureCalls(channel: number, handle: number, fn: (stream: bigint, context: bigint) => boolean): void;
  /** As CallCaptures.fail. */
  failCaptured(channel: number, handle: number): void;
  /** As CallCaptures.drop. */
  dropCaptured(channel: number, handle: number): void;
  /** As Channel.enterContext. */
  enterContext(channel: number): bigint;
  leaveContext(channel: number): void;
  /** Tells V8 of memory outside of its heap. */
  adjustExternalMemory(bytes: number, isMore: boolean): void;
  streamHandle(channel: number, stream: number): bigint | undefined;
  memoryAddress(channel: number, handle: number): bigint | undefined;
  /** Whether kernels of the device with this ordinal, of the same backend, may use the memory of the channel's device: its pool, or the rest. */
  isPeerGranted(channel: number, ordinal: number, isPool: boolean): boolean;

  // ── tests ───────────────────────────────────────────────────────────────────────────────────────────────────
  /** Stops the channel from taking records out of its ring, or lets it continue. */
  holdChannel(channel: number, on: boolean): void;
}

// What the addon exports, and that is all. Plain functions; numbers in, numbers out on the hot path.
// "Owner" is the thread that opened a device, "control" the device's worker thread.
import type { HandleKind, PeerRoute, PeerWhat, Status } from '../protocol/protocol.gen.js';
import type {
  BackendName,
  BackendReport,
  ChannelStats,
  FailureRecord,
  KernelLimits,
  NativeDeviceInfo,
  PeerReport,
  PoolReport,
} from '../protocol/reports.js';

export type { BackendName, BackendReport, ChannelStats, FailureRecord, NativeDeviceInfo } from '../protocol/reports.js';

/** A failed native call, thrown as an Error with these fields; workers/ encodes it for the owner. */
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
  /** Takes the two hidden fault parameters after its own. */
  readonly isChecked: boolean;
  /** A module that was loaded: the kernel is one of its, and the image is not looked at. */
  readonly module?: number | undefined;
}

export interface Binding {
  protocolHash(): string;
  /** Any thread. Creates no context. */
  enumerate(): BackendReport[];

  // ── control: the device's worker ────────────────────────────────────────────────────────────────────────────
  /**
   * Blocks while the device opens, then starts its channel thread. `timeline` and `arena` are whole buffers that nobody has
   * seen yet, each of whole pages; the arena may grow to `arenaBytes`. Both are held until `closeDevice`. The channel's id.
   */
  openDevice(
    backend: BackendName,
    ordinal: number,
    timeline: Uint8Array,
    arena: Uint8Array,
    arenaBytes: number,
    maxPending: number,
  ): number;
  /** What an open device says of itself: `enumerate`, made exact. */
  deviceInfo(channel: number): NativeDeviceInfo;
  /** Stops after the queued records, joins the channel thread and closes the device, off the loop. */
  closeDevice(channel: number): Promise<void>;
  /**
   * Drops what is queued and stops what runs, where the device can; then as closeDevice, which it may follow. Settles when nothing runs
   * any more: never, where a kernel never ends.
   */
  destroyDevice(channel: number): Promise<void>;
  /** Loads an image (blocks) and lets the streams that wait for this kernel go on; throws a NativeFailure, after which call failKernel. */
  installKernel(channel: number, handle: number, install: KernelInstall): KernelLimits;
  /** The build failed: launches of this kernel fail with this status. */
  failKernel(channel: number, handle: number, status: Status): void;
  /** Loads an image (blocks) whose kernels and variables are named by this number, which the caller chose; throws a NativeFailure. */
  loadModule(channel: number, module: number, image: Uint8Array): void;
  /**
   * How many bytes the variable has; if they are so many, the memory handle names it from now on. Throws a NativeFailure: ARGUMENT
   * when there is none of that name, UNSUPPORTED when it is const. Call failVariable then, and for another size.
   */
  bindVariable(channel: number, handle: number, module: number, name: string, byteLength: number): number;
  /** What uses the memory handle fails of this failure. */
  failVariable(channel: number, handle: number, byteLength: number, failure: number): void;
  /** Holds the bytes, page-locks them when asked (blocks), and lets the streams that wait for this handle go on. */
  registerHost(channel: number, handle: number, bytes: Uint8Array, pageLock: boolean): void;
  /**
   * Only after every operation that used the handle completed. Blocks. Unless `isKept`, an ArrayBuffer is detached and its memory freed
   * at once.
   */
  unregisterHost(channel: number, handle: number, isKept: boolean): void;
  // Each of these may block, and throws a NativeFailure. core/channel/control.ts says what they are.
  poolStats(channel: number): PoolReport;
  setReleaseThreshold(channel: number, bytes: number): void;
  releaseThreshold(channel: number): number;
  trimPool(channel: number, keepBytes: number): void;
  resetHighWater(channel: number): void;
  peerState(channel: number, ordinal: number, what: PeerWhat): PeerReport;
  setPeer(channel: number, ordinal: number, what: PeerWhat, isGranted: boolean): void;
  probePeer(channel: number, other: number): PeerRoute;
  elapsed(channel: number, start: number, end: number): number;
  exportEvent(channel: number, eventHandle: number): Uint8Array<ArrayBuffer>;
  openEvent(channel: number, eventHandle: number, ipc: Uint8Array): void;
  exportMemory(channel: number, memory: number): Uint8Array<ArrayBuffer>;
  openMemory(channel: number, memory: number, ipc: Uint8Array, byteLength: number): void;
  /** NVRTC, if it can be opened; runs off the loop. */
  nvrtc(): { readonly version: readonly [number, number]; readonly path: string } | undefined;
  compileNvrtc(source: string, name: string, options: readonly string[]): Promise<{ readonly image?: Uint8Array; readonly log: string }>;
  /** Links relocatable code with the device runtime, whose file is `library`, for `architecture` ('sm_90'); runs off the loop. */
  linkDevice(
    ordinal: number,
    cubin: Uint8Array,
    library: string,
    architecture: string,
  ): Promise<{ readonly image?: Uint8Array; readonly log: string }>;

  /** Kills the process group that this child leads when this environment ends for any reason, unless `isRunning` was set to false before. */
  keepGroup(pid: number, isRunning: boolean): void;
  /** Removes the folder and its contents when this environment ends for any reason, unless `isThere` was set to false before. */
  keepFolder(path: string, isThere: boolean): void;
  /** Call it once, before `takeCompilerSlot`. The addon calls `onGranted` on this thread after it granted turns. */
  openCompilerSlots(onGranted: () => void): void;
  /** Takes one of the `limit` turns that all environments share, and returns true. When all are taken, returns false and grants one later, in order. */
  takeCompilerSlot(limit: number): boolean;
  /** The number of turns granted since the last call. */
  grantedCompilerSlots(): number;
  /** Passes a turn on. An environment that ends passes on all that it holds. */
  releaseCompilerSlot(): void;

  // ── owner ───────────────────────────────────────────────────────────────────────────────────────────────────
  /** One per environment. `record` is the block records are written into, held until closePort; `onWake` is called on this thread, coalesced. */
  openPort(record: Uint8Array, onWake: () => void): void;
  closePort(): void;
  /** Keeps the loop alive, or lets it go. Not counted. */
  refPort(on: boolean): void;
  /** Ties this environment to a channel opened elsewhere in the process; counted. */
  attach(channel: number): void;
  detach(channel: number): void;
  /** V8 counts these bytes for memory of this thread until it has collected the buffer, which by itself it does not for shared memory. */
  countShared(buffer: SharedArrayBuffer, byteLength: number): void;
  /**
   * Maps the pages of `source`, a part of an arena, also at `target`, a whole growable buffer that nobody has seen yet. Both are whole
   * pages of the same size. False where the system refuses; `target` then keeps its own pages.
   */
  mapHost(target: Uint8Array, source: Uint8Array): boolean;
  /** Gives what `mapHost` mapped empty pages of its own. False where the system refuses; it then keeps the pages of the arena. */
  unmapHost(target: Uint8Array): boolean;
  /** A contiguous run of unused handle indices for this environment; the first one. */
  reserveHandles(channel: number, kind: HandleKind, count: number): number;
  /** The id of a failure that is no record's. Any thread. */
  reserveFailure(): number;
  /** A free timeline slot, or -1. Its ticket counter goes on where the slot's last stream ended: second number. */
  reserveStream(channel: number): number;
  lastTicket(channel: number, stream: number): number;
  /** Copies the record in the record block into the ring; returns its ticket, or minus the Status that refused it. */
  submit(channel: number, bytes: number): number;
  /** Asks for a wake when the stream reaches `ticket`. True: it already has, nothing was armed. */
  arm(channel: number, stream: number, ticket: number): boolean;
  /** Failures of a stream whose number (its order in the stream) is at least `from`. */
  failures(channel: number, stream: number, from: number): FailureRecord[];
  /** 0, or the Status the device died of. */
  lostStatus(channel: number): number;
  stats(channel: number): ChannelStats;
  /** Streams that have not come to the end of what was issued, or, of a device that is being destroyed, that still run. */
  busyStreams(channel: number): number[];
  /** The owner's function has returned: the HOLD record with this ticket completes. */
  releaseHold(channel: number, stream: number, ticket: number): void;
  streamHandle(channel: number, stream: number): bigint | undefined;
  memoryAddress(channel: number, handle: number): bigint | undefined;

  // ── tests ───────────────────────────────────────────────────────────────────────────────────────────────────
  /** Stops the channel from taking records out of its ring, or lets it go on. */
  holdChannel(channel: number, on: boolean): void;
}

// The interface between core and a device: core passes records and gets numbers back. Core imports neither the addon nor the
// workers, so its tests run on a fake Channel.
//
// `submit` and `arm` are on the hot path; the other members are used once per stream, kernel or chunk of host memory.
// Thread: owner.
import type { Encoder } from '../../protocol/encoder.js';
import type { DeviceTimes, HandleKind, PeerWhat } from '../../protocol/protocol.gen.js';
import type { BackendName, ChannelStats, DeviceLoss, FailurePart, KernelLimits, NativeDeviceInfo } from '../../protocol/reports.js';
import type { DeviceAddress } from '../base/device-token.js';
import type { DeviceLostError } from '../base/errors.js';
import type { Build, BuildSpec, FaultPlaces, FaultSource } from './build-spec.js';
import type { ControlCalls, ControlName } from './control.js';
import type { GrowableSharedBuffer } from './host-buffers.js';

/** How a module was built. */
export interface ModuleReport {
  readonly compiler: string;
  readonly fromCache: boolean;
  readonly ms: number;
}

/** How a kernel was built. */
export interface BuildReport extends ModuleReport {
  readonly limits: KernelLimits;
}

/** A variable of a module that was given to `loadModule`. */
export interface VariableSpec {
  readonly module: number;
  /** As in the source, with its namespaces: `physics::gravity`. */
  readonly name: string;
  /** The size that the variable must have. */
  readonly byteLength: number;
  /** From `reserveFailure`: the failure that poisons its memory if the variable cannot be bound. */
  readonly failure: number;
}

/** Communicators of devices of the channel's backend, by number. */
export interface CommunicatorCalls {
  /**
   * Joins these ranks of a communicator, one for each device, and resolves when all others have joined. Without an id, they are all its ranks.
   * Rejects with UnavailableError without a library, and with CollectiveError.
   */
  open(of: CommunicatorRequest): Promise<number>;
  /** An id for ranks of several processes; undefined without the library. */
  makeId(): Uint8Array | undefined;
  /** An index into COLLECTIVE_FAULTS; 0 if it works. */
  state(communicator: number): number;
  /** Fails what is in flight. `why`: an index into COLLECTIVE_FAULTS. */
  abort(communicator: number, why: number): void;
  /** Waits for what is in flight. */
  close(communicator: number): Promise<void>;
}

/** Captures of the calls of other code, for nodes of graphs. */
export interface CallCaptures {
  /**
   * Calls `fn` with a driver's stream that lists what is called on it, and with the context, which is current meanwhile. If `fn` returns true,
   * launches of the kernel handle are these calls. Throws the driver's failure. `fn` must not throw.
   */
  capture(handle: number, fn: (stream: bigint, context: bigint) => boolean): void;
  /** Launches of the handle fail. */
  fail(handle: number): void;
  /** No record that is still to be issued names the handle. */
  drop(handle: number): void;
}

export interface CommunicatorRequest {
  readonly ordinals: readonly number[];
  readonly ranks: readonly number[];
  readonly size: number;
  readonly id?: Uint8Array;
}

/** What a device notes for a recorded timeline. */
export interface ChannelRecorder {
  /**
   * From now on the device notes for this thread when each record is submitted, parked and issued, and, if `times` wants it, when it ran: at
   * most `most` facts between two calls of `take`, then the oldest go. A further call changes that.
   */
  start(most: number, times: DeviceTimes): void;
  stop(): void;
  /** Writes entries of RecordedTime. Returns how many it wrote, and how many were dropped since the last call. */
  take(into: Uint8Array): readonly [count: number, dropped: number];
}

export interface Channel {
  /** Names the device in WAIT records. */
  readonly id: number;
  readonly backend: BackendName;
  readonly info: NativeDeviceInfo;
  /** Its device is in another process: other devices and threads of this one, and code with pointers, do not reach it. */
  readonly isApart: boolean;
  /** The most unissued records that the device holds. */
  readonly maxPending: number;
  /** Encodes the record that `submit` submits. */
  readonly encoder: Encoder;
  /** The streams' slots. */
  readonly timeline: SharedArrayBuffer;
  /** By which other threads find the device. */
  readonly address: DeviceAddress;
  /** Growable. Staging memory and the pages of pinned arrays are parts of it. */
  readonly arena: GrowableSharedBuffer;

  /** Submits the encoded record. Returns its ticket, or minus the Status that refused it. */
  submit(bytes: number): number;
  /** Requests a wake when a stream reaches `ticket`. Returns true if the stream has reached it; then no wake follows. */
  arm(stream: number, ticket: number): boolean;
  /** At most `count` failures of a stream, from the `from`th on. */
  failures(stream: number, from: number, count: number): FailurePart;
  /**
   * The failures of a stream up to the ticket `through` were reported to code. From now on, records that are submitted may read the pinned
   * arrays that these operations should have written.
   */
  reported(stream: number, through: number): void;
  /** These bytes of host memory get another use: the same for all operations that should have written them. */
  reportedOf(handle: number, offset: number, bytes: number): void;
  /** Whether the machine seems to have a library of Fourier transforms for the device, by its file. */
  hasTransformLibrary(): boolean;
  /** Undefined where there are none. */
  readonly communicators: CommunicatorCalls | undefined;
  /** Undefined where calls cannot be captured. */
  readonly callCaptures: CallCaptures | undefined;
  /** Undefined while the device is not lost. */
  loss(): DeviceLoss | undefined;
  stats(): ChannelStats;

  /** The first index of a run of unused ones. */
  reserveHandles(kind: HandleKind, count: number): number;
  /** Defines a graph by these bytes (GraphDefinition), which are copied. Call it before the first launch of the graph. */
  defineGraph(handle: number, definition: Uint8Array): void;
  /** A free timeline slot, or -1. */
  reserveStream(): number;
  /** The last ticket of a slot. */
  lastTicket(stream: number): number;
  /** The streams, of all threads, that have not completed their last ticket: a stream and its last ticket, one pair after another. */
  pendingPoints(): readonly number[];

  /**
   * Builds a kernel, or finds it in a module that was given to `loadModule`, and binds it to the handle. Meanwhile launches of it wait on
   * the device. Rejects with the error that its launches fail with.
   */
  build(handle: number, build: Build, module?: number): Promise<BuildReport>;
  /** Builds a module and loads its image, once, under a number that the caller chooses. */
  loadModule(module: number, build: BuildSpec): Promise<ModuleReport>;
  /** Finds the accesses of a kernel in its source. Rejects with the device's error if it ends before. */
  locate(kernel: number, places: FaultPlaces): Promise<FaultSource>;
  /** Binds a variable to a memory handle permanently. Meanwhile records that name it wait on the device. Rejects if there is no such variable. */
  bindVariable(handle: number, variable: VariableSpec): Promise<void>;
  /** Whether a variable is being bound. A stream that is parked for memory which no stream allocates may then wait for the variable. */
  readonly isBinding: boolean;
  /** The id of a failure that belongs to no record. */
  reserveFailure(): number;
  /**
   * Binds host memory to the handle, page-locked if `isLocked`. Meanwhile copies that name the handle wait on the device. An ordinary
   * ArrayBuffer is transferred to the device's worker and so detached here.
   */
  register(handle: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): void;
  /**
   * Maps whole pages of the arena also as `buffer`, which no code has accessed yet. Returns false if the system refuses; the buffer then
   * keeps its own pages.
   */
  mapHost(buffer: SharedArrayBuffer, arenaOffset: number): boolean;
  /** Replaces the pages that `mapHost` mapped by empty ones. Returns false if the system refuses; the buffer then keeps the arena's pages. */
  unmapHost(buffer: SharedArrayBuffer): boolean;
  /** Copies `source` to `target`, which have the same size and do not overlap. Several threads share a large copy. Blocks. */
  copyHost(target: Uint8Array, source: Uint8Array): void;
  /** The same on other threads, into memory that no code has accessed yet and that none detaches meanwhile. */
  copyHostApart(target: Uint8Array, source: Uint8Array): Promise<void>;
  /** Asks the system for huge pages, whose first touch is fast, for memory that no code has accessed yet. */
  adviseHugePages(bytes: Uint8Array): void;
  /** Allocates an ordinary buffer in the device's worker and binds it to the handle, not page-locked. `collect` transfers it here. */
  lend(handle: number, byteLength: number): void;
  /**
   * Unregisters a handle of `lend` and returns its buffer. Call it only after every operation that used the handle completed. Rejects with
   * OutOfMemoryError if the buffer could not be allocated; those operations have then failed.
   */
  collect(handle: number): Promise<ArrayBuffer>;
  /** Unbinds the handle. Call it only after every operation that used the handle completed. Resolves when the handle may be used again. */
  unregister(handle: number): Promise<void>;

  /** Calls a function of the addon in the device's worker. Rejects with its error, or with DeviceLostError. */
  ask<K extends ControlName>(name: K, ...args: Parameters<ControlCalls[K]>): Promise<ReturnType<ControlCalls[K]>>;

  /** Undefined where no timeline can be recorded. */
  readonly recorder?: ChannelRecorder;

  /** Completes the HOLD record with this ticket. */
  releaseHold(stream: number, ticket: number): void;
  /** Fails the EXTERNAL record with this ticket; `releaseHold` completes it. */
  failExternal(stream: number, ticket: number): void;
  /** The last ticket of an EXTERNAL record whose function may be called; 0 without one. A wake tells of each. */
  readyExternal(stream: number): number;
  /** Makes the device's context current on this thread until `leaveContext`, and returns its handle: 0n on a device without contexts. */
  enterContext(): bigint;
  leaveContext(): void;
  /** Tells V8 that this thread's objects hold so many bytes more, or less, outside of its heap. */
  weigh(bytes: number): void;
  /** Collects what this thread no longer uses, at once. */
  collectGarbage(): void;
  /** The driver's stream; undefined until the device has created it. */
  streamHandle(stream: number): bigint | undefined;
  /** Whether kernels of the device with this ordinal, of the same backend, may use this device's memory. */
  isPeerGranted(ordinal: number, what: PeerWhat): boolean;
  /** The device address of memory; undefined until the device has allocated it, or if the allocation failed. */
  memoryAddress(handle: number): bigint | undefined;

  /** Why the device is gone, if its worker or the thread that opened it ended. */
  endedError(): DeviceLostError;
  /** The stream whose work did not end in time, so that the device's process ended itself. */
  readonly hungStream?: number | undefined;
  /** Called at most once, when the worker ends without a request. */
  onLost: ((error: DeviceLostError) => void) | undefined;
  /** Keeps the process alive until `promise` settles, for awaited promises without a ticket. */
  keepAlive<T>(promise: Promise<T>): Promise<T>;
  /** Runs the queued records, closes the device and ends the worker. Call it after the last record. */
  close(): Promise<void>;
  /**
   * Drops the queued records, closes the device and ends the worker. If operations still run after `timeoutMs`, leaves their thread and
   * memory alone and returns their streams; otherwise returns undefined.
   */
  destroy(timeoutMs: number): Promise<StillRunning | undefined>;
}

/** Operations of a destroyed device that did not stop. */
export interface StillRunning {
  /** The slots of the streams. */
  readonly streams: readonly number[];
  readonly afterMs: number;
}

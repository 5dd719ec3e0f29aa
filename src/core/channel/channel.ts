// The one way to what is below: records go down, numbers come back. Core knows no addon, no worker and no message, so its
// tests run on a fake of this.
//
// `submit` and `arm` are the hot pair; the rest happens once per stream, kernel or chunk of host memory.
// Thread: owner.
import type { Encoder } from '../../protocol/encoder.js';
import type { HandleKind } from '../../protocol/protocol.gen.js';
import type { BackendName, ChannelStats, FailureRecord, KernelLimits, NativeDeviceInfo } from '../../protocol/reports.js';
import type { DeviceLostError } from '../base/errors.js';
import type { Build, BuildSpec } from './build.js';
import type { ControlCalls, ControlName } from './control.js';
import type { GrowableSharedBuffer } from './shared-buffer.js';

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
  /** As in the text, with its namespaces: `physics::gravity`. */
  readonly name: string;
  /** What it has to have. */
  readonly byteLength: number;
  /** From `reserveFailure`: what poisons its memory if it cannot be had. */
  readonly failure: number;
}

export interface Channel {
  /** Names the device in WAIT records. */
  readonly id: number;
  readonly backend: BackendName;
  readonly info: NativeDeviceInfo;
  /** Unissued records the device holds at most. */
  readonly maxPending: number;
  /** Where `submit` takes its record from. */
  readonly encoder: Encoder;
  /** The streams' slots. */
  readonly timeline: SharedArrayBuffer;
  /** Growable; staging memory is cut from it, and the pages of pinned arrays. */
  readonly arena: GrowableSharedBuffer;

  /** Hands over the encoded record. Its ticket, or minus the Status that refused it. */
  submit(bytes: number): number;
  /** Asks for a wake when a stream reaches `ticket`. True: it has already, and no wake will come. */
  arm(stream: number, ticket: number): boolean;
  /** Failures of a stream from the `from`th on. */
  failures(stream: number, from: number): readonly FailureRecord[];
  /** 0, or the Status the device died of. */
  lostStatus(): number;
  stats(): ChannelStats;

  /** The first index of a run of unused ones. */
  reserveHandles(kind: HandleKind, count: number): number;
  /** A free timeline slot, or -1. */
  reserveStream(): number;
  /** Where a slot's tickets stand. */
  lastTicket(stream: number): number;

  /**
   * Builds a kernel, or finds it in a module that was given to `loadModule`, and binds it to the handle; launches of it wait on the
   * device. Rejects with what its launches fail of.
   */
  build(handle: number, build: Build, module?: number): Promise<BuildReport>;
  /** Builds a text and loads the image, once, under a number that the caller chose. */
  loadModule(module: number, build: BuildSpec): Promise<ModuleReport>;
  /** Binds a variable to a memory handle, for good; records that name it wait on the device. Rejects when there is none such. */
  bindVariable(handle: number, variable: VariableSpec): Promise<void>;
  /** Some variable is not bound yet: what parks for memory that no stream allocates may be waiting for that. */
  readonly isBinding: boolean;
  /** The id of a failure that is no record's. */
  reserveFailure(): number;
  /**
   * Binds host memory to the handle, page-locked when asked; copies that name it wait on the device until it is. An ordinary
   * ArrayBuffer is detached here: the device's worker has it from now on.
   */
  register(handle: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): void;
  /**
   * Maps a part of the arena also as `buffer`, which nobody has seen yet: whole pages. False where the system refuses; the buffer then
   * keeps its own pages.
   */
  mapHost(buffer: SharedArrayBuffer, arenaOffset: number): boolean;
  /** Gives what `mapHost` mapped empty pages of its own. False where the system refuses; it then keeps the pages of the arena. */
  unmapHost(buffer: SharedArrayBuffer): boolean;
  /** Makes an ordinary buffer in the device's worker and binds it to the handle, not page-locked; `collect` brings it here. */
  lend(handle: number, byteLength: number): void;
  /**
   * Only after every operation that used the handle completed. Unregisters it and gives the buffer; rejects with OutOfMemoryError where
   * there was no memory for it, which those operations have failed of.
   */
  collect(handle: number): Promise<ArrayBuffer>;
  /** Only after every operation that used the handle completed. Resolves when the handle may be used again. */
  unregister(handle: number): Promise<void>;

  /** Asks the device's worker. Rejects with what went wrong, or with DeviceLostError. */
  ask<K extends ControlName>(name: K, ...args: Parameters<ControlCalls[K]>): Promise<ReturnType<ControlCalls[K]>>;

  /** Lets the HOLD record with this ticket go. */
  releaseHold(stream: number, ticket: number): void;
  /** The driver's stream, undefined until the device made it. */
  streamHandle(stream: number): bigint | undefined;
  /** Where memory is on the device, undefined until the device made it or where it could not. */
  memoryAddress(handle: number): bigint | undefined;

  /** Called at most once, when the worker ends unasked. */
  onLost: ((error: DeviceLostError) => void) | undefined;
  /** Keeps the process alive until `promise` settles: for what is awaited and has no ticket. */
  holdLoop<T>(promise: Promise<T>): Promise<T>;
  /** After the last record: runs what is queued, closes the device, ends the worker. */
  close(): Promise<void>;
  /**
   * Drops what is queued, closes the device and ends the worker: undefined. What still runs when the time for that is over is left
   * alone, with its thread and its memory.
   */
  destroy(): Promise<StillRunning | undefined>;
}

/** What a device that was destroyed did not stop. */
export interface StillRunning {
  /** The slots of the streams. */
  readonly streams: readonly number[];
  readonly afterMs: number;
}

// One GPU, or the CPU device: what its streams, arrays and kernels belong to.
// Thread: the one that opened it.
import { MemorySpace } from '../protocol/protocol.gen.js';
import type { BackendName } from '../protocol/reports.js';
import { badArgument, checkDType, checkInteger, checkShape, lengthOf, show } from './arguments.js';
import { ArrayFactory } from './array-factory.js';
import { describeAs } from './describe.js';
import type { DeviceCore, DeviceState } from './device-core.js';
import { DTYPES, type DType, type DTypeLike } from './dtype.js';
import { DeviceLostError, type MillraceError } from './errors.js';
import { DeviceEvent } from './event.js';
import type { Kernel, Shape } from './kernel.js';
import { type ObservableOf, type Observed, observe } from './observable.js';
import type { Operation } from './operation.js';
import { PinnedArray } from './pinned.js';
import { type Ordering, Storage } from './storage.js';
import { Stream, type StreamOptions } from './stream.js';
import type { Timeline } from './timeline.js';
import { checkWaitOptions, type WaitOptions } from './wait.js';

export type DeviceName = 'cpu' | `cpu:${number}` | `cuda:${number}`;

export interface DeviceInfo {
  readonly id: DeviceName;
  readonly backend: BackendName;
  readonly name: string;
  readonly totalMemoryBytes: number;
  /** CUDA only. */
  readonly computeCapability?: readonly [major: number, minor: number];
  readonly multiprocessors: number;
  readonly maxThreadsPerBlock: number;
  readonly warpSize: number;
  readonly priorityRange: readonly [least: number, greatest: number];
}

export interface StreamSnapshot {
  readonly stream: string;
  readonly pending: number;
  /** Why the device does not go on with it at present, if it does not. */
  readonly parkedFor?: string;
}

export interface DeviceSnapshot {
  readonly device: DeviceName;
  readonly state: DeviceState;
  readonly streams: readonly StreamSnapshot[];
}

/** What opened it, and hears when it is let go. @internal */
export interface DeviceOwner {
  readonly info: DeviceInfo;
  readonly ordering: Ordering;
  /** True when this was the last of those who opened it. */
  release(): boolean;
  /** It is being closed until then. */
  ends(closed: Promise<void>): void;
}

export class Device extends ArrayFactory implements AsyncDisposable {
  readonly info: DeviceInfo;
  readonly defaultStream: Stream;
  /** Resolves when the device is lost; never rejects. */
  readonly lost: Promise<DeviceLostError>;
  /** Aborted with the DeviceLostError when the device is lost. */
  readonly signal: AbortSignal;
  /** @internal */
  readonly core: DeviceCore;
  readonly #owner: DeviceOwner;
  readonly #streams: Map<Timeline, Stream> = new Map();
  readonly #readers: Stream[] = [];
  #readsMade = 0;
  #made = 0;
  #closing: Promise<void> | undefined = undefined;
  #operations: ObservableOf<Operation> | undefined = undefined;
  #errors: ObservableOf<MillraceError> | undefined = undefined;

  /** @internal Made by openDevice. */
  constructor(core: DeviceCore, owner: DeviceOwner) {
    super();
    this.core = core;
    this.info = owner.info;
    this.#owner = owner;
    this.lost = core.lost;
    const aborter = new AbortController();
    this.signal = aborter.signal;
    core.onLost = (error) => {
      for (const stream of this.#streams.values()) stream.finish(error);
      core.operations.error(error);
      aborter.abort(error);
    };
    this.defaultStream = this.#makeStream('default', 0, owner.ordering);
    core.home = this.defaultStream.timeline;
  }

  /** @internal */
  protected get target(): Stream {
    return this.stream;
  }

  get state(): DeviceState {
    return this.core.state;
  }

  /** The current stream, which arrays made on the device are made by. */
  get stream(): Stream {
    return this.defaultStream;
  }

  createStream(opts: StreamOptions = {}): Stream {
    const { priority = 0, fullRange = false, label, ordering = this.#owner.ordering } = opts;
    checkInteger('priority', priority, Number.MIN_SAFE_INTEGER);
    if (ordering !== 'tracked' && ordering !== 'explicit') {
      throw badArgument('ordering', ordering, `The ordering (${show(ordering)}) is none of 'tracked', 'explicit'.`);
    }
    // Smaller is more urgent. Two steps are what every device has.
    const [least, greatest] = this.info.priorityRange;
    const urgent = fullRange ? greatest : Math.max(greatest, -1);
    const clamped = Math.max(urgent, Math.min(fullRange ? least : 0, priority));
    return this.#makeStream(label ?? `stream-${++this.#made}`, clamped, ordering);
  }

  createEvent(): DeviceEvent {
    this.#checkOpen();
    return new DeviceEvent(this, this.core);
  }

  /** Page-locked host memory, contents undefined. Its first use waits on the device until the pages are locked, never here. */
  pinned(shape: Shape): PinnedArray<'f32'>;
  pinned<D extends DType>(shape: Shape, dtype: DTypeLike<D>): PinnedArray<D>;
  pinned<D extends DType>(shape: Shape, dtype?: DTypeLike<D>): PinnedArray<D> {
    this.#checkOpen();
    const dimensions = checkShape(shape);
    const type = checkDType(dtype);
    const bytes = checkInteger('size of the pinned array in bytes', lengthOf(dimensions) * DTYPES[type].byteSize, 0, MAX_PINNED_BYTES);
    const block = this.core.arena.take(bytes);
    const storage = new Storage(MemorySpace.HOST, block.handle, block.handleOffset, bytes);
    return new PinnedArray(this.core, type, dimensions, storage, block, 0);
  }

  /** Builds kernels before their first launch. Rejects with a CompileError. */
  async compile(...kernels: readonly Kernel[]): Promise<void> {
    this.#checkOpen();
    const builds = kernels.map((kernel) => this.core.plan(kernel).built);
    await this.core.channel.holdLoop(Promise.all(builds));
  }

  /** Resolves when everything submitted so far to any of its streams has finished. */
  async synchronize(opts?: WaitOptions): Promise<void> {
    checkWaitOptions(opts);
    const over = this.core.refuseIfOver();
    if (over !== undefined && this.state !== 'closing') throw over;
    await this.core.waitForAll(opts);
  }

  /** What is going on; no driver call, never waits. */
  inspect(): DeviceSnapshot {
    const isOpen = this.state === 'open' || this.state === 'closing';
    const parked = new Map(isOpen ? this.core.channel.stats().parked.map((park) => [park.stream, park.reason]) : []);
    const streams = [...this.#streams.values()].map((stream) => {
      const parkedFor = parked.get(stream.timeline.slot);
      return { stream: stream.label, pending: stream.pending, ...(parkedFor === undefined ? {} : { parkedFor }) };
    });
    return { device: this.info.id, state: this.state, streams };
  }

  /** The operations$ of all its streams. */
  get operations$(): ObservableOf<Operation> {
    this.#operations ??= observe(this.core.operations);
    return this.#operations;
  }

  /** @internal */
  get hub(): Observed<Operation> {
    return this.core.operations;
  }

  /** @internal */
  get hubName(): string {
    return `device ${this.core.name}`;
  }

  /** Failures nobody awaited; without a subscriber, one process warning. */
  get errors$(): ObservableOf<MillraceError> {
    this.#errors ??= observe(this.core.errors);
    return this.#errors;
  }

  /** Refuses new work at once and resolves when the rest has finished and the device is closed. Opened twice, it is closed by the last. */
  close(): Promise<void> {
    if (this.#closing === undefined && !this.#owner.release()) return Promise.resolve();
    return this.#end(() => this.#close());
  }

  /**
   * Refuses new work, and rejects what is pending with DeviceLostError, at once; `reason` becomes its cause. Resolves when
   * the device is closed: that stops no kernel, and what was accepted runs to its end first, off this thread.
   */
  destroy(reason?: unknown): Promise<void> {
    // A close that is under way waits no longer.
    if (this.state === 'closing') this.#lose(reason);
    return this.#end(() => this.#destroy(reason));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal A stream that waits for nothing but the last writer of this memory: the writer's, unless that has gone on to something else. */
  readStream(storage: Storage): Stream {
    const writer = storage.writer && this.#streams.get(storage.writer);
    if (writer?.isOpen === true && (writer.timeline.last === storage.written || writer.isComplete)) return writer;
    // Nothing to wait for, on the device or in the queue; or the device is closed, and this refuses.
    if ((writer === undefined && this.defaultStream.isComplete) || this.state !== 'open') return this.defaultStream;
    const idle = this.#readers.find((reader) => reader.isComplete);
    if (idle !== undefined) return idle;
    if (this.#readers.length === MAX_READERS) return this.#readers[this.#readsMade++ % MAX_READERS] as Stream;
    const made = this.#makeStream(this.#readers.length === 0 ? 'readback' : `readback-${this.#readers.length + 1}`, 0, 'tracked');
    this.core.readers.add(made.timeline);
    this.#readers.push(made);
    return made;
  }

  /** @internal */
  forget(stream: Stream): void {
    this.#streams.delete(stream.timeline);
  }

  #makeStream(label: string, priority: number, ordering: Ordering): Stream {
    this.#checkOpen();
    const stream = new Stream(this, this.core.openTimeline(label, priority), priority, ordering);
    this.#streams.set(stream.timeline, stream);
    return stream;
  }

  #end(how: () => Promise<void>): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = how();
      this.#owner.ends(this.#closing);
    }
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { core } = this;
    if (core.state === 'open') {
      core.state = 'closing';
      for (const stream of this.#streams.values()) stream.stop();
      // A device that is lost meanwhile has nothing left to wait for.
      await this.synchronize().catch(() => undefined);
      if (core.lostError === undefined) core.finish();
      for (const stream of this.#streams.values()) stream.finish();
      core.operations.complete();
    }
    await core.channel.close();
  }

  async #destroy(reason: unknown): Promise<void> {
    this.#owner.release();
    this.#lose(reason);
    await this.core.channel.close();
  }

  #lose(reason: unknown): void {
    const message = `Device ${this.core.name} was destroyed.`;
    this.core.lose(new DeviceLostError('ERR_MILLRACE_LOST', message, 'closed', { device: this.core.name, cause: reason }));
  }

  #checkOpen(): void {
    const error = this.core.refuseIfOver();
    if (error !== undefined) throw error;
  }
}

describeAs(
  Device.prototype,
  ({ info, state }) => `Device ${info.id}, ${info.name} (${state})`,
  ({ info: { id, backend, name }, state }) => ({ id, backend, name, state }),
);

/** Reads that wait at the same time for different writers, each on a stream of its own; further ones share them. */
const MAX_READERS = 8;

/** What one SharedArrayBuffer can hold. */
const MAX_PINNED_BYTES = 4 * 2 ** 30;

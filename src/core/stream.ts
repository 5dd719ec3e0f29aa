// An ordered sequence of operations on a device. Every method submits its record before it returns, so nothing has to be
// awaited in order to go on; promises are only what comes back to the host.
// Thread: the one that made it.
import { MemorySpace } from '../protocol/protocol.gen.js';
import { badArgument, checkBytes, checkInteger, show } from './arguments.js';
import { DeviceArray } from './array.js';
import { ArrayFactory } from './array-factory.js';
import { type CopyOptions, isHostOf, type Place, planCopy } from './copy.js';
import { describeAs } from './describe.js';
import type { Device } from './device.js';
import type { DeviceCore } from './device-core.js';
import { DTYPES, type DType, type HostOf, type ScalarInput } from './dtype.js';
import { LimitError, type OperationKind, StateError } from './errors.js';
import { DeviceEvent } from './event.js';
import { follow, isWatched } from './follow.js';
import { iterate, type ObservedIterator } from './iterate.js';
import type { Kernel, LaunchArgs, LaunchShape, Params } from './kernel.js';
import type { KernelPlan } from './kernel-plan.js';
import { submitLaunch } from './launch.js';
import { geometry } from './launch-shape.js';
import { addObservableSymbol, Hub, type ObservableOf, observe } from './observable.js';
import { type Activity, Operation } from './operation.js';
import type { PinnedArray } from './pinned.js';
import { bits, scalarBits } from './scalar-bits.js';
import { type Ordering, Storage } from './storage.js';
import type { Timeline } from './timeline.js';
import { Readback, submitCopy, submitCopyIn, submitCopyOut } from './transfer.js';
import { checkWaitOptions, type WaitOptions } from './wait.js';

/** Bad values are an ArgumentError of `createStream`. */
export interface StreamOptions {
  /** Smaller is more urgent: 0 default, -1 high; clamped to these, or with `fullRange` to the device's `priorityRange`. */
  readonly priority?: number;
  readonly fullRange?: boolean;
  /** What messages and `inspect()` call it; default 'stream-1' and so on. */
  readonly label?: string;
  /** 'tracked': a use of an array waits for its uses on other streams. 'explicit': only for what it is told to. Default: the device's. */
  readonly ordering?: Ordering;
}

/**
 * `CUstream`, `cupy.cuda.Stream`, `wp.Stream`. Its operations start and finish in the order of the calls. Every call that submits throws
 * StateError once stream or device is closing, DeviceLostError once lost, LimitError at `maxPending`; then nothing was submitted.
 */
export class Stream extends ArrayFactory implements AsyncDisposable, AsyncIterable<Operation> {
  readonly device: Device;
  readonly label: string;
  /** As the device got it, after clamping. */
  readonly priority: number;
  readonly ordering: Ordering;
  /** @internal */
  readonly core: DeviceCore;
  /** @internal */
  readonly timeline: Timeline;
  /** @internal */
  readonly hub: Hub<Operation> = new Hub();
  readonly #activity: Hub<Activity> = new Hub();
  readonly #isTracked: boolean;
  #state: 'open' | 'closing' | 'closed' = 'open';
  #closing: Promise<void> | undefined = undefined;
  #operations: ObservableOf<Operation> | undefined = undefined;
  #activities: ObservableOf<Activity> | undefined = undefined;
  // The kernel launched last and what it is here: loops launch the same one.
  #kernel: Kernel | undefined = undefined;
  #plan: KernelPlan | undefined = undefined;

  /** @internal Made by `device.createStream`. */
  constructor(device: Device, timeline: Timeline, priority: number, ordering: Ordering) {
    super();
    this.device = device;
    this.core = device.core;
    this.timeline = timeline;
    this.label = timeline.label;
    this.priority = priority;
    this.ordering = ordering;
    this.#isTracked = ordering === 'tracked';
  }

  /** @internal */
  protected get target(): Stream {
    return this;
  }

  // ── work ──

  /**
   * Launches a kernel over `threads`, given as a number or in array order, or over a grid of blocks: `cuLaunchKernel`, CuPy's
   * `RawKernel(...)`, `wp.launch`. Throws ArgumentError for a shape or argument the kernel or device cannot take, StateError for a
   * disposed array. `done` rejects with LaunchError, BoundsError (checked kernels), UpstreamError, or what the build failed of.
   */
  launch<P extends Params>(kernel: Kernel<P>, shape: LaunchShape, args: LaunchArgs<NoInfer<P>>): Operation {
    if (this.#state !== 'open') throw this.#closedError();
    if (this.#kernel !== kernel || this.#plan === undefined) {
      this.#plan = this.core.plan(kernel);
      this.#kernel = kernel;
    }
    const plan = this.#plan;
    const ticket = submitLaunch(this.device, this.core, this.timeline, this.#isTracked, plan, shape, args);
    return this.#operation('launch', ticket, geometry.label ?? plan.name, undefined);
  }

  /**
   * Between arrays of the device, pinned arrays and ordinary typed arrays, whose bytes are taken at the call: `cuMemcpyAsync`, CuPy's
   * `set` and `get`, `wp.copy`. Flat, in elements. Throws ArgumentError for ends that differ in dtype, overlap or are too short.
   */
  copy<D extends DType>(
    dst: DeviceArray<D> | PinnedArray<D>,
    src: DeviceArray<NoInfer<D>> | PinnedArray<NoInfer<D>> | HostOf[NoInfer<D>],
    opts?: CopyOptions,
  ): Operation;
  /** Into an ordinary typed array: contents unspecified until done, which rejects with StateError if it was detached meanwhile. */
  copy<D extends DType>(dst: HostOf[NoInfer<D>], src: DeviceArray<D> | PinnedArray<D>, opts?: CopyOptions): Operation;
  copy(dst: unknown, src: unknown, opts?: CopyOptions): Operation {
    this.#checkOpen();
    const plan = planCopy(this.core, dst, src, opts);
    if (plan.byteLength === 0) return this.#operation('copy', this.#submit(this.core.encoder.nop(this.timeline.slot)), opts?.label, 0);
    const label = opts?.label;
    const { dst: to, src: from, byteLength } = plan;
    const source = from.place?.storage.lastWrite;
    if (to.bytes !== undefined) {
      // planCopy made sure that the device reaches one end.
      const landing = submitCopyOut(this, to.bytes, from.place as Place, this.#isTracked);
      return this.#operation('copy', landing.ticket, label, byteLength).moves(source, landing);
    }
    const ticket =
      from.bytes === undefined
        ? submitCopy(this, to.place, from.place, byteLength, this.#isTracked)
        : submitCopyIn(this, to.place, from.bytes, this.#isTracked);
    return this.#operation('copy', ticket, label, byteLength).moves(source, undefined);
  }

  /** Sets every element: `cuMemsetD8Async` to `cuMemsetD32Async`, `ndarray.fill`, `wp.array.fill_`. ArgumentError: `value` does not fit. */
  fill<D extends DType>(dst: DeviceArray<D>, value: ScalarInput<NoInfer<D>>): Operation {
    this.#checkOpen();
    if (!(dst instanceof DeviceArray)) throw badArgument('dst', dst, `The dst of the fill (${show(dst)}) is not a device array.`);
    if (dst.isDisposed) throw dst.disposedError();
    if (dst.device !== this.device) {
      throw badArgument(
        'dst',
        dst,
        `The dst of the fill is an array of device ${dst.device.core.name}; the stream is one of ${this.core.name}.`,
      );
    }
    scalarBits(dst.dtype, value, 'value');
    const { low, high } = bits;
    const { storage, length, byteOffset, byteLength } = dst;
    const { encoder } = this.core;
    const { slot } = this.timeline;
    if (length === 0) return this.#operation('fill', this.#submit(encoder.nop(slot)), undefined, 0);
    if (storage.isForeign(this.timeline)) this.core.orderUse(this.timeline, storage, true, this.#isTracked);
    const { byteSize } = DTYPES[dst.dtype];
    const ticket = this.#submit(encoder.fill(slot, storage.handle, byteSize, storage.base + byteOffset, length, low, high));
    storage.use(this.timeline, ticket, true, this.#isTracked);
    return this.#operation('fill', ticket, undefined, byteLength);
  }

  // ── order ──

  /** Moves an event of this device to this place, or makes one, at no cost to the device: `cuEventRecord`, `record`, `record_event`. */
  record(event?: DeviceEvent): DeviceEvent {
    this.#checkOpen();
    if (event !== undefined && !(event instanceof DeviceEvent))
      throw badArgument('event', event, `The event (${show(event)}) is not an event of a device.`);
    if (event !== undefined && event.device !== this.device) {
      throw badArgument('event', event, `The event is one of device ${event.device.core.name}; the stream is one of ${this.core.name}.`);
    }
    const recorded = event ?? new DeviceEvent(this.device, this.core);
    recorded.moveTo({ timeline: this.timeline, ticket: this.timeline.last });
    return recorded;
  }

  /**
   * Later work of this stream comes after the event's present point, on any device: `cuStreamWaitEvent`, `wait_event`. Never recorded:
   * at once. Neither the host waits nor do failures pass on. Throws StateError for a disposed event.
   */
  waitEvent(event: DeviceEvent): Operation {
    this.#checkOpen();
    if (!(event instanceof DeviceEvent)) throw badArgument('event', event, `The event (${show(event)}) is not an event of a device.`);
    const { point } = event;
    return this.#waitFor(point?.timeline, point?.ticket ?? 0);
  }

  /** Later work of this stream comes after everything submitted to the other so far, on any device: `wp.Stream.wait_stream`. */
  waitStream(other: Stream): Operation {
    this.#checkOpen();
    if (!(other instanceof Stream)) throw badArgument('other', other, `The stream to wait for (${show(other)}) is not a stream.`);
    return this.#waitFor(other.timeline, other.timeline.last);
  }

  // ── progress ──

  /** Has everything submitted finished? One atomic load, no driver call: `cuStreamQuery`, `cupy.cuda.Stream.done`, `is_complete`. */
  get isComplete(): boolean {
    return this.timeline.isComplete;
  }

  /** Operations submitted and not finished. */
  get pending(): number {
    return this.timeline.pending;
  }

  /**
   * Resolves when everything submitted so far has finished: `cuStreamSynchronize`. Failures belong to their operations and do not
   * reject it; AbortError, WaitTimeoutError, DeviceLostError and, after `close`, StateError do.
   */
  async synchronize(opts?: WaitOptions): Promise<void> {
    checkWaitOptions(opts);
    if (this.#state === 'closed') throw this.#closedError();
    await this.core.wait(this.timeline, this.timeline.last, undefined, opts);
  }

  /**
   * Resolves when fewer than `below` (default: half of `maxPending`) of the operations submitted so far are pending: the brake of a
   * loop that submits. Rejects as `synchronize` does.
   */
  async ready(opts: WaitOptions & { readonly below?: number } = {}): Promise<void> {
    const below = opts.below === undefined ? this.core.channel.maxPending >> 1 : checkInteger('below', opts.below, 1);
    checkWaitOptions(opts);
    if (this.#state === 'closed') throw this.#closedError();
    if (this.timeline.pending >= below) await this.core.wait(this.timeline, this.timeline.last - below + 1, undefined, opts);
  }

  /** Hot and shared: one per finished or failed operation, in order. A late subscriber misses the past; errors only when the device is lost. */
  get operations$(): ObservableOf<Operation> {
    this.#operations ??= observe(this.hub);
    return this.#operations;
  }

  /** Every phase of every operation, for tools; costs nothing unsubscribed. */
  get activity$(): ObservableOf<Activity> {
    this.#activities ??= observe(this.#activity);
    return this.#activities;
  }

  /** @internal */
  get hubName(): string {
    return `stream ${this.label} of device ${this.core.name}`;
  }

  /** Finished operations from now on; a reader that falls behind by 1024 loses the oldest and is warned. */
  [Symbol.asyncIterator](): ObservedIterator<Operation> {
    return iterate(this.hub, this.hubName);
  }

  ['@@observable'](): ObservableOf<Operation> {
    return this.operations$;
  }

  /** Refuses new work at once and resolves when the rest has finished: `cuStreamDestroy`. Of the default stream: StateError. */
  close(): Promise<void> {
    if (this === this.device.defaultStream && this.device.state === 'open') {
      return Promise.reject(
        new StateError('ERR_MILLRACE_STATE', `The default stream of device ${this.core.name} is closed with its device.`),
      );
    }
    // What the other streams leave behind is freed on the default stream until the device is closed.
    if (this === this.device.defaultStream && this.device.state === 'closing') return this.device.close();
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // ── for the rest of core ──

  /** @internal */
  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** @internal The device refuses work from now on. */
  stop(): void {
    if (this.#state === 'open') this.#state = 'closing';
  }

  /** @internal The device's end is this stream's. */
  finish(error?: Error): void {
    this.#state = 'closed';
    for (const hub of [this.hub, this.#activity]) {
      if (error === undefined) hub.complete();
      else hub.error(error);
    }
  }

  /** @internal */
  allocate<D extends DType>(shape: readonly number[], dtype: D): DeviceArray<D> {
    this.#checkOpen();
    const { core, timeline } = this;
    const bytes = checkBytes(shape, dtype, core.info.totalMemoryBytes, core.name);
    const handle = core.takeMemoryHandle();
    let ticket: number;
    try {
      // An empty array has a handle too, so that it needs no case of its own.
      ticket = core.submit(timeline, core.encoder.alloc(timeline.slot, handle, Math.max(bytes, 1)));
    } catch (error) {
      core.returnMemoryHandle(handle);
      throw error;
    }
    const storage = new Storage(MemorySpace.DEVICE, handle, 0, bytes);
    storage.use(timeline, ticket, true, true);
    if (isWatched(this, this.#activity)) this.#operation('alloc', ticket, undefined, bytes);
    return new DeviceArray(this.device, dtype, shape, storage, 0);
  }

  /** @internal Waits for the array's last writer, whatever this stream's ordering. */
  async readBack<D extends DType>(array: DeviceArray<D>, into: HostOf[D] | undefined, opts: WaitOptions | undefined): Promise<HostOf[D]> {
    checkWaitOptions(opts);
    if (into !== undefined && !isHostOf(into, array.dtype)) {
      throw badArgument('into', into, `The array to read into (${show(into)}) cannot hold ${array.dtype}.`, array.dtype);
    }
    if (into !== undefined && into.length !== array.length) {
      throw badArgument('into', into, `The array to read into has ${into.length} elements; the array has ${array.length}.`, array.length);
    }
    this.#checkOpen();
    const { byteLength, storage } = array;
    const source = storage.lastWrite;
    const readback = new Readback(this, { storage, offset: storage.base + array.byteOffset }, byteLength);
    const operation = this.#operation('copy', readback.ticket, undefined, byteLength).moves(source, undefined);
    if (into === undefined) {
      const bytes = await readback.take(operation, opts, undefined);
      return new DTYPES[array.dtype].make(bytes.buffer) as HostOf[D];
    }
    await readback.take(operation, opts, new Uint8Array(into.buffer, into.byteOffset, byteLength));
    return into;
  }

  // ── inside ──

  async #close(): Promise<void> {
    this.#state = 'closing';
    const { core, timeline } = this;
    try {
      await core.wait(timeline, timeline.last);
      await core.wait(timeline, await this.#destroy());
    } catch (error) {
      // A device that is lost or closed took its streams along.
      if (core.state === 'open') throw error;
    }
    // What a lost device left unfinished stays so.
    if (core.lostError === undefined) core.closeTimeline(timeline);
    this.device.forget(this);
    this.finish();
  }

  async #destroy(): Promise<number> {
    for (;;) {
      try {
        const ticket = this.core.submit(this.timeline, this.core.encoder.streamDestroy(this.timeline.slot));
        this.timeline.end();
        return ticket;
      } catch (error) {
        if (!(error instanceof LimitError)) throw error;
        await error.retryAfter;
      }
    }
  }

  #submit(bytes: number): number {
    return this.core.submit(this.timeline, bytes);
  }

  #waitFor(other: Timeline | undefined, ticket: number): Operation {
    const isNeeded = other !== undefined && this.core.order(this.timeline, other, ticket);
    const operation = this.#operation('wait', this.timeline.last, undefined, undefined);
    if (!isNeeded) operation.failsOfNothing();
    return operation;
  }

  #operation(kind: OperationKind, ticket: number, label: string | undefined, bytes: number | undefined): Operation {
    const operation = new Operation(this, kind, ticket, label, bytes);
    if (isWatched(this, this.#activity)) follow(this, this.#activity, operation, ticket);
    return operation;
  }

  #checkOpen(): void {
    if (this.#state !== 'open') throw this.#closedError();
  }

  #closedError(): Error {
    const { lostError } = this.core;
    if (lostError !== undefined && lostError.reason !== 'closed') return lostError;
    const what = this.device.state === 'open' ? `Stream ${this.label} of device` : 'Device';
    return new StateError('ERR_MILLRACE_STATE', `${what} ${this.core.name} is closed.`, { device: this.core.name, stream: this.label });
  }
}

addObservableSymbol(Stream.prototype);
describeAs(
  Stream.prototype,
  ({ label, device, pending }) => `Stream ${label} of ${device.info.id} (${pending} pending)`,
  ({ label, device, priority, ordering, pending }) => ({ label, device: device.info.id, priority, ordering, pending }),
);

// More than 400 lines: all of one class.
// A stream of a device: its progress, its observers and its end. recorder.ts has the methods that submit operations.
// Thread: the one that made it.
import { badArgument, checkInteger, refuseSurplus, show } from '../base/arguments.js';
import { describeAs } from '../base/describe.js';
import { type CaptureReason, DeviceLostError, LimitError, StateError } from '../base/errors.js';
import type { ObservedIterator } from '../base/observed-iterator.js';
import { addObservableSymbol, type Hub, type ObservableOf } from '../base/observable.js';
import { foreignWork, submitted } from '../device/synchronize-devices.js';
import { OperationTimer } from '../events/operation-timer.js';
import { Observation } from '../operations/observation.js';
import { OperationReports } from '../operations/operation-events.js';
import { iterate } from '../operations/operation-iterator.js';
import type { Activity, Operation } from '../operations/operation.js';
import { checkParams, type GraphSlots } from '../graphs/slots.js';
import type { Params } from '../kernels/kernel.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { refuseDeadlock } from '../waits/deadlock-check.js';
import { noteObserved } from '../waits/host-observed.js';
import { turnOfWait } from '../base/loop-turns.js';
import { checkWaitCall, type WaitOptions } from '../waits/wait.js';
import { joinCapture } from './active-capture.js';
import { captureGraph, type CaptureOptions } from './capture.js';
import { runIn, type RunOptions } from './current-stream.js';
import type { Device } from './device.js';
import type { DeviceContext, StreamSettings } from './device-context.js';
import { DeviceEvent } from './event.js';
import type { Graph } from './graph.js';
import type { Partition } from './partition.js';
import { Recorder } from './recorder.js';
import { refuseApart, refuseWait } from '../base/apart.js';

/** The result of a synchronous function. */
type NotAsync<R> = R extends PromiseLike<unknown> ? never : R;

/**
 * A queue of operations that start and finish in the order of the calls: `CUstream`, `cupy.cuda.Stream`, `wp.Stream`. Every call that
 * submits throws StateError once the stream or device is closing, DeviceLostError once the device is lost, and LimitError at
 * `maxPending`; then nothing was submitted. Two Streams never share a CUDA stream, so they can be compared and used as Map keys.
 */
export class Stream extends Recorder implements AsyncDisposable, AsyncIterable<Operation> {
  /** The priority that the device was given; smaller is more urgent: `cuStreamGetPriority`. */
  readonly priority: number;
  /** The share of the device on which its kernels run; undefined for the whole device. */
  readonly partition: Partition | undefined;
  readonly #observation: Observation = new Observation(() => this.watch());
  readonly #reports: OperationReports = new OperationReports(this);
  #state: 'open' | 'closing' | 'closed' = 'open';
  #closing: Promise<void> | undefined = undefined;
  /** Points that the next record must come after: the device had no room for the waits. */
  #owed: readonly Point[] | undefined = undefined;

  /** @internal Made by `device.createStream`. */
  constructor(context: DeviceContext, maker: Device | undefined, timeline: Timeline, opts: StreamSettings) {
    super(context, maker, timeline, opts.ordering, opts.timing ? new OperationTimer(context.core, timeline) : undefined);
    this.priority = opts.priority;
    this.partition = opts.partition;
  }

  /** @internal */
  get observation(): Observation {
    return this.#observation;
  }

  /** Makes later work of this stream wait for everything submitted to `other` so far, on any device: `wp.Stream.wait_stream`. */
  override waitStream(other: Recorder): Operation {
    if (arguments.length > 1) refuseSurplus('waitStream', arguments, 1);
    this.checkOpen();
    if (!(other instanceof Stream)) throw badArgument('other', other, `The stream to wait for (${show(other)}) is not a stream.`);
    refuseWait(this.core, other.core, `stream ${other.label}`);
    joinCapture(this, other.timeline);
    if (other.#owed !== undefined) this.core.checkRoom(this.timeline, other.#owed.length + 1);
    for (const point of other.#owed ?? []) this.waitFor(point);
    return this.waitFor(other.timeline.here());
  }

  /**
   * Calls `fn` with this stream as the current stream of its device and with that device as the default device, also in everything that
   * `fn` awaits: `with stream:`, `wp.ScopedStream`. Unless `syncEnter` is false, this stream first waits for the previous current stream.
   * With `syncExit`, the previous stream waits for the stream that is current when the run ends (when the promise that `fn` returned has
   * settled). The host does not wait. Returns what `fn` returns. Throws ArgumentError if `fn` is not a function and StateError if the
   * stream is closed, both before it calls `fn`.
   * @example const y = stream.run(() => device.zeros(1000)); // made on `stream`
   */
  run<T>(fn: () => T, opts?: RunOptions): T {
    if (arguments.length > 2) refuseSurplus('run', arguments, 2);
    this.checkOpen();
    return runIn(this, fn, opts);
  }

  /**
   * Calls `fn` and returns a graph of the operations that `fn` submits to this stream. The operations run only when the graph is launched.
   * `cuStreamBeginCapture`, `cupy.cuda.Stream.begin_capture`, `wp.ScopedCapture`. Another stream, of any device, joins the capture when it
   * waits for a captured stream or event. `fn` must be synchronous. While it runs, this stream is the current stream of its device.
   *
   * With `params`, `fn` also gets one slot for each parameter. Pass a slot to a kernel in place of a scalar or an array; each launch gives
   * the values. Host waits, reads, and copies from or to ordinary typed arrays throw a CaptureError; if `fn` catches it, the capture
   * continues. If `fn` throws, `capture` throws the same error, and all streams and arrays are usable again at once. Throws ArgumentError
   * for bad arguments and for a function that returns a promise. Throws CaptureError for a capture inside a capture, for a capture without
   * operations and, with `strict`, for an unjoined stream.
   * @example
   * const step = stream.capture({ dt: f32 }, (s, { dt }) => s.launch(advance, x.length, { x, v, dt }));
   * for (let n = 0; n < 1000; n++) stream.launch(step, { dt: 0.01 });
   */
  capture<R>(fn: (stream: Recorder) => NotAsync<R>, opts?: CaptureOptions): Graph;
  capture<const P extends Params, R>(
    params: P,
    fn: (stream: Recorder, slots: GraphSlots<P>) => NotAsync<R>,
    opts?: CaptureOptions,
  ): Graph<P>;
  capture(
    paramsOrFn: Params | ((stream: Recorder, slots: GraphSlots<Params>) => unknown),
    fnOrOpts?: unknown,
    opts?: CaptureOptions,
  ): Graph<Params> {
    if (arguments.length > 3) refuseSurplus('capture', arguments, 3);
    this.checkOpen();
    if (typeof paramsOrFn === 'function') return captureGraph(this, {}, paramsOrFn, fnOrOpts as CaptureOptions | undefined);
    return captureGraph(this, checkParams(paramsOrFn), fnOrOpts as (stream: Recorder, slots: GraphSlots<Params>) => unknown, opts);
  }

  /**
   * The `CUstream` handle; on a CPU device, a number that no other stream has. The library does not order work that the caller submits to
   * the handle. Throws StateError until the device has created the stream.
   */
  get nativeHandle(): bigint {
    this.checkOpen();
    this.#refuseInCapture('unsupported-node', 'work submitted to its driver handle would not be captured');
    refuseApart(this.core, 'A handle of the driver');
    const handle = this.core.channel.streamHandle(this.timeline.slot);
    if (handle !== undefined) return handle;
    const [device, stream] = [this.core.name, this.label];
    const message = `Device ${device} has not created stream ${stream} yet: await an operation of the stream first.`;
    throw new StateError('ERR_MILLRACE_STATE', message, { device, stream });
  }

  // ── progress ──

  /** True when everything submitted has finished. One atomic load, no driver call: `cuStreamQuery`, `cupy.cuda.Stream.done`. */
  get isComplete(): boolean {
    this.#refuseInCapture('query', "it has no 'isComplete'");
    const isComplete = this.timeline.isComplete && !this.#owed?.some(({ timeline, ticket }) => !timeline.hasReached(ticket));
    if (isComplete) noteObserved(this.timeline.here());
    return isComplete;
  }

  /** The number of operations submitted and not finished. */
  get pending(): number {
    const { pending } = this.timeline;
    if (pending === 0) noteObserved(this.timeline.here());
    return pending;
  }

  /**
   * Resolves when everything submitted so far has finished: `cuStreamSynchronize`. A failed operation does not reject it; read the
   * operation's `done`. Rejects with AbortError, WaitTimeoutError, DeviceLostError, or StateError after `close`.
   */
  synchronize(opts?: WaitOptions): Promise<void> {
    if (arguments.length > 1) refuseSurplus('synchronize', arguments, 1);
    this.#refuseInCapture('host-wait', 'the host cannot wait for it');
    return this.#synchronize(opts);
  }

  async #synchronize(opts: WaitOptions | undefined): Promise<void> {
    checkWaitCall(opts);
    if (this.#state === 'closed') throw this.closedError();
    const points: Point[] = [this.timeline.here(), ...(this.#owed ?? [])];
    if (this.timeline.isForeign) points.push(await submitted(() => foreignWork(this.core, this.timeline)));
    await Promise.all(points.map(({ timeline, ticket }) => this.core.waits.until(timeline, ticket, undefined, opts)));
  }

  /**
   * Resolves when fewer than `below` (default: half of `maxPending`) of the operations submitted so far are pending. Rejects as `synchronize`.
   * @example for (const block of blocks) { await stream.ready(); stream.launch(scale, block.length, { x: block }); }
   */
  ready(opts: WaitOptions & { readonly below?: number } = {}): Promise<void> {
    if (arguments.length > 1) refuseSurplus('ready', arguments, 1);
    this.#refuseInCapture('host-wait', 'the host cannot wait for it');
    return this.#ready(opts);
  }

  async #ready(opts: WaitOptions & { readonly below?: number }): Promise<void> {
    checkWaitCall(opts, 'below');
    const below = opts.below === undefined ? this.core.channel.maxPending >> 1 : checkInteger('below', opts.below, 1);
    if (this.#state === 'closed') throw this.closedError();
    const { last, pending } = this.timeline;
    if (pending >= below) await this.core.waits.until(this.timeline, last - below + 1, undefined, opts);
    else {
      const turn = turnOfWait();
      if (turn !== undefined) await turn;
      noteObserved(this.timeline.at(last - below + 1));
    }
  }

  /**
   * Emits every operation that finishes or fails after the subscription, in order, including operations that were pending at the
   * subscription. A slow subscriber loses nothing: its `next` is called in a turn of the event loop after the end of the operation,
   * for at most 64 operations in one turn. `status` and `error` of an operation tell how it ended. Its `id` is that of the Operation that the call returned; the object
   * may be another one if the operation was submitted without a subscriber.
   *
   * Hot and shared, without replay. Completes when the stream is closed, after the last operation; errors only with the DeviceLostError.
   * A subscription keeps the process alive while operations are pending.
   */
  get operations$(): ObservableOf<Operation> {
    return this.observation.operations$;
  }

  /**
   * Emits every phase of every operation after the subscription, for tools. A slow subscriber loses nothing. The phase 'submitted' is
   * missing for operations that were pending at the subscription. Costs nothing without a subscriber.
   */
  get activity$(): ObservableOf<Activity> {
    return this.observation.activity$;
  }

  /** @internal */
  get hub(): Hub<Operation> {
    return this.observation.operations;
  }

  /** @internal */
  get hubName(): string {
    return `stream ${this.label} of device ${this.core.name}`;
  }

  /**
   * Iterates over what `operations$` emits, from the call until the stream is closed. The iterator keeps the newest 1024 unread operations;
   * it drops older ones, counts them in `dropped`, and emits one process warning. `operationsOf` has other policies. A waiting reader keeps
   * the process alive while operations are pending.
   */
  [Symbol.asyncIterator](): ObservedIterator<Operation> {
    return iterate(this.hub, this.hubName);
  }

  ['@@observable'](): ObservableOf<Operation> {
    return this.operations$;
  }

  /**
   * Refuses new work at once and resolves when the pending work has finished: `cuStreamDestroy`. Rejects with StateError, and leaves the
   * stream open, for the default stream of an open device and inside a `hold` that it would have to wait for.
   */
  close(): Promise<void> {
    if (arguments.length > 0) refuseSurplus('close', arguments, 0);
    this.#refuseInCapture('host-wait', 'it cannot be closed');
    const { context, core } = this;
    if (this === context.defaultStream && core.state === 'open') {
      return Promise.reject(
        new StateError('ERR_MILLRACE_STATE', `The default stream of device ${core.name} cannot be closed: close the device.`),
      );
    }
    // Frees of the other streams' arrays need the default stream until the device is closed.
    if (this === context.defaultStream && core.state === 'closing') return context.end();
    const refused = this.refuseWait();
    if (refused !== undefined) return Promise.reject(refused);
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

  /** @internal */
  protected override join(event: unknown): void {
    if (event instanceof DeviceEvent) joinCapture(this, event.point?.timeline);
  }

  #refuseInCapture(reason: CaptureReason, what: string): void {
    const { timeline } = this;
    if (timeline.recording !== undefined) throw timeline.recording.refusal(timeline, reason, what);
  }

  /** @internal The error for a wait for this stream from a function that the stream waits for; undefined if there is none. */
  refuseWait(): StateError | undefined {
    return refuseDeadlock(this.timeline, this.timeline.last);
  }

  /** @internal The Operation of a `read` that was submitted. */
  readBack(ticket: number, byteLength: number): Operation {
    return this.operation('copy', ticket, undefined, byteLength);
  }

  /** @internal The device is closing: the stream refuses work from now on. */
  stop(): void {
    if (this.#state === 'open') this.#state = 'closing';
    this.core.tracker.interrupt();
  }

  /** @internal Resolves when the observers were told of all finished operations. To be called after these have finished. */
  allReported(): Promise<void> {
    return this.#reports.allReported();
  }

  /** @internal An observer of the stream or of its device came or went. */
  watch(): void {
    this.#reports.update();
  }

  /** @internal The device is closed or lost, and with it the stream. */
  finish(error?: DeviceLostError): Promise<void> | undefined {
    this.#state = 'closed';
    this.core.tracker.interrupt();
    return this.#reports.end(error);
  }

  /** @internal */
  protected override get isWatched(): boolean {
    return this.timeline.recording === undefined && this.#reports.isWatched;
  }

  /** @internal */
  protected override tell(operation: Operation, ticket: number): void {
    this.#reports.follow(operation, ticket);
  }

  /** @internal */
  override checkOpen(): void {
    if (this.#state !== 'open') throw this.closedError();
    if (this.timer !== undefined) this.timer.clear();
    if (this.#owed !== undefined && this.timeline.recording === undefined) this.#pay(this.#owed);
  }

  /** @internal As `waitStream`, at the end of a run. It never throws for want of room: the next record submits the wait first. */
  comeAfter(other: Stream): void {
    if (other === this || !this.isOpen || other.timeline.isEnding) return;
    try {
      this.waitStream(other);
    } catch (error) {
      if (error instanceof LimitError) this.#owed = [...(this.#owed ?? []), ...(other.#owed ?? []), other.timeline.here()];
      // On a closed or lost device nothing is left to order.
      else if (!(error instanceof DeviceLostError || error instanceof StateError)) throw error;
    }
  }

  #pay(owed: readonly Point[]): void {
    this.core.checkRoom(this.timeline, owed.length);
    for (const point of owed) this.waitFor(point);
    this.#owed = undefined;
  }

  /** @internal */
  protected closedError(): Error {
    if (this.core.lostError !== undefined) return this.core.lostError;
    const what = this.core.state === 'open' ? `Stream ${this.label} of device` : 'Device';
    return new StateError('ERR_MILLRACE_STATE', `${what} ${this.core.name} is closed.`, { device: this.core.name, stream: this.label });
  }

  // ── inside ──

  async #close(): Promise<void> {
    this.#state = 'closing';
    this.core.tracker.interrupt();
    const { core, timeline } = this;
    this.timer?.clear();
    try {
      await core.waits.until(timeline, timeline.last);
      await core.waits.reach(timeline, await this.#destroy(), []);
    } catch (error) {
      // On a lost or closed device the stream has ended with it.
      if (core.state === 'open') {
        this.#state = 'open';
        this.#closing = undefined;
        throw error;
      }
    }
    await this.allReported();
    // The timeline of a lost device keeps its unfinished records.
    if (core.lostError === undefined) core.closeTimeline(timeline);
    this.context.forget(this);
    void this.finish();
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
}

addObservableSymbol(Stream.prototype);
describeAs(
  Stream.prototype,
  ({ label, device, pending }) => `Stream ${label} of ${device.info.id} (${pending} pending)`,
  ({ label, device, priority, ordering, pending }) => ({ label, device: device.info.id, priority, ordering, pending }),
);

// More than 400 lines: one class, half of which is its documentation.
// The methods that submit operations, which Stream inherits. Each submits its record before it returns, so the caller needs to await nothing
// before the next call. Promises only report to the host.
// Thread: the one that made it.
import { AllocKind } from '../../protocol/protocol.gen.js';
import { badArgument, refuseSurplus, show, surplusArgument } from '../base/arguments.js';
import { nextSerial } from '../base/serial.js';
import type { OperationKind } from '../base/snapshots.js';
import { isTraced, launchTrace } from '../base/trace.js';
import { STREAM_STAYS } from '../base/uncloneable.js';
import type { DeviceCore } from '../device/device-core.js';
import type { GraphCore } from '../graphs/graph-core.js';
import type { Ordering } from '../device/stream-context.js';
import type { DType } from '../elements/dtype.js';
import { checkBytes } from '../elements/shape.js';
import type { EventOptions } from '../events/event-options.js';
import type { OperationTimer } from '../events/operation-timer.js';
import type { KernelPlan } from '../kernels/kernel-plan.js';
import type { CudaParams, Kernel, LaunchShape, Params } from '../kernels/kernel.js';
import { allocate, allocateCaptured } from '../memory/allocation.js';
import type { RawStream } from '../operations/external-function.js';
import { type HoldOptions, submitHold } from '../operations/hold-function.js';
import { checkHostCall, type HostOptions, type HostResult, submitHost } from '../operations/host-function.js';
import { LaunchCalls } from '../operations/launch-calls.js';
import { Operation } from '../operations/operation.js';
import { traceOperation } from '../operations/traced-operation.js';
import { takeId } from '../timeline/operation-log.js';
import type { Point, StreamRecording, Timeline } from '../timeline/timeline.js';
import { DeviceArray } from './array.js';
import { CopyRecorder } from './copy-recorder.js';
import {
  type BodyOf,
  type CaptureBody,
  captureCondition,
  type ConditionCall,
  ifCall,
  switchCall,
  type SyncBody,
  whileCall,
} from './condition.js';
import type { Device } from './device.js';
import type { DeviceContext } from './device-context.js';
import { type DeviceEvent, recordEvent, submitWaitEvent } from './event.js';
import { type ExternalArrays, type ExternalOptions, submitExternal } from './external.js';
import { Graph, type GraphValues } from './graph.js';
import type { LaunchArgs } from './launch-args.js';
import { submitGraphLaunch, submitGraphUpload } from './launch-graph.js';
import { submitLaunch } from './launch.js';

/** Of a launch, for listeners: its label, the label of the graph, or the name of the kernel. Bad arguments are refused later. */
function nameOf(kernel: Kernel | Graph<Params>, shape: unknown): string | undefined {
  if (kernel instanceof Graph) return kernel.label;
  const label = typeof shape === 'object' && shape !== null && 'label' in shape ? shape.label : undefined;
  return typeof label === 'string' ? label : kernel?.name;
}

/** Submits operations to a stream, in the order of the calls. `Stream` says what every method throws. */
export abstract class Recorder extends CopyRecorder {
  /** @internal */
  readonly uncloneable: symbol = STREAM_STAYS;
  /** @internal */
  readonly serial: number = nextSerial();
  /** The stream's name in messages and in `device.inspect()`. */
  readonly label: string;
  /** How the stream is ordered with other streams that use the same arrays: see `StreamOptions.ordering`. */
  readonly ordering: Ordering;
  readonly #context: DeviceContext;
  readonly #core: DeviceCore;
  #timeline: Timeline;
  readonly #maker: Device | undefined;
  readonly #timer: OperationTimer | undefined;
  // The kernel that was launched last and its plan: loops launch the same kernel.
  #kernel: Kernel | undefined = undefined;
  #plan: KernelPlan | undefined = undefined;

  /** @internal */
  constructor(context: DeviceContext, maker: Device | undefined, timeline: Timeline, ordering: Ordering, timer?: OperationTimer) {
    super();
    this.#context = context;
    this.#maker = maker;
    this.#core = context.core;
    this.#timeline = timeline;
    this.label = timeline.label;
    this.ordering = ordering;
    this.#timer = timer;
    if (ordering === 'checked') this.core.tracker.keepClocks();
  }

  /** @internal */
  get context(): DeviceContext {
    return this.#context;
  }

  /** @internal */
  get core(): DeviceCore {
    return this.#core;
  }

  /** @internal Its own timeline; during a capture of the stream, one of the capture. */
  get timeline(): Timeline {
    return this.#timeline;
  }

  /** @internal */
  set timeline(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** @internal */
  get timer(): OperationTimer | undefined {
    return this.#timer;
  }

  /** @internal Code of the user made it, not the library. */
  get isOfUser(): boolean {
    return this.#maker !== undefined;
  }

  /**
   * The device that runs the operations: the Device object that made the stream or, once that object is closed, another one of the same
   * device.
   */
  get device(): Device {
    return this.context.deviceOf(this.#maker);
  }

  /** @internal */
  protected get current(): Recorder {
    return this.device.stream;
  }

  /** @internal Shows an operation to the observers of the stream. */
  protected abstract tell(operation: Operation, ticket: number): void;

  /** @internal */
  protected abstract readonly isWatched: boolean;

  /** @internal */
  protected get target(): Recorder {
    return this;
  }

  /**
   * Launches a kernel over `threads` (a number, or sizes in array order) or over a grid of blocks: `cuLaunchKernel`, CuPy's
   * `RawKernel(...)`, `wp.launch`. Throws ArgumentError for a shape or argument that the kernel or device cannot take, StateError for a
   * disposed array. `done` rejects with LaunchError, BoundsError (checked kernels), UpstreamError, or the error of the kernel's build.
   * @example stream.launch(saxpy, y.length, { a: 2, x, y });
   */
  launch<P extends CudaParams>(kernel: Kernel<P>, shape: LaunchShape, args: LaunchArgs<NoInfer<P>>): Operation;
  /**
   * Launches a graph that a stream of this device captured, with a value for each of its parameters: `cuGraphLaunch`, `wp.capture_launch`.
   * Launches of one graph run one after another, also on several streams. Throws ArgumentError for wrong or missing values and for a graph
   * of another device, StateError for a closed one. If a node fails, `done` rejects with its error, and the arrays that the graph writes
   * are poisoned; the next launch of a graph that does not read them works.
   * @example stream.launch(step, { dt: 0.01 });
   */
  launch<P extends Params>(graph: Graph<P>, ...values: GraphValues<NoInfer<P>>): Operation;
  launch(kernel: Kernel | Graph<Params>, shape?: unknown, args?: unknown, surplus?: unknown): Operation {
    if (surplus !== undefined)
      throw surplusArgument(
        'A launch',
        surplus,
        "label, grid and block are of the shape, as in { threads: 1000, block: 128, label: 'blur' }.",
      );
    if (isTraced(launchTrace) && this.timeline.recording === undefined) {
      const message = { device: this.core.name, stream: this.label, name: nameOf(kernel, shape) };
      return traceOperation(launchTrace, message, () => this.#launch(kernel, shape, args));
    }
    return this.#launch(kernel, shape, args);
  }

  #launch(kernel: Kernel | Graph<Params>, shape: unknown, args: unknown): Operation {
    this.checkOpen();
    if (kernel instanceof Graph) return this.#launchGraph(kernel, shape, args);
    if (this.#kernel !== kernel || this.#plan === undefined || this.#plan.isGivenUp) {
      this.#plan = this.core.kernelRegistry.of(kernel);
      this.#kernel = kernel;
    }
    const plan = this.#plan;
    return submitLaunch(this, plan, shape as LaunchShape, args as Readonly<Record<string, unknown>>);
  }

  /**
   * Runs one of two bodies on the device: `wp.capture_if`, CUDA's conditional nodes. The device reads the condition, an array of one i32,
   * after the earlier operations of the stream. It runs `onTrue` if the value is not 0, else `onFalse`; one of them may be undefined. A body
   * is a graph without parameters, or a function that submits operations to the stream that it gets. The function is called once, during
   * this call.
   *
   * In a capture, the call adds one node of kind 'if'. Outside of a capture, it builds a graph of this node and launches it at once; the
   * returned Operation is that launch. A body may submit launches, copies of arrays and pinned arrays, fills, graphs and conditions to its
   * stream; anything else is a CaptureError at the call. Throws ArgumentError for a condition that is not an array of one i32, and without
   * a body. `done` of the launch rejects with UnsupportedError on drivers before CUDA 12.4.
   * @example stream.captureIf(isTooHot, (s) => s.launch(cool, x.length, { x }));
   */
  captureIf<A, B>(condition: DeviceArray<'i32'>, onTrue: BodyOf<A> | undefined, onFalse?: BodyOf<B>): Operation {
    if (arguments.length > 3) refuseSurplus('captureIf', arguments, 3);
    return this.#condition(ifCall(condition, onTrue, onFalse));
  }

  /**
   * Runs a body on the device as long as the condition, an array of one i32, is not 0: `wp.capture_while`. The device reads the condition
   * before each iteration. Throws CaptureError if the body does not write the array, except on explicit streams, where another stream may
   * write it. Otherwise as `captureIf`.
   * @example
   * stream.captureWhile(goOn, (s) => {
   *   s.launch(step, x.length, { x });
   *   s.launch(measure, 1, { x, goOn });
   * });
   */
  captureWhile<B>(condition: DeviceArray<'i32'>, body: BodyOf<B>): Operation {
    if (arguments.length > 2) refuseSurplus('captureWhile', arguments, 2);
    return this.#condition(whileCall(condition, body));
  }

  /**
   * Runs one of several bodies on the device: the one whose position in `cases` is the value of `index`, an array of one i32. If there is
   * no such body, none runs. Otherwise as `captureIf`.
   * @example stream.captureSwitch(method, [(s) => s.launch(jacobi, n, args), (s) => s.launch(seidel, n, args)]);
   */
  captureSwitch<const C extends readonly CaptureBody[]>(
    index: DeviceArray<'i32'>,
    cases: C & { readonly [K in keyof C]: SyncBody<C[K]> },
  ): Operation {
    if (arguments.length > 2) refuseSurplus('captureSwitch', arguments, 2);
    return this.#condition(switchCall(index, cases));
  }

  #condition(call: ConditionCall): Operation {
    this.checkOpen();
    const { graph, ticket } = captureCondition(this, call);
    if (graph === undefined) return this.operation('graph', ticket, undefined, undefined);
    try {
      return this.#launchGraph({ core: graph, label: graph.label }, undefined, undefined);
    } finally {
      graph.close();
    }
  }

  #launchGraph({ core, label }: { readonly core: GraphCore; readonly label: string }, values: unknown, surplus: unknown): Operation {
    if (surplus !== undefined) {
      const message = `The launch of graph ${label} takes only the graph and its values, but has a third argument (${show(surplus)}).`;
      throw badArgument('args', surplus, message);
    }
    const {
      hostFunctions,
      session: { parties },
    } = core;
    const { timeline } = this;
    if (parties.size > 0) for (const party of parties) party.before(this);
    if (hostFunctions.length > 0) this.core.checkRoom(timeline, 1 + hostFunctions.length);
    const ticket = submitGraphLaunch(this, core, values);
    const operation = this.operation('graph', ticket, label, undefined);
    if (parties.size > 0) for (const party of parties) party.after(this, ticket, operation);
    if (timeline.recording !== undefined || hostFunctions.length === 0) return operation;
    const calls = new LaunchCalls(ticket, hostFunctions.length, () => operation.page?.at(ticket) !== undefined);
    operation.moves(calls);
    try {
      for (const { fn, label: name } of hostFunctions) {
        submitHost(
          this,
          fn,
          name === undefined ? undefined : { label: name },
          (at, given) => this.operation('host', at, given, undefined),
          calls,
        );
      }
    } finally {
      calls.end();
    }
    return operation;
  }

  /**
   * Records `event`, or a new event, after everything that was submitted to the stream before: `cuEventRecord`, `record`, `record_event`.
   * Only an event with timing or for other processes costs device time. Throws ArgumentError for an event of another device, StateError for
   * a disposed one.
   */
  record(event?: DeviceEvent): DeviceEvent;
  /** Creates an event and records it here. Throws as `createEvent` does. */
  record(opts: EventOptions): DeviceEvent;
  record(eventOrOptions?: DeviceEvent | EventOptions, surplus?: unknown): DeviceEvent {
    this.checkOpen();
    if (surplus !== undefined)
      throw badArgument('opts', surplus, `The record takes an event, or options for a new one; the second argument is ${show(surplus)}.`);
    const event = recordEvent(this, eventOrOptions);
    if (event.hasHandle) {
      const { ticket } = event.point as Point;
      if (this.isWatched) this.operation('record', ticket, undefined, undefined);
      else this.#nameOnly(ticket, 'record', undefined);
    }
    return event;
  }

  /**
   * Makes later work of this stream wait for the point at which the event is recorded now, on any device: `cuStreamWaitEvent`,
   * `wait_event`. An event that was never recorded delays nothing. The host does not wait. Failures before the event do not fail this
   * stream's operations. Throws StateError for a disposed event.
   * @example compute.waitEvent(upload.record());
   */
  waitEvent(event: DeviceEvent): Operation {
    if (arguments.length > 1) refuseSurplus('waitEvent', arguments, 1);
    this.checkOpen();
    this.join(event);
    return this.#waited(submitWaitEvent(this, event));
  }

  /** Makes later work of this stream wait for everything submitted to `other` so far, on any device: `wp.Stream.wait_stream`. */
  abstract waitStream(other: Recorder): Operation;

  /**
   * Calls `fn` on this thread's event loop after the earlier work of the stream; later work does not wait for `fn`: `cuLaunchHostFunc`,
   * `launch_host_func`. `done` resolves when `fn` has returned, and rejects with the error that `fn` throws; the device continues in both
   * cases. Promises of later work settle after `fn`. If `done` is not read, the error reaches `device.errors$`. `fn` is not called if the
   * device is lost, or the signal aborts, before its turn.
   *
   * As in CUDA, `fn` is an ordinary function, and no stream waits for a promise: use `hold` for that. `host` throws ArgumentError for an
   * async function; if another function returns a promise, `done` rejects with an ArgumentError.
   * @example stream.host(() => console.log('the copy has arrived'));
   */
  host<R>(fn: () => HostResult<R>, opts?: HostOptions): Operation {
    if (arguments.length > 2) refuseSurplus('host', arguments, 2);
    this.checkOpen();
    if (this.timeline.recording !== undefined) return this.#captureHost(this.timeline.recording, fn, opts);
    return submitHost(this, fn, opts, (ticket, label) => this.operation('host', ticket, label, undefined));
  }

  /**
   * Calls `fn` as `host` does, and stops the stream until the promise that `fn` returns has settled, for at most `timeoutMs` milliseconds.
   * After that, `done` rejects with a WaitTimeoutError and the stream continues. The `signal` that `fn` gets aborts at the timeout and when
   * the device is lost. Inside `fn`, a wait for this stream, or for a stream that waits for it, is a StateError at once. The library cannot
   * detect a wait for a promise that was read earlier: such a wait ends with the timeout. A stopped stream occupies no thread and no queue
   * of the device.
   * @example stream.hold(async (signal) => decode(await download(url, { signal })), { timeoutMs: 5000 });
   */
  hold(fn: (signal: AbortSignal) => void | PromiseLike<unknown>, opts: HoldOptions): Operation {
    if (arguments.length > 2) refuseSurplus('hold', arguments, 2);
    this.checkOpen();
    return submitHold(this, fn, opts, (ticket, label) => this.operation('host', ticket, label, undefined));
  }

  /**
   * Calls `fn` at this point of the stream with the handles and addresses that a foreign library needs, and continues with what follows:
   * `torch.cuda.ExternalStream`, `cupy.cuda.ExternalStream`, cuBLAS or cuFFT by hand. On CUDA, `fn` is called as soon as everything before it has
   * been submitted to `raw.stream`; the work that it submits there runs behind that, and the stream's next operation behind the work. The
   * device's context is current on this thread until `fn` returns. On a CPU device, everything before has finished, and `fn` may access the
   * addresses itself.
   *
   * `reads` and `writes` count as a launch's arguments do: for the order between streams, hazards and failures. If an array of `reads`
   * is poisoned, `fn` is not called and `done` rejects with UpstreamError. If `fn` throws or its promise rejects, `done` rejects with that error,
   * and the arrays of `writes` are poisoned. A promise stops the stream until it has settled, for at most `timeoutMs`: then `done` rejects
   * with WaitTimeoutError. As in a `hold`, a wait for this stream inside `fn` is a StateError. `fn` does not wait for host functions before
   * it.
   *
   * In a capture on a GPU, `fn` is called once, after the capture, with a stream of the driver in `cuStreamBeginCapture`: what it calls there
   * becomes a child graph, which each launch runs. It must call nothing that waits, and be synchronous. If it throws, or the driver ends the
   * capture, launches reject with a CaptureError of reason 'external'. `timeoutMs` has no effect there. On a CPU device, a capture refuses the
   * call with a CaptureError. Throws ArgumentError for bad options and for slots of a capture, StateError for a disposed array.
   * @example
   * stream.external({ reads: { a, b }, writes: { c }, label: 'gemm' }, ({ stream: handle, pointers }) => {
   *   cublasSetStream(cublas, handle);
   *   cublasSgemm(cublas, 0, 0, n, n, n, one, pointers.b, n, pointers.a, n, zero, pointers.c, n);
   * });
   */
  external<R extends ExternalArrays = Record<never, never>, W extends ExternalArrays = Record<never, never>>(
    options: ExternalOptions<R, W>,
    fn: (raw: RawStream<string & (keyof R | keyof W)>) => unknown,
  ): Operation {
    if (arguments.length > 2) refuseSurplus('external', arguments, 2);
    this.checkOpen();
    return submitExternal(this, options, fn, (ticket, label) => this.operation('external', ticket, label, undefined));
  }

  /** @internal */
  allocate<D extends DType>(shape: readonly number[], dtype: D, kind: AllocKind = AllocKind.POOL): DeviceArray<D> {
    this.checkOpen();
    const bytes = checkBytes(shape, dtype, this.core.info.totalMemoryBytes, this.core.name);
    const { recording } = this.timeline;
    if (recording !== undefined)
      return new DeviceArray(
        this.device,
        dtype,
        shape,
        allocateCaptured(this, recording, recording.outside(this.timeline), bytes, kind, kind === AllocKind.POOL),
        0,
      );
    const { storage, ticket } = allocate(this, bytes, kind);
    this.noteAlloc(ticket, bytes);
    return new DeviceArray(this.device, dtype, shape, storage, 0);
  }

  /** @internal */
  protected noteAlloc(ticket: number, bytes: number): void {
    // A hazard may name this operation.
    if (this.isWatched || this.core.tracker.areClocksKept) this.operation('alloc', ticket, undefined, bytes);
    else this.#nameOnly(ticket, 'alloc', bytes);
  }

  /** @internal The stream is about to wait for the event: it joins the capture of the event's point. */
  protected abstract join(event: unknown): void;

  #captureHost(recording: StreamRecording, fn: () => unknown, opts: HostOptions | undefined): Operation {
    const { label, signal } = checkHostCall(fn, opts);
    if (signal !== undefined)
      throw recording.refusal(this.timeline, 'unsupported-node', 'a host function of a graph takes no option signal');
    recording.addHost({ fn, label });
    return this.operation('host', this.core.submit(this.timeline, this.core.encoder.nop(this.timeline.slot)), label, undefined);
  }

  /** @internal */
  protected waitFor(point: Point): Operation {
    return this.#waited(this.core.tracker.waitFor(this.core, this.timeline, point, 'stream'));
  }

  /** @internal `graph.upload`. */
  uploadGraph({ core, label }: Pick<Graph, 'core' | 'label'>): Operation {
    this.checkOpen();
    for (const party of core.session.parties) party.checkWorks();
    return this.operation('upload-graph', submitGraphUpload(this, core), label, undefined);
  }

  /** @internal The operation of a launch that was submitted. */
  launched(ticket: number, label: string): Operation {
    return this.operation('launch', ticket, label, undefined);
  }

  /** @internal The operation that the stream's last record was submitted for. */
  protected operation(kind: OperationKind, ticket: number, label: string | undefined, bytes: number | undefined): Operation {
    const { timeline } = this;
    const id = timeline.log.name(ticket, kind, label, bytes);
    const operation = new Operation(this, kind, ticket, label, bytes, id, timeline.clockEntry.clock);
    if (timeline.recording !== undefined) {
      timeline.recording.name(timeline, kind, label);
      return operation;
    }
    // The second timestamp is a record of its own, so it is submitted only now.
    if (this.timer !== undefined) operation.timedBy(this.timer.end());
    if (this.isWatched) this.tell(operation, ticket);
    return operation;
  }

  /** Names a record without an Operation. An observer that subscribes while it is pending finds it and its failure. */
  #nameOnly(ticket: number, kind: OperationKind, bytes: number | undefined): void {
    this.timeline.log.name(ticket, kind, undefined, bytes);
    this.timeline.failurePage(ticket);
  }

  #waited(isNeeded: boolean): Operation {
    const { clockEntry, last } = this.timeline;
    if (isNeeded) return this.operation('wait', last, undefined, undefined);
    // No record was submitted; the last one belongs to another operation.
    const operation = new Operation(this, 'wait', last, undefined, undefined, takeId(), clockEntry.clock);
    operation.failsOfNothing();
    if (this.isWatched) this.tell(operation, last);
    return operation;
  }
}

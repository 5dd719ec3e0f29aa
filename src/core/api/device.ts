// One GPU, or the CPU device: what its streams, arrays and kernels belong to.
// Thread: the one that opened it.
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { badArgument, checkInteger, show } from '../base/arguments.js';
import { MAX_HOST_BYTES } from '../base/host-bytes.js';
import { describeAs } from '../base/describe.js';
import { DeviceLostError, type MillraceError, UnsupportedError } from '../base/errors.js';
import { type ObservableOf, Hub, observe } from '../base/observable.js';
import type { DeviceCore, DeviceState } from '../device/device-core.js';
import type { Ordering } from '../device/stream-context.js';
import { waitForDevices } from '../device/wait-for-devices.js';
import { DTYPES, type DType, type DTypeLike, type HostOf, checkDType } from '../elements/dtype.js';
import { checkShape, lengthOf, type Shape } from '../elements/shape.js';
import type { EventOptions } from '../events/event-options.js';
import type { Kernel } from '../kernels/kernel.js';
import { MODULE, type ModuleText } from '../kernels/module.js';
import { MemoryPool } from '../memory/pool.js';
import { Storage } from '../memory/storage.js';
import type { Operation } from '../operations/operation.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { refuseDeadlockAtEnd } from '../waits/deadlock-check.js';
import { diagnoseWait } from '../waits/wait-diagnosis.js';
import { checkWaitOptions, type WaitOptions, waitWith } from '../waits/wait.js';
import { ArrayFactory, type DTypeOf } from './array-factory.js';
import type { DeviceArray } from './array.js';
import type { CudaModule } from './cuda-module.js';
import { currentStream, setCurrent } from './current-stream.js';
import type { DeviceInfo, DeviceOwner } from './device-info.js';
import { DeviceEvent } from './event.js';
import { ForeignStreams } from './wrapped-streams.js';
import { type DeviceSnapshot, inspectDevice } from './inspect.js';
import { makeIpcArray, openIpcArray, openIpcEvent } from './interprocess.js';
import { enter, leave } from './open-devices.js';
import { PeerAccess } from './peers.js';
import { pinExisting } from './pin.js';
import { PinnedArray } from './pinned.js';
import { Readers } from './readback-streams.js';
import { checkStreamOptions, type StreamOptions } from './stream-options.js';
import { Stream } from './stream.js';

/**
 * An open device and its context: `cuDevicePrimaryCtxRetain`, `cupy.cuda.Device`, `wp.get_device`. Its array factories allocate on
 * `stream`. `await using` closes it.
 *
 * Every call that submits throws a StateError once the device is closing, and the DeviceLostError once it is lost.
 */
export class Device extends ArrayFactory implements AsyncDisposable {
  /** The device's id, name, memory and limits. */
  readonly info: DeviceInfo;
  /** Open as long as the device. Unlike CUDA's NULL stream, it synchronizes with no other stream. */
  readonly defaultStream: Stream;
  /** Resolves with the error when the device is lost; never rejects. */
  readonly lost: Promise<DeviceLostError>;
  /** Aborted with the DeviceLostError when the device is lost. */
  readonly signal: AbortSignal;
  /** @internal */
  readonly core: DeviceCore;
  /** The stream-ordered memory pool that the device's arrays come from: `cuDeviceGetDefaultMemPool`. */
  readonly pool: MemoryPool;
  /** Which other devices may access the memory of this one. */
  readonly peers: PeerAccess;
  /** @internal Operations of all its streams, when they have finished. */
  readonly hub: Hub<Operation> = new Hub();
  readonly #owner: DeviceOwner;
  readonly #streams: Map<Timeline, Stream> = new Map();
  readonly #readers: Readers = new Readers(this, (label) => this.#makeStream(label, { priority: 0, ordering: 'tracked', timing: false }));
  readonly #foreign: ForeignStreams = new ForeignStreams();
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
      this.hub.error(error);
      leave(this);
      aborter.abort(error);
    };
    this.hub.onAwaited = () => {
      for (const stream of this.#streams.values()) stream.holdLoop();
    };
    core.isChecked = owner.ordering === 'checked';
    this.defaultStream = this.#makeStream('default', { priority: 0, ordering: owner.ordering, timing: false });
    this.pool = new MemoryPool(core);
    this.peers = new PeerAccess(this);
    core.home = this.defaultStream.timeline;
    enter(this);
  }

  /** @internal */
  protected get target(): Stream {
    return this.stream;
  }

  /** 'closed' after `close` or `destroy`, 'lost' after a fault or when the device's worker ended. */
  get state(): DeviceState {
    return this.core.state;
  }

  /** The current stream, on which the array factories work: `cupy.cuda.get_current_stream()`, `wp.get_stream()`. */
  get stream(): Stream {
    return currentStream(this);
  }

  /**
   * Makes a stream of this device the current one: inside `stream.run` until that run ends, outside for the thread. With `sync` (default
   * false) it first waits for the previous current stream, on the device. `wp.set_stream`, CuPy's `stream.use()`. Throws ArgumentError
   * for a stream of another device, StateError for a closed one. A stream that is closed later stays current, and work submitted to it
   * throws.
   */
  setCurrentStream(stream: Stream, opts: { readonly sync?: boolean } = {}): void {
    this.#checkOpen();
    if (!(stream instanceof Stream)) throw badArgument('stream', stream, `The stream (${show(stream)}) is not a stream.`);
    setCurrent(this, stream, opts.sync === true);
  }

  /**
   * Creates a stream: `cuStreamCreateWithPriority`, `cupy.cuda.Stream`, `wp.Stream`. Throws ArgumentError for a bad option, and
   * LimitError when the device has as many streams as it can (`retryAfter` resolves when one was closed) or holds `maxPending`
   * operations.
   */
  createStream(opts: StreamOptions = {}): Stream {
    const checked = checkStreamOptions(opts, this.#owner.ordering, this.info.priorityRange);
    return this.#makeStream(opts.label ?? `stream-${++this.#made}`, checked);
  }

  /**
   * Wraps a CUDA stream that other code of this process created: `cupy.cuda.Stream.from_external`, `wp.Stream(cuda_stream=)`. Millrace
   * never destroys it: keep it alive until the wrapper is closed, or pass an `owner`, which the wrapper references. 0n is the driver's
   * default stream. The handle of a stream that this device already has gives that Stream. Throws UnsupportedError on a CPU device.
   */
  wrapStream(handle: bigint, opts: { readonly owner?: object; readonly label?: string } = {}): Stream {
    this.#checkOpen();
    if (typeof handle !== 'bigint' || handle < 0n || handle >= 2n ** 64n) {
      throw badArgument('handle', handle, `The handle of the stream (${show(handle)}) is not a 64-bit address.`);
    }
    if (this.info.backend !== 'cuda') {
      throw new UnsupportedError(
        'ERR_MILLRACE_UNSUPPORTED',
        `Device ${this.core.name} cannot wrap streams: only CUDA devices have driver streams.`,
        'wrapStream',
        {
          device: this.core.name,
        },
      );
    }
    return this.#wrapped(handle, opts);
  }

  /**
   * Creates an event: `cuEventCreate`, `cupy.cuda.Event()`, `wp.Event`. It counts as complete until it is recorded. Throws ArgumentError
   * for `timing` together with `interprocess`, UnsupportedError for `interprocess` on a CPU device.
   */
  createEvent(opts?: EventOptions): DeviceEvent {
    this.#checkOpen();
    return new DeviceEvent(this, this.core, opts);
  }

  /** Opens another process's event: `cuIpcOpenEventHandle`. Rejects with UnsupportedError on a CPU device, UnavailableError if refused. */
  async openIpcEvent(handle: Uint8Array): Promise<DeviceEvent> {
    this.#checkOpen();
    return openIpcEvent(this, handle);
  }

  /** Allocates undefined memory that other processes can open: `cuMemAlloc`. Throws UnsupportedError on a CPU device. */
  interprocess<D extends DType>(shape: Shape, dtype: DTypeLike<D>): DeviceArray<D> {
    this.#checkOpen();
    return makeIpcArray(this, checkShape(shape), checkDType(dtype));
  }

  /** Opens another process's array with its shape and dtype there: `cuIpcOpenMemHandle`. Rejects as `openIpcEvent` does. */
  async openIpcArray<D extends DType>(handle: Uint8Array, shape: Shape, dtype: DTypeLike<D>): Promise<DeviceArray<D>> {
    this.#checkOpen();
    return openIpcArray(this, handle, checkShape(shape), checkDType(dtype));
  }

  /**
   * Allocates page-locked host memory, f32 unless `dtype` is given, contents undefined: `cuMemHostRegister`,
   * `cupy.cuda.alloc_pinned_memory`, `wp.empty(pinned=True)`. Its first use waits, on the device, until the pages are locked. Throws
   * ArgumentError for a bad shape or dtype and for more bytes than a typed array can have (`buffer.constants.MAX_LENGTH`),
   * OutOfMemoryError if there is no room.
   */
  pinned(shape: Shape): PinnedArray<'f32'>;
  pinned<D extends DType>(shape: Shape, dtype: DTypeLike<D>): PinnedArray<D>;
  pinned<D extends DType>(shape: Shape, dtype?: DTypeLike<D>): PinnedArray<D> {
    this.#checkOpen();
    const dimensions = checkShape(shape);
    const type = checkDType(dtype);
    const bytes = checkInteger('size of the pinned array in bytes', lengthOf(dimensions) * DTYPES[type].byteSize, 0, MAX_HOST_BYTES);
    const block = this.core.arena.takePinned(bytes);
    const storage = new Storage(MemorySpace.HOST, block.handle, block.handleOffset, bytes, this.core);
    return new PinnedArray(this.core, type, dimensions, storage, block, 0);
  }

  /**
   * Page-locks existing memory, a typed array over a SharedArrayBuffer: `cuMemHostRegister`. The result's `data` is that very array.
   * Disposing the result unlocks the memory after every operation that uses it, and keeps the contents. Copies wait, on the device, until
   * the pages are locked. Throws ArgumentError for any other `data`.
   */
  pin<H extends HostOf<SharedArrayBuffer>[DType]>(data: H): PinnedArray<DTypeOf<H>> {
    this.#checkOpen();
    return pinExisting(this.core, data) as PinnedArray<DTypeOf<H>>;
  }

  /**
   * Builds kernels and modules before their first launch, or loads them from the disk cache: `nvrtcCompileProgram`, `wp.load_module`.
   * Rejects with CompileError where the source does not compile, UnavailableError where there is no compiler, ArgumentError for a value
   * that is not a kernel.
   */
  async compile(...kernels: readonly (Kernel | CudaModule)[]): Promise<void> {
    this.#checkOpen();
    const { kernelRegistry } = this.core;
    const builds = kernels.map((kernel) => {
      const text = textOf(kernel);
      return text === undefined ? kernelRegistry.of(kernel as Kernel).built : kernelRegistry.module(text).loaded;
    });
    await this.core.channel.holdLoop(Promise.all(builds));
  }

  /**
   * Resolves when everything submitted so far to any of its streams has finished: `cuCtxSynchronize`,
   * `cupy.cuda.Device.synchronize`, `wp.synchronize_device`. Failures belong to their operations and do not reject it. Rejects with
   * AbortError, WaitTimeoutError or DeviceLostError, and with StateError when the device is closed.
   */
  async synchronize(opts?: WaitOptions): Promise<void> {
    checkWaitOptions(opts);
    const over = this.core.refuseIfOver();
    if (over !== undefined && this.state !== 'closing') throw over;
    await waitForDevices([this.core], opts);
  }

  /** What each stream has pending and waits for, as plain data. Makes no driver call and never waits. */
  inspect(): DeviceSnapshot {
    return inspectDevice(this, this.#streams.keys());
  }

  /** The `operations$` of all its streams, hot and shared. Completes after everything submitted before `close` was told. */
  get operations$(): ObservableOf<Operation> {
    this.#operations ??= observe(this.hub);
    return this.#operations;
  }

  /** @internal */
  get hubName(): string {
    return `device ${this.core.name}`;
  }

  /** Failures of operations whose `done` nobody read, once each. Without a subscriber they cause one process warning. Never errors. */
  get errors$(): ObservableOf<MillraceError> {
    this.#errors ??= observe(this.core.errors);
    return this.#errors;
  }

  /**
   * Refuses new work at once, and resolves when the pending work has finished and the device is closed: `cuDevicePrimaryCtxRelease`. A
   * device that was opened twice closes with the last `close`. A lost device does not reject it. Inside a `hold` of one of its streams it
   * rejects with StateError.
   *
   * It waits as long as the work takes. `opts` limits the wait only, which then rejects with AbortError, or with a WaitTimeoutError that
   * says what runs. The device goes on closing: `close` again waits again, and `destroy` ends it.
   */
  close(opts?: WaitOptions): Promise<void> {
    const refused = refuseDeadlockAtEnd(this.core.timelines) ?? this.core.peerUsers.refuse();
    if (refused !== undefined) return Promise.reject(refused);
    let limits: WaitOptions;
    try {
      limits = checkWaitOptions(opts);
    } catch (error) {
      return Promise.reject(error);
    }
    if (this.#closing === undefined && !this.#owner.release()) return Promise.resolve();
    if (this.#closing === undefined) {
      this.#closing = this.#close();
      this.#owner.ends(this.#closing);
    }
    if (limits.signal === undefined && limits.timeoutMs === undefined) return this.#closing;
    return waitWith(this.#closing, limits, `device ${this.core.name} to close`, [], () => diagnoseWait(this.#ends()));
  }

  /**
   * Refuses new work and rejects pending work with DeviceLostError, at once; `reason` becomes its cause. Work that has not begun is
   * dropped. A running kernel stops before its next block on a CPU device; a GPU completes what the driver was given. Resolves when
   * nothing runs any more.
   *
   * After 5 s a kernel that still runs is taken for one that never ends: `destroy` rejects with a DeviceLostError, reason 'hung', that
   * names it, and leaves it its thread and memory. A CPU device then opens afresh; a GPU runs the kernel until the process ends.
   */
  destroy(reason?: unknown): Promise<void> {
    // A close that is under way waits no longer.
    if (this.state === 'closing') this.#lose(reason);
    this.#closing ??= this.#destroy(reason);
    this.#owner.letsGo();
    return this.#closing;
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal For a `read` of these bytes. */
  readStream(storage: Storage, start: number, end: number): Stream {
    return this.#readers.take(storage.lastWrites(start, end), (timeline) => this.#streams.get(timeline));
  }

  /** @internal */
  forget(stream: Stream): void {
    this.#streams.delete(stream.timeline);
    this.#foreign.forget(stream);
  }

  #makeStream(
    label: string,
    opts: { readonly priority: number; readonly ordering: Ordering; readonly timing: boolean; readonly foreign?: bigint },
  ): Stream {
    this.#checkOpen();
    const stream = new Stream(this, this.core.openTimeline(label, opts.priority, opts.foreign), opts);
    this.#streams.set(stream.timeline, stream);
    return stream;
  }

  /** Where its streams are over. */
  #ends(): Point[] {
    return Array.from(this.core.timelines, (timeline) => timeline.here());
  }

  #wrapped(handle: bigint, { owner, label }: { readonly owner?: object; readonly label?: string }): Stream {
    const known = this.#foreign.find(handle, owner);
    if (known !== undefined) return known;
    for (const stream of this.#streams.values())
      if (stream.isOpen && this.core.channel.streamHandle(stream.timeline.slot) === handle) return stream;
    const { ordering } = this.#owner;
    const stream = this.#makeStream(label ?? `foreign-${++this.#made}`, { priority: 0, ordering, timing: false, foreign: handle });
    this.#foreign.add(handle, stream, owner);
    return stream;
  }

  async #close(): Promise<void> {
    const { core } = this;
    if (core.state === 'open') {
      core.state = 'closing';
      for (const stream of this.#streams.values()) stream.stop();
      // A device that is lost meanwhile has nothing left to wait for.
      await this.synchronize().catch(() => undefined);
      await core.peerUsers.left();
      await Promise.all(Array.from(this.#streams.values(), (stream) => stream.told()));
      if (core.lostError === undefined) core.finish();
      for (const stream of this.#streams.values()) stream.finish();
      leave(this);
      this.hub.complete();
    }
    if (core.lostError === undefined) await core.channel.close();
    else await this.#abandon(core.lostError);
  }

  async #destroy(reason: unknown): Promise<void> {
    this.#lose(reason);
    // Lost, it is let go by all who opened it: opened again, it is another one.
    this.#owner.release();
    await this.#abandon(undefined);
  }

  /** Lost: whatever runs. `lost` tells of what has happened to it, which is told once. */
  async #abandon(lost: DeviceLostError | undefined): Promise<void> {
    const still = await this.core.channel.destroy();
    if (still !== undefined && (lost === undefined || lost.reason === 'closed')) throw this.core.hang(still);
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

/** Of a module, of whichever install. */
function textOf(kernel: Kernel | CudaModule): ModuleText | undefined {
  return typeof kernel === 'object' && kernel !== null && MODULE in kernel ? kernel[MODULE] : undefined;
}

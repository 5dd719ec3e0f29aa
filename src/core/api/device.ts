// One GPU, or the CPU device, as one `openDevice` call returns it. device-context.ts has what several Devices of one device share.
// More than 400 lines: one class, half of which is its documentation.
// Thread: the one that opened it.
import { AllocKind, MemorySpace } from '../../protocol/protocol.gen.js';
import { badArgument, checkInteger, refuseSurplus, show } from '../base/arguments.js';
import { MAX_HOST_BYTES } from '../base/host-bytes.js';
import { type DeviceToken, deviceToken } from '../base/device-token.js';
import { describeAs } from '../base/describe.js';
import { type DeviceLostError, type MillraceError, StateError } from '../base/errors.js';
import { type Hub, type ObservableOf, observe } from '../base/observable.js';
import { DEVICE_STAYS } from '../base/uncloneable.js';
import type { DeviceCore, DeviceState } from '../device/device-core.js';
import { waitForDevices } from '../device/synchronize-devices.js';
import { DTYPES, type DType, type DTypeLike, type HostArray, type HostOf } from '../elements/dtype.js';
import { checkDType } from '../elements/dtype-names.js';
import { checkShape, lengthOf, type Shape } from '../elements/shape.js';
import { checkInterprocess, type EventOptions } from '../events/event-options.js';
import type { Kernel } from '../kernels/kernel.js';
import { sourceOf } from '../kernels/module.js';
import { adopt } from '../memory/adoption.js';
import type { ArrayToken } from '../memory/array-token.js';
import { noteExportable } from '../memory/interprocess-memory.js';
import type { MemoryPool } from '../memory/memory-pool.js';
import { Storage } from '../memory/storage.js';
import type { Activity, Operation } from '../operations/operation.js';
import { checkWaitCall, type WaitOptions } from '../waits/wait.js';
import { refuseInCapture } from './active-capture.js';
import { ArrayFactory, type DTypeOf } from './array-factory.js';
import { DeviceArray } from './array.js';
import type { CudaModule } from './cuda-module.js';
import { currentStream, runOn, setCurrent } from './current-stream.js';
import type { DeviceContext } from './device-context.js';
import type { DeviceInfo } from './device-info.js';
import { DeviceEvent } from './event.js';
import { checkWrappable } from './wrapped-streams.js';
import { type DeviceSnapshot, inspectDevice, type StreamWait, waitsOf } from './inspect.js';
import { noted } from './made-arrays.js';
import { openIpcEvent, openIpcMemory } from './interprocess.js';
import { enter, onLeave } from './open-devices.js';
import type { Partition, Share } from './partition.js';
import { PeerAccess } from './peers.js';
import { pinExisting } from './pin-memory.js';
import { PinnedArray } from './pinned.js';
import { Scope, type ScopeOptions } from './scope.js';
import { checkStreamOptions, type StreamOptions } from './stream-options.js';
import { Stream } from './stream.js';
import { type DeviceTelemetry, Telemetry, TelemetryTicks } from './telemetry.js';
import type { LinearTextureOptions, TextureDType, TextureOptions } from './texture-options.js';
import type { Texture } from './texture.js';
import { refuseApart } from '../base/apart.js';

/** NVML's own values change about once a second. */
const TELEMETRY_MS = 1000;

/**
 * An open device and its context: `cuDevicePrimaryCtxRetain`, `cupy.cuda.Device`, `wp.get_device`. Its array factories allocate on
 * `stream`. `await using` closes it.
 *
 * Each `openDevice` call gives a separate Device object. The objects that one thread opened on the same device share its streams, its
 * current stream, its memory and its loss; `isSameDevice` compares them. `close` ends only the object on which it is called; closing the
 * last one closes the device.
 *
 * Every call that submits throws a StateError once the Device is closing or closed, and the DeviceLostError once the device is lost.
 */
export class Device extends ArrayFactory implements AsyncDisposable {
  /** @internal */
  readonly uncloneable: symbol = DEVICE_STAYS;
  /** The device's id, name, memory and limits. */
  readonly info: DeviceInfo;
  /** The stream that exists as long as the device is open. Unlike CUDA's NULL stream, it synchronizes with no other stream. */
  readonly defaultStream: Stream;
  readonly #context: DeviceContext;
  /** The stream-ordered memory pool that the device's arrays come from: `cuDeviceGetDefaultMemPool`. */
  readonly pool: MemoryPool;
  /** Which other devices may access the memory of this one. */
  readonly peers: PeerAccess;
  #errors: ObservableOf<MillraceError> | undefined = undefined;
  #telemetry: Telemetry | undefined = undefined;

  /** @internal Made by openDevice. `reason`: that of `info`. */
  constructor(context: DeviceContext, reason?: string) {
    super();
    this.#context = context;
    this.info = reason === undefined ? context.owner.info : { ...context.owner.info, reason };
    this.defaultStream = context.defaultStream;
    this.pool = context.pool;
    this.peers = new PeerAccess(this);
    context.join(this);
    enter(this);
  }

  /** @internal */
  get core(): DeviceCore {
    return this.#context.core;
  }

  /** @internal */
  get context(): DeviceContext {
    return this.#context;
  }

  /** @internal */
  protected get target(): Stream {
    this.#checkOpen();
    return this.stream;
  }

  /** 'closed' after `close` or `destroy`, 'lost' after a fault or when the device's worker ended. */
  get state(): DeviceState {
    const { state } = this.core;
    return this.context.has(this) || state === 'lost' ? state : 'closed';
  }

  /**
   * Whether `other` is a Device object of the same open device in this thread, which shares its streams and arrays, or the device's name:
   * `==` of two `CUcontext`, `cupy.cuda.Device.__eq__`. False for any other value.
   */
  isSameDevice(other: unknown): boolean {
    if (arguments.length > 1) refuseSurplus('isSameDevice', arguments, 1);
    if (typeof other === 'string') return other === this.info.id || `${other}:0` === this.info.id;
    return other instanceof Device && other.core === this.core;
  }

  /** The current stream, on which the array factories work: `cupy.cuda.get_current_stream()`, `wp.get_stream()`. */
  get stream(): Stream {
    return currentStream(this);
  }

  /**
   * Calls `fn` with this device as the default device, also in everything that `fn` awaits: `with cupy.cuda.Device(1):`, `wp.ScopedDevice`,
   * `torch.cuda.device`. No current stream changes. Returns what `fn` returns. Throws ArgumentError if `fn` is not a function.
   * @example const y = device.run(() => zeros(1000)); // made on this device
   */
  run<T>(fn: () => T): T {
    if (arguments.length > 1) refuseSurplus('run', arguments, 1);
    this.#checkOpen();
    return runOn(this, fn);
  }

  /**
   * Calls `fn` with a scope: the arrays that `fn` and what it awaits make are disposed when it has returned, or its promise has settled, except
   * those that it returns and those that `scope.keep` keeps: `tf.tidy`. Runs as `scope.run` does, and returns what `fn` returns. Scopes nest,
   * and functions that run at the same time have their own. If `fn` throws, all are disposed. Throws ArgumentError if `fn` is not a function.
   * @example
   * const loss = await device.scope(async () => {
   *   const y = device.from(await nextBatch());
   *   return mean(multiply(y, y)).item();
   * });
   */
  scope<T>(fn: (scope: Scope) => T, opts?: ScopeOptions): T;
  /**
   * Opens a scope, which ends with its block: `using scope = device.scope()`, `await using`, or `scope[Symbol.dispose]()`. It owns what its
   * own methods make, and what functions of `scope.run` make. Throws ArgumentError for bad options.
   */
  scope(opts?: ScopeOptions): Scope;
  scope(first?: unknown, opts?: ScopeOptions): unknown {
    if (typeof first !== 'function' && arguments.length > 1) refuseSurplus('scope', arguments, 1);
    if (arguments.length > 2) refuseSurplus('scope', arguments, 2);
    this.#checkOpen();
    if (typeof first !== 'function') return new Scope(this, first as ScopeOptions | undefined);
    return new Scope(this, opts).within(first as (scope: Scope) => unknown);
  }

  /**
   * Makes a stream of this device the current one: inside `stream.run` until that run ends, otherwise for the thread. With `sync` (default
   * false), the stream first waits, on the device, for the previous current stream. `wp.set_stream`, CuPy's `stream.use()`. Throws
   * ArgumentError for a stream of another device, StateError for a closed one. A stream that is closed later stays current, and work
   * submitted to it throws.
   */
  setCurrentStream(stream: Stream, opts: { readonly sync?: boolean } = {}): void {
    if (arguments.length > 2) refuseSurplus('setCurrentStream', arguments, 2);
    this.#checkOpen();
    if (!(stream instanceof Stream)) throw badArgument('stream', stream, `The stream (${show(stream)}) is not a stream.`);
    setCurrent(this, stream, opts.sync === true);
  }

  /**
   * Creates a stream: `cuStreamCreateWithPriority`, `cupy.cuda.Stream`, `wp.Stream`. Throws ArgumentError for a bad option, and LimitError
   * when the device has 4096 streams (`retryAfter` resolves when one was closed) or `maxPending` pending operations.
   * @example const upload = device.createStream({ label: 'upload', priority: -1 });
   */
  createStream(opts: StreamOptions = {}): Stream {
    if (arguments.length > 1) refuseSurplus('createStream', arguments, 1);
    const checked = checkStreamOptions(opts, this.context);
    this.#checkOpen();
    return this.context.makeStream(this, opts.label, checked);
  }

  /**
   * Divides the multiprocessors of a GPU, or the threads of a CPU device, into partitions that share none of them: `cuGreenCtxCreate`,
   * `torch.cuda.green_contexts`. A partition is for streams: `createStream({ partition })`. Their kernels run on its multiprocessors alone,
   * so latency work need not wait for the blocks of batch work that runs in another partition. Arrays, modules and events are those of the
   * device. Streams without a partition use all multiprocessors, those of partitions too. The kernels of a graph run in the partition of the
   * stream that they were captured on. Divide a GPU before its work begins: the driver may wait for running kernels.
   *
   * `shares` are numbers of multiprocessors or threads, and at most one 'rest'. A GPU rounds them up to its unit (8 on Hopper and Blackwell,
   * 2 or 4 before); `partition.multiprocessors` tells what each has. Rejects with ArgumentError for shares that are not there, StateError
   * while the device has open partitions, and UnsupportedError if the driver is older than CUDA 12.5's.
   * @example
   * const [fast, batch] = await device.partition([16, 'rest']);
   * const urgent = device.createStream({ partition: fast, priority: -1 });
   */
  async partition<const S extends readonly Share[]>(shares: S): Promise<{ -readonly [N in keyof S]: Partition }> {
    if (arguments.length > 1) refuseSurplus('partition', arguments, 1);
    this.#checkOpen();
    return (await this.context.partitions.divide(shares)) as { -readonly [N in keyof S]: Partition };
  }

  /**
   * Wraps a CUDA stream that other code of this process created: `cupy.cuda.Stream.from_external`, `wp.Stream(cuda_stream=)`. Millrace
   * never destroys it: keep it alive until the wrapper is closed, or pass an `owner`, which the wrapper references. 0n is the driver's
   * default stream. The handle of a stream that this device already has gives that Stream. Throws UnsupportedError on a CPU device.
   */
  wrapStream(handle: bigint, opts: { readonly owner?: object; readonly label?: string } = {}): Stream {
    if (arguments.length > 2) refuseSurplus('wrapStream', arguments, 2);
    this.#checkOpen();
    checkWrappable(this.info, handle);
    refuseApart(this.core, 'A handle of the driver');
    return this.context.wrapStream(this, handle, opts.label, opts.owner);
  }

  /**
   * Creates an event: `cuEventCreate`, `cupy.cuda.Event()`, `wp.Event`. It counts as complete until it is recorded. Throws ArgumentError
   * for `timing` together with `interprocess`, UnsupportedError for `interprocess` on a CPU device.
   */
  createEvent(opts?: EventOptions): DeviceEvent {
    if (arguments.length > 1) refuseSurplus('createEvent', arguments, 1);
    this.#checkOpen();
    return new DeviceEvent(this, this.core, opts);
  }

  /**
   * Opens another process's event by the 64 bytes of its `ipcHandle`: `cuIpcOpenEventHandle`. Rejects with ArgumentError for anything else,
   * UnsupportedError on a CPU device, and UnavailableError if the driver refuses the handle.
   */
  async openIpcEvent(handle: Uint8Array): Promise<DeviceEvent> {
    if (arguments.length > 1) refuseSurplus('openIpcEvent', arguments, 1);
    this.#checkOpen();
    return new DeviceEvent(this, this.core, { interprocess: true }, await openIpcEvent(this.core, handle));
  }

  /**
   * Allocates an array with undefined contents that other processes can open by its `ipcHandle`: `cuMemAlloc`. Throws UnsupportedError on a
   * CPU device, ArgumentError for a bad shape or dtype.
   */
  interprocess<D extends DType>(shape: Shape, dtype: DTypeLike<D>): DeviceArray<D> {
    if (arguments.length > 2) refuseSurplus('interprocess', arguments, 2);
    this.#checkOpen();
    const [dimensions, type] = [checkShape(shape), checkDType(dtype)];
    checkInterprocess(this.core, 'memory');
    const { stream } = this;
    const array = stream.allocate(dimensions, type, AllocKind.INTERPROCESS);
    noteExportable(array.storage, stream.timeline.here());
    return noted(array);
  }

  /**
   * Opens another process's array by the 64 bytes of its `ipcHandle`: `cuIpcOpenMemHandle`. `shape` and `dtype` are those that the array
   * has in that process. Rejects as `openIpcEvent` does.
   */
  async openIpcArray<D extends DType>(handle: Uint8Array, shape: Shape, dtype: DTypeLike<D>): Promise<DeviceArray<D>> {
    if (arguments.length > 3) refuseSurplus('openIpcArray', arguments, 3);
    this.#checkOpen();
    const [dimensions, type] = [checkShape(shape), checkDType(dtype)];
    return noted(new DeviceArray(this, type, dimensions, await openIpcMemory(this.core, handle, dimensions, type), 0));
  }

  /**
   * Allocates page-locked host memory, f32 unless `dtype` is given, contents undefined: `cuMemHostRegister`,
   * `cupy.cuda.alloc_pinned_memory`, `wp.empty(pinned=True)`. The array has a separate SharedArrayBuffer of whole pages, which may contain
   * the bytes of a disposed pinned array. The first use waits, on the device, until the pages are locked. Throws ArgumentError for a bad
   * shape or dtype and for more bytes than a typed array can have (`buffer.constants.MAX_LENGTH`), and OutOfMemoryError if the host has not
   * enough memory.
   */
  pinned(shape: Shape): PinnedArray<'f32'>;
  pinned<D extends DType>(shape: Shape, dtype: DTypeLike<D>): PinnedArray<D>;
  pinned<D extends DType>(shape: Shape, dtype?: DTypeLike<D>): PinnedArray<D> {
    if (arguments.length > 2) refuseSurplus('pinned', arguments, 2);
    return noted(this.makePinned(shape, dtype));
  }

  /** @internal The pinned array of a scope or of a lane's item. */
  makePinned<D extends DType>(shape: Shape, dtype: DTypeLike<D> | undefined): PinnedArray<D> {
    this.#checkOpen();
    const dimensions = checkShape(shape);
    const type = checkDType(dtype);
    const bytes = checkInteger('size of the pinned array in bytes', lengthOf(dimensions) * DTYPES[type].byteSize, 0, MAX_HOST_BYTES);
    const block = this.core.arena.takePinned(bytes);
    const storage = new Storage(MemorySpace.HOST, block.handle, block.handleOffset, bytes, this.core);
    storage.isPinned = true;
    return new PinnedArray(this.core, type, dimensions, storage, block, 0);
  }

  /**
   * Page-locks existing memory, a typed array over a SharedArrayBuffer: `cuMemHostRegister`. The result's `data` is that very array.
   * Disposing the result unlocks the memory after every operation that uses it, and keeps the contents. Copies wait, on the device, until
   * the pages are locked. Throws ArgumentError for any other `data`.
   */
  pin<H extends HostOf<SharedArrayBuffer>[DType]>(data: H): PinnedArray<DTypeOf<H>> {
    if (arguments.length > 1) refuseSurplus('pin', arguments, 1);
    this.#checkOpen();
    return noted(pinExisting(this.core, data) as PinnedArray<DTypeOf<H>>);
  }

  /** Creates a texture on the current stream: `stream.createTexture` has the rules. */
  createTexture<T extends HostArray | PinnedArray | DeviceArray>(
    opts: TextureOptions<never, T> & { readonly data: T; readonly dtype?: never },
  ): Texture<TextureDType & DTypeOf<T>>;
  createTexture<D extends TextureDType = 'f32'>(opts: TextureOptions<D>): Texture<D>;
  createTexture<D extends TextureDType>(opts: LinearTextureOptions<D>): Texture<D>;
  createTexture(opts: never): Texture {
    if (arguments.length > 1) refuseSurplus('createTexture', arguments, 1);
    return this.target.createTexture(opts);
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
      const source = sourceOf(kernel);
      return source === undefined ? kernelRegistry.of(kernel as Kernel).built : kernelRegistry.module(source).loaded;
    });
    await this.core.channel.keepAlive(Promise.all(builds));
  }

  /** What `String(device)` and template literals show: 'device cpu:0'. NaN as a number. */
  [Symbol.toPrimitive](hint: string): string | number {
    return hint === 'number' ? Number.NaN : `device ${this.core.name}`;
  }

  /**
   * Resolves when everything that was submitted so far to streams of the device has finished, also by other threads (`openShared`) and by
   * other code to wrapped streams: `cuCtxSynchronize`, `cupy.cuda.Device.synchronize`, `wp.synchronize_device`. Failed operations do not
   * reject it: read their `done`. Rejects with AbortError, WaitTimeoutError or DeviceLostError, and with StateError when the device is closed.
   */
  synchronize(opts?: WaitOptions): Promise<void> {
    if (arguments.length > 1) refuseSurplus('synchronize', arguments, 1);
    refuseInCapture('host-wait', 'the host cannot wait for a device');
    return this.#synchronize(opts);
  }

  async #synchronize(opts: WaitOptions | undefined): Promise<void> {
    checkWaitCall(opts);
    const over = this.refusal();
    if (over !== undefined && this.state !== 'closing') throw over;
    await waitForDevices([this.core], opts, true);
  }

  /**
   * Returns a token with which other threads of this process open the same device (`openShared`). Each thread has its own streams, promises
   * and `errors$`. The token is plain data for `postMessage`, `workerData` or a task of a pool, and may be used any number of times while
   * the device is open. The device ends for all threads when the thread that opened it closes it or ends. Throws StateError once the device
   * is closed. No counterpart in CUDA, whose contexts belong to all threads of a process.
   * @example worker.postMessage({ token: device.share() });
   */
  share(): DeviceToken {
    if (arguments.length > 0) refuseSurplus('share', arguments, 0);
    this.#checkOpen();
    const { core, context } = this;
    refuseApart(core, 'Use by other threads');
    return deviceToken({ device: core.name, address: core.channel.address, ordering: context.owner.ordering });
  }

  /**
   * Returns an array of another thread of this device, by the token of its `array.share()`: the same memory, without a copy. The current
   * stream waits, on the device, for the uses that the other thread had submitted; other streams wait for the current one, as for any array
   * made on it. Dispose the adopted array: the memory is freed when every thread has disposed its own. A token from a message has no type,
   * so pass the `dtype` that it must have. Throws ArgumentError for a value that is not a token, for a token of another dtype, and for one
   * of another device; only `openShared` opens the same device in two threads. If the array was disposed before it was adopted, the
   * operations that use it reject with an UpstreamError, whose `cause` is a StateError.
   * @example using x = device.adopt(message.x, 'f32');
   */
  adopt<D extends DType>(token: ArrayToken<D>): DeviceArray<D>;
  adopt<D extends DType>(token: unknown, dtype: DTypeLike<D>): DeviceArray<D>;
  adopt<D extends DType>(token: unknown, expected?: DTypeLike<D>): DeviceArray<D> {
    if (arguments.length > 2) refuseSurplus('adopt', arguments, 2);
    this.#checkOpen();
    const { dtype, shape, storage, byteOffset, strides } = adopt(this.stream, token, expected && checkDType(expected));
    return noted(new DeviceArray(this, dtype as D, shape, storage, byteOffset, undefined, strides));
  }

  /** What each stream has pending and waits for, as plain data. Makes no driver call and never waits. */
  inspect(): DeviceSnapshot {
    if (arguments.length > 0) refuseSurplus('inspect', arguments, 0);
    return inspectDevice(this.info.id, this.state, this.core, this.context.timelines);
  }

  /**
   * Says in words, for each stream with pending operations, what it does or what it waits for, through all streams that wait for one
   * another: the message of a WaitTimeoutError, at any time. Empty for a device that is closed or lost. Makes no driver call and never waits.
   * @example for (const { sentence } of device.whatAreYouWaitingFor()) console.log(sentence);
   */
  whatAreYouWaitingFor(): readonly StreamWait[] {
    if (arguments.length > 0) refuseSurplus('whatAreYouWaitingFor', arguments, 0);
    return this.state === 'open' || this.state === 'closing' ? waitsOf(this.context.timelines) : [];
  }

  /**
   * Reads the device's load, memory, clocks, temperature, power, reasons of low clocks and XID errors: NVML, `nvidia-smi --query-gpu`,
   * `torch.cuda.utilization`. The device's worker asks, so it takes no place in a stream and no time of this thread. Of the CPU device it
   * is the processor time and the memory of this process. Rejects with UnavailableError where the driver's NVML (libnvidia-ml.so.1) cannot
   * be opened, UnsupportedError if NVML does not know the GPU, and StateError or DeviceLostError once the device is closed or lost.
   * @example const { busyPercent, memoryUsedBytes, temperatureC } = await device.telemetry();
   */
  async telemetry(): Promise<DeviceTelemetry> {
    if (arguments.length > 0) refuseSurplus('telemetry', arguments, 0);
    this.#checkOpen();
    return (this.#telemetry ??= new Telemetry(this.core)).read();
  }

  /**
   * `telemetry()` at once, and then every `intervalMs` milliseconds (1 to 2^31 - 1, default 1000), for each subscriber. A value that is late
   * delays the next one. Completes when the device is closed or lost, and errors as `telemetry()` rejects. A subscription keeps the process
   * alive. Throws ArgumentError for a bad interval.
   */
  telemetry$(intervalMs: number = TELEMETRY_MS): ObservableOf<DeviceTelemetry> {
    if (arguments.length > 1) refuseSurplus('telemetry$', arguments, 1);
    this.#checkOpen();
    return observe(new TelemetryTicks(this, checkInteger('intervalMs', intervalMs, 1, 2 ** 31 - 1), onLeave));
  }

  /**
   * The `operations$` of all streams of the device, each stream's operations in their order. A slow subscriber loses nothing. Completes
   * when the device is closed, after the last operation.
   */
  get operations$(): ObservableOf<Operation> {
    return this.context.observation.operations$;
  }

  /** The `activity$` of all streams of the device, each stream's phases in their order. A slow subscriber loses nothing. */
  get activity$(): ObservableOf<Activity> {
    return this.context.observation.activity$;
  }

  /** @internal */
  get hub(): Hub<Operation> {
    return this.context.observation.operations;
  }

  /** @internal */
  get hubName(): string {
    return `device ${this.core.name}`;
  }

  /**
   * Resolves with the DeviceLostError when the device is lost: after a fault, after `destroy`, or when its worker ends. A device of
   * `openShared` is also lost when the thread that opened it closes it or ends. Never rejects, and stays pending when `close` ends the
   * device. Waiting for `lost` does not keep the process alive.
   * @example void device.lost.then(({ reason, restartNeeds }) => console.error(reason, restartNeeds));
   */
  get lost(): Promise<DeviceLostError> {
    this.core.isLossRead = true;
    return this.core.lost;
  }

  /**
   * Aborts when `lost` resolves, with the DeviceLostError as its `reason`: for calls that take a signal.
   * @example await fetch(url, { signal: device.signal });
   */
  get signal(): AbortSignal {
    this.core.isLossRead = true;
    return this.context.signal;
  }

  /**
   * Failures of operations whose `done` was not read, once each, and the loss of the device if it ended such operations and no promise told
   * it; a slow subscriber loses none. Without a subscriber, the first failure
   * causes a process warning. Never errors, and completes when the device is closed or lost. A subscription keeps the process alive while
   * operations are pending.
   */
  get errors$(): ObservableOf<MillraceError> {
    this.#errors ??= observe(this.core.errors);
    return this.#errors;
  }

  /**
   * Closes this Device object: its calls throw from now on. While other Device objects have the device open, `close` resolves at once, work
   * continues, and streams and arrays of this object stay usable. The last `close` closes the device (`cuDevicePrimaryCtxRelease`): it
   * refuses new work at once, and resolves when the pending work has finished and the device is closed. It also resolves if the device is
   * lost. It rejects with StateError inside a `hold` of one of the device's streams.
   *
   * `opts` limits only the wait, which has no limit by default: `close` then rejects with AbortError, or with a WaitTimeoutError that names
   * the running operations, and the device continues to close. Another `close` waits again; `destroy` ends the device.
   */
  close(opts?: WaitOptions): Promise<void> {
    if (arguments.length > 1) refuseSurplus('close', arguments, 1);
    refuseInCapture('host-wait', 'a device cannot be closed');
    return this.context.close(this, opts);
  }

  /**
   * Ends the device for all Device objects, at once: new calls and pending operations fail with a DeviceLostError, whose `cause` is
   * `reason`. Operations that have not begun are dropped. On a CPU device, a running kernel stops before its next block; a GPU completes
   * the operations that the driver has accepted. Resolves when nothing runs any more. Does nothing on a Device that is closed while other
   * objects have the device open.
   *
   * If a kernel still runs after 5 s, `destroy` rejects with a DeviceLostError, reason 'hung', that names the kernel, and the kernel keeps
   * its thread and memory. A CPU device can then be opened again; a GPU runs the kernel until the process ends.
   */
  destroy(reason?: unknown): Promise<void> {
    if (arguments.length > 1) refuseSurplus('destroy', arguments, 1);
    return this.context.has(this) ? this.context.destroy(reason) : Promise.resolve();
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal The error for a call that needs the Device open; undefined if it is. */
  refusal(): Error | undefined {
    const over = this.core.refuseIfOver();
    if (over !== undefined || this.context.has(this)) return over;
    const { name } = this.core;
    const message = `This Device of ${name} is closed. Other Device objects keep the device open: call openDevice() for another one.`;
    return new StateError('ERR_MILLRACE_STATE', message, { device: name });
  }

  #checkOpen(): void {
    const error = this.refusal();
    if (error !== undefined) throw error;
  }
}

describeAs(
  Device.prototype,
  ({ info, state }) => `Device ${info.id}, ${info.name} (${state})`,
  ({ info: { id, backend, name }, state }) => ({ id, backend, name, state }),
);

// The owner's side of a worker with an open device: the Channel to which core submits.
//
// The worker is unreferenced as soon as the device is open, because pending promises keep the event loop alive themselves.
// If the worker ends without a request, the device is lost. Thread: owner.
import { types } from 'node:util';
import type { Build, BuildSpec, FaultPlaces, FaultSource } from '../core/channel/build-spec.js';
import type {
  BuildReport,
  Channel,
  ChannelRecorder,
  CallCaptures,
  CommunicatorCalls,
  ModuleReport,
  StillRunning,
  VariableSpec,
} from '../core/channel/channel.js';
import type { ControlCalls, ControlName } from '../core/channel/control.js';
import { DeviceLostError } from '../core/base/errors.js';
import type { GrowableSharedBuffer } from '../core/channel/host-buffers.js';
import type { Binding } from '../native/binding.js';
import type { Encoder } from '../protocol/encoder.js';
import { type HandleKind, PeerWhat } from '../protocol/protocol.gen.js';
import type { BackendName, ChannelStats, DeviceLoss, FailurePart, NativeDeviceInfo } from '../protocol/reports.js';
import type { DeviceAddress } from '../core/base/device-token.js';
import type { ControlLink } from './control-link.js';
import { warnOfUnlocked } from './locked-memory-limit.js';
import type { FromWorker, ToWorker } from './messages.js';
import { type Answers, type Request, WorkerRequests } from './worker-requests.js';
import { clearTimeout, setTimeout } from '../core/base/timers.js';
import { collectGarbage } from './collect-garbage.js';
import { communicatorCalls } from './communicator-calls.js';
import { asked } from './native-errors.js';

/** A worker that has not exited this long after its 'closed' message is terminated. */
const EXIT_MS = 2000;

/** Buffers whose memory this thread has reported to V8. */
const counted: WeakSet<SharedArrayBuffer> = new WeakSet();

export interface Opened {
  readonly id: number;
  readonly backend: BackendName;
  readonly info: NativeDeviceInfo;
  readonly maxPending: number;
  readonly timeline: SharedArrayBuffer;
  readonly arena: GrowableSharedBuffer;
  readonly address: DeviceAddress;
}

export class WorkerChannel implements Channel {
  readonly id: number;
  readonly backend: BackendName;
  readonly info: NativeDeviceInfo;
  readonly maxPending: number;
  readonly encoder: Encoder;
  readonly timeline: SharedArrayBuffer;
  readonly arena: GrowableSharedBuffer;
  readonly address: DeviceAddress;
  readonly recorder: ChannelRecorder = {
    start: (most, times) => this.binding.startRecording(this.id, most, times),
    stop: () => this.binding.stopRecording(this.id),
    take: (into) => this.binding.takeTimes(this.id, into),
  };
  onLost: ((error: DeviceLostError) => void) | undefined = undefined;
  protected readonly binding: Binding;
  readonly #link: ControlLink;
  readonly #requests: WorkerRequests;
  readonly isApart: boolean = false;
  get hungStream(): number | undefined {
    return undefined;
  }
  #lastAsked = 0;
  readonly #exited: Promise<void>;
  /** Resolves when this thread has nothing to do with the device any more. */
  readonly ended: Promise<void>;
  #tellEnded: () => void = () => undefined;
  #state: 'open' | 'closing' | 'closed' = 'open';
  /** Why the device ended. Meaningful in state 'closed'. */
  protected reason: 'closed' | 'worker-exit' = 'closed';
  /** The thread that opened a shared device closes it. */
  #isOwnerClosing = false;
  #holds = 0;
  #ending: NodeJS.Timeout | undefined = undefined;

  constructor(binding: Binding, link: ControlLink, encoder: Encoder, opened: Opened) {
    this.id = opened.id;
    this.backend = opened.backend;
    this.info = opened.info;
    this.maxPending = opened.maxPending;
    this.timeline = opened.timeline;
    this.arena = opened.arena;
    this.encoder = encoder;
    this.binding = binding;
    this.address = opened.address;
    this.#link = link;
    this.#requests = new WorkerRequests(
      () => ({ device: this.device, isApart: this.isApart }),
      (message) => this.post(message),
    );
    binding.attach(this.id, link.isShared);
    this.ended = new Promise((resolve) => {
      this.#tellEnded = resolve;
    });
    this.#exited = new Promise((resolve) => {
      link.listen(
        (message) => this.#receive(message),
        (error) => this.#end(error),
        () => {
          clearTimeout(this.#ending);
          this.#end(undefined);
          resolve();
        },
      );
    });
    link.unref();
  }

  submit(bytes: number): number {
    const { encoder } = this;
    encoder.call(this.id, bytes);
    this.binding.submit();
    return encoder.answer;
  }

  arm(stream: number, ticket: number): boolean {
    return this.binding.arm(this.id, stream, ticket);
  }

  failures(stream: number, from: number, count: number): FailurePart {
    return this.binding.failures(this.id, stream, from, count);
  }

  reported(stream: number, through: number): void {
    this.binding.reported(this.id, stream, through);
  }

  reportedOf(handle: number, offset: number, bytes: number): void {
    this.binding.reportedOf(this.id, handle, offset, bytes);
  }

  hasTransformLibrary(): boolean {
    return this.backend === 'cuda' && this.binding.hasCufft();
  }

  get communicators(): CommunicatorCalls | undefined {
    return this.backend === 'cuda' ? communicatorCalls(this.binding) : undefined;
  }

  get callCaptures(): CallCaptures | undefined {
    if (this.backend !== 'cuda' || this.isApart) return undefined;
    const { binding, id } = this;
    return {
      capture: (handle, fn) => binding.captureCalls(id, handle, fn),
      fail: (handle) => binding.failCaptured(id, handle),
      drop: (handle) => binding.dropCaptured(id, handle),
    };
  }

  loss(): DeviceLoss | undefined {
    return this.binding.loss(this.id);
  }

  stats(): ChannelStats {
    return this.binding.stats(this.id);
  }

  reserveHandles(kind: HandleKind, count: number): number {
    return this.binding.reserveHandles(this.id, kind, count);
  }

  defineGraph(handle: number, definition: Uint8Array): void {
    this.binding.defineGraph(this.id, handle, definition);
  }

  reserveStream(): number {
    return this.binding.reserveStream(this.id);
  }

  pendingPoints(): readonly number[] {
    return this.binding.pendingPoints(this.id);
  }

  lastTicket(stream: number): number {
    return this.binding.lastTicket(this.id, stream);
  }

  build(handle: number, build: Build, module?: number): Promise<BuildReport> {
    return this.request(handle, { type: 'build', handle, build, module });
  }

  loadModule(module: number, build: BuildSpec): Promise<ModuleReport> {
    return this.request(module, { type: 'module', module, build });
  }

  bindVariable(handle: number, variable: VariableSpec): Promise<void> {
    return this.request(handle, { type: 'variable', handle, variable });
  }

  get isBinding(): boolean {
    return this.#requests.hasPending('variable');
  }

  reserveFailure(): number {
    return this.binding.reserveFailure();
  }

  register(handle: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): void {
    const moved = types.isArrayBuffer(buffer) ? [buffer] : [];
    if (types.isSharedArrayBuffer(buffer) && buffer !== this.arena) this.#count(buffer);
    this.post({ type: 'register', handle, buffer, byteOffset, byteLength, isLocked }, moved);
  }

  mapHost(buffer: SharedArrayBuffer, arenaOffset: number): boolean {
    const { byteLength } = buffer;
    if (!this.binding.mapHost(new Uint8Array(buffer, 0, byteLength), new Uint8Array(this.arena, arenaOffset, byteLength))) return false;
    this.#count(buffer);
    return true;
  }

  copyHost(target: Uint8Array, source: Uint8Array): void {
    this.binding.copyHost(target, source);
  }

  copyHostApart(target: Uint8Array, source: Uint8Array): Promise<void> {
    return this.binding.copyHostApart(target, source);
  }

  adviseHugePages(bytes: Uint8Array): void {
    this.binding.adviseHugePages(bytes);
  }

  unmapHost(buffer: SharedArrayBuffer): boolean {
    return this.binding.unmapHost(new Uint8Array(buffer, 0, buffer.byteLength));
  }

  lend(handle: number, byteLength: number): void {
    this.post({ type: 'lend', handle, byteLength });
  }

  collect(handle: number): Promise<ArrayBuffer> {
    return this.request(handle, { type: 'collect', handle });
  }

  ask<K extends ControlName>(name: K, ...args: Parameters<ControlCalls[K]>): Promise<ReturnType<ControlCalls[K]>> {
    const id = ++this.#lastAsked;
    return this.keepAlive(this.request(id, { type: 'ask', id, name, args })) as Promise<ReturnType<ControlCalls[K]>>;
  }

  locate(kernel: number, places: FaultPlaces): Promise<FaultSource> {
    const id = ++this.#lastAsked;
    return this.keepAlive(this.request(id, { type: 'locate', id, handle: kernel, places }));
  }

  releaseHold(stream: number, ticket: number): void {
    this.binding.releaseHold(this.id, stream, ticket);
  }

  failExternal(stream: number, ticket: number): void {
    this.binding.failExternal(this.id, stream, ticket);
  }

  readyExternal(stream: number): number {
    return this.binding.readyExternal(this.id, stream);
  }

  enterContext(): bigint {
    return asked("The device's context cannot be made current", () => this.binding.enterContext(this.id));
  }

  leaveContext(): void {
    this.binding.leaveContext(this.id);
  }

  collectGarbage(): void {
    collectGarbage();
  }

  weigh(bytes: number): void {
    this.binding.adjustExternalMemory(Math.abs(bytes), bytes > 0);
  }

  streamHandle(stream: number): bigint | undefined {
    return this.binding.streamHandle(this.id, stream);
  }

  isPeerGranted(ordinal: number, what: PeerWhat): boolean {
    return this.binding.isPeerGranted(this.id, ordinal, what === PeerWhat.POOL);
  }

  memoryAddress(handle: number): bigint | undefined {
    return this.binding.memoryAddress(this.id, handle);
  }

  unregister(handle: number): Promise<void> {
    return this.request(handle, { type: 'unregister', handle });
  }

  async keepAlive<T>(promise: Promise<T>): Promise<T> {
    if (this.#holds++ === 0) this.#link.ref();
    try {
      return await promise;
    } finally {
      if (--this.#holds === 0) this.#link.unref();
    }
  }

  async close(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'closing';
      this.post({ type: this.#link.isShared ? 'leave' : 'close' });
    }
    await this.keepAlive(this.#exited);
  }

  async destroy(timeoutMs: number): Promise<StillRunning | undefined> {
    const { isShared } = this.#link;
    if (this.#state !== 'closed') {
      this.#state = 'closing';
      this.post({ type: isShared ? 'leave' : 'destroy' });
    }
    // The timer keeps the event loop alive.
    let timer: NodeJS.Timeout | undefined;
    const isLate = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, timeoutMs, true);
    });
    const gaveUp = await Promise.race([this.#exited, isLate]);
    clearTimeout(timer);
    if (gaveUp !== true) return undefined;
    const streams = this.isApart ? [] : this.binding.busyStreams(this.id); // A process of its own ends with its work, and may not answer.
    this.#end(undefined);
    // The worker's environment ends without waiting for kernels, but the worker may be in a driver call that waits.
    this.#link.unref();
    this.#link.stop();
    // Operations of a thread that shared the device run on; the device's worker waits for them.
    return isShared ? undefined : { streams, afterMs: timeoutMs };
  }

  /** Reports a shared buffer's memory to V8, which does not count shared memory by itself. */
  #count(buffer: SharedArrayBuffer): void {
    if (counted.has(buffer)) return;
    counted.add(buffer);
    this.binding.countShared(buffer, buffer.byteLength);
  }

  protected request<M extends Request>(id: number, message: M): Promise<Answers[M['type']]> {
    // A worker that has ended answers nothing.
    if (this.#state === 'closed') return Promise.reject(this.errorOfEnd(undefined));
    return this.#requests.request(id, message);
  }

  protected post(message: ToWorker, moved: readonly ArrayBuffer[] = []): void {
    this.#link.post(message, moved);
  }

  protected get device(): string {
    return `${this.backend}:${this.info.ordinal}`;
  }

  #receive(message: FromWorker): void {
    if (this.#requests.settle(message)) return;
    if (message.type === 'ending') {
      this.#isOwnerClosing = true;
    } else if (message.type === 'closed') {
      this.#ending = setTimeout(() => this.#link.stop(), EXIT_MS).unref();
    } else if (message.type === 'registerFailed') {
      warnOfUnlocked(message.error);
    }
  }

  endedError(): DeviceLostError {
    // A message that has arrived and was not read yet may say why the device ended.
    for (const message of this.#link.waiting()) this.#receive(message);
    if (this.#state === 'open') this.reason = 'worker-exit';
    return this.errorOfEnd(undefined);
  }

  /** Rejects everything pending: the worker has ended, or is about to end. */
  #end(cause: unknown): void {
    if (this.#state === 'closed') return;
    const wasAsked = this.#state === 'closing';
    this.#state = 'closed';
    this.reason = wasAsked ? 'closed' : 'worker-exit';
    const error = this.errorOfEnd(cause);
    if (!wasAsked) this.onLost?.(error);
    this.#requests.end(error);
    this.binding.detach(this.id);
    this.#tellEnded();
  }

  protected errorOfEnd(cause: unknown): DeviceLostError {
    const device = this.device;
    if (this.#link.isShared && this.reason === 'worker-exit') {
      const what = this.#isOwnerClosing ? `was closed by the thread that opened it` : `is lost: the thread that opened it ended`;
      const reason = this.#isOwnerClosing ? 'closed' : 'worker-exit';
      return new DeviceLostError('ERR_MILLRACE_LOST', `Device ${device} ${what}.`, reason, { device, cause });
    }
    const message = this.reason === 'closed' ? `Device ${device} is closed.` : `The worker of device ${device} ended.`;
    return new DeviceLostError('ERR_MILLRACE_LOST', message, this.reason, { device, cause });
  }
}

// More than 400 lines: one class, whose methods answer one interface.
// A Channel without a device: keeps what was submitted, completes when told. Tickets are claimed as the native side does.
import type { BuildReport, Channel, ModuleReport, VariableSpec } from '../../../src/core/channel/channel.js';
import type { FaultSource } from '../../../src/core/channel/build-spec.js';
import type { ControlCalls, ControlName } from '../../../src/core/channel/control.js';
import { DeviceCore } from '../../../src/core/device/device-core.js';
import { AccessTracker } from '../../../src/core/ordering/access-tracker.js';
import { Device } from '../../../src/core/api/device.js';
import { DeviceContext } from '../../../src/core/api/device-context.js';
import type { DeviceName } from '../../../src/core/api/device-info.js';
import { DeviceLostError } from '../../../src/core/base/errors.js';
import { type ArrayParam, type Kernel, MADE } from '../../../src/core/kernels/kernel.js';
import { CompletionPolling } from '../../../src/core/waits/completion-polling.js';
import { growableSharedBuffer } from '../../../src/core/channel/host-buffers.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { Encoder } from '../../../src/protocol/encoder.js';
import { HANDLE_INDEX_BITS, Opcode, Status, StreamCreateRecord, TimelineSlot } from '../../../src/protocol/protocol.gen.js';
import type { BackendName, ChannelStats, DeviceLoss, FailurePart, FailureRecord, NativeDeviceInfo } from '../../../src/protocol/reports.js';
import { turn } from '../../support/wait.js';

export { turn };

const SLOTS = 16;
const MIB = 2 ** 20;
const OPCODES = new Map(Object.entries(Opcode).map(([name, value]) => [value as number, name]));

export const INFO: NativeDeviceInfo = {
  ordinal: 0,
  name: 'fake',
  totalMemoryBytes: 2 ** 30,
  computeCapability: [0, 0],
  multiprocessors: 4,
  maxThreadsPerBlock: 1024,
  maxBlock: [1024, 1024, 64],
  maxGrid: [2 ** 31 - 1, 65535, 65535],
  maxSharedBytes: 49152,
  maxParameterBytes: 4096,
  textureLimits: [131072, 131072, 65536, 16384, 16384, 16384, 32768, 131072, 65536, 16384, 16384, 16384, 2 ** 27, 131072, 65000, 2097120],
  warpSize: 32,
  priorityRange: [0, -5],
  libraries: [],
};

export interface Submitted {
  readonly opcode: string;
  readonly stream: number;
  readonly ticket: number;
  readonly view: DataView;
}

export class FakeChannel implements Channel {
  readonly id: number;
  /** Set before the fixture is made. */
  backend: BackendName;
  info: NativeDeviceInfo = INFO;
  readonly maxPending = 100;
  readonly isApart = false;
  readonly communicators = undefined;
  readonly callCaptures = undefined;
  readonly encoder: Encoder = new Encoder();
  readonly timeline: SharedArrayBuffer = new SharedArrayBuffer(SLOTS * TimelineSlot.BYTE_SIZE);
  readonly arena = growableSharedBuffer(0, 64 * MIB);
  readonly address = { process: process.pid, thread: 0, channel: 0, key: 'key of the fake' };
  onLost: ((error: DeviceLostError) => void) | undefined = undefined;
  readonly records: Submitted[] = [];
  readonly armed: { readonly stream: number; readonly ticket: number }[] = [];
  readonly registered: { readonly handle: number; readonly byteOffset: number; readonly byteLength: number; readonly isLocked: boolean }[] =
    [];
  readonly unregistered: number[] = [];
  readonly builds: Map<number, { resolve(report: BuildReport): void; reject(error: Error): void }> = new Map();
  /** Definitions, by handle. */
  readonly graphs: Map<number, Uint8Array> = new Map();
  readonly modules: Map<number, { resolve(report: ModuleReport): void; reject(error: Error): void }> = new Map();
  readonly variables: Map<number, VariableSpec & { resolve(): void; reject(error: Error): void }> = new Map();
  lastFailure = 1000;
  /** When set, every record is refused with it. */
  refusal: Status = Status.OK;
  firstTicket = 0;
  isClosed = false;
  /** What `stats` tells of streams that do not go on. */
  parked: ChannelStats['parked'] = [];
  readonly #tickets: Map<number, number> = new Map();
  readonly #failures: Map<number, FailureRecord[]> = new Map();
  readonly #words: BigUint64Array = new BigUint64Array(this.timeline);
  readonly #nextHandle: number[] = [0, 0, 0, 0, 0];
  #streams = 0;

  constructor(id = 7, backend: BackendName = 'cpu') {
    this.id = id;
    this.backend = backend;
  }

  submit(bytes: number): number {
    if (this.refusal !== Status.OK) return -this.refusal;
    const copy = this.encoder.block.slice(0, bytes);
    const view = new DataView(copy.buffer);
    const stream = view.getUint32(8, true);
    const ticket = (this.#tickets.get(stream) ?? this.firstTicket) + 1;
    this.#tickets.set(stream, ticket);
    this.records.push({ opcode: OPCODES.get(view.getUint16(0, true)) ?? '?', stream, ticket, view });
    return ticket;
  }

  arm(stream: number, ticket: number): boolean {
    if (this.#completed(stream) >= ticket) return true;
    this.armed.push({ stream, ticket });
    return false;
  }

  failures(stream: number, from: number, count: number): FailurePart {
    const list = (this.#failures.get(stream) ?? []).slice(from);
    return { records: list.slice(0, count), rest: Math.max(0, list.length - count) };
  }

  reported(): void {}

  reportedOf(): void {}

  hasTransformLibrary(): boolean {
    return false;
  }
  loss(): DeviceLoss | undefined {
    return undefined;
  }

  stats(): ChannelStats {
    return {
      pendingRecords: 0,
      ringBytes: 0,
      liveMemory: 0,
      liveBytes: 0,
      stagingBytes: 0,
      pinnedBytes: 0,
      streams: this.#streams,
      parked: this.parked,
    };
  }

  reserveHandles(kind: number, count: number): number {
    const first = this.#nextHandle[kind] as number;
    this.#nextHandle[kind] = first + count;
    return first;
  }

  defineGraph(handle: number, definition: Uint8Array): void {
    this.graphs.set(handle, definition.slice());
  }

  reserveStream(): number {
    return this.#streams < SLOTS ? this.#streams++ : -1;
  }

  /** Of streams of other threads. */
  points: number[] = [];

  pendingPoints(): readonly number[] {
    return this.points;
  }

  lastTicket(stream: number): number {
    return this.#tickets.get(stream) ?? this.firstTicket;
  }

  build(handle: number): Promise<BuildReport> {
    return new Promise((resolve, reject) => this.builds.set(handle, { resolve, reject }));
  }

  loadModule(module: number): Promise<ModuleReport> {
    return new Promise((resolve, reject) => this.modules.set(module, { resolve, reject }));
  }

  locate(): Promise<FaultSource> {
    return Promise.resolve({ lines: ['a.cu:1', 'a.cu:2'], reason: undefined, variable: undefined });
  }

  bindVariable(handle: number, variable: VariableSpec): Promise<void> {
    return new Promise((resolve, reject) => this.variables.set(handle, { ...variable, resolve, reject }));
  }

  get isBinding(): boolean {
    return this.variables.size > 0;
  }

  endedError(): DeviceLostError {
    return new DeviceLostError('ERR_MILLRACE_LOST', 'The worker of the fake device ended.', 'worker-exit');
  }

  reserveFailure(): number {
    return ++this.lastFailure;
  }

  register(handle: number, _buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): void {
    this.registered.push({ handle, byteOffset, byteLength, isLocked });
  }

  /** Nothing can be mapped here: buffers of pinned arrays are registered. */
  mapHost(_buffer: SharedArrayBuffer, _arenaOffset: number): boolean {
    return false;
  }

  copyHost(target: Uint8Array, source: Uint8Array): void {
    target.set(source);
  }

  copyHostApart(target: Uint8Array, source: Uint8Array): Promise<void> {
    this.copyHost(target, source);
    return Promise.resolve();
  }

  adviseHugePages(_bytes: Uint8Array): void {}

  unmapHost(_buffer: SharedArrayBuffer): boolean {
    return false;
  }

  lend(handle: number, byteLength: number): void {
    this.registered.push({ handle, byteOffset: 0, byteLength, isLocked: false });
  }

  collect(handle: number): Promise<ArrayBuffer> {
    this.unregistered.push(handle);
    const lent = this.registered.find((block) => block.handle === handle);
    return Promise.resolve(new ArrayBuffer(lent?.byteLength ?? 0));
  }

  /** Answers of the worker, by the call's name; what has none is never answered. */
  readonly answers: Map<ControlName, (...args: unknown[]) => unknown> = new Map();

  ask<K extends ControlName>(name: K, ...args: Parameters<ControlCalls[K]>): Promise<ReturnType<ControlCalls[K]>> {
    const answer = this.answers.get(name);
    return answer === undefined ? new Promise(() => undefined) : Promise.resolve(answer(...args) as ReturnType<ControlCalls[K]>);
  }

  /** Holds let go, as 'stream:ticket'. */
  readonly released: string[] = [];

  weigh(): void {}
  collectGarbage(): void {}

  releaseHold(stream: number, ticket: number): void {
    this.released.push(`${stream}:${ticket}`);
  }

  failExternal(stream: number, ticket: number): void {
    this.released.push(`${stream}:${ticket}`);
  }

  readyExternal(): number {
    return 0;
  }

  enterContext(): bigint {
    return 0n;
  }

  leaveContext(): void {}

  /** Streams that the device has not made yet. */
  readonly unmade: Set<number> = new Set();

  streamHandle(stream: number): bigint | undefined {
    if (this.unmade.has(stream)) return undefined;
    const made = this.records.findLast((record) => record.opcode === 'STREAM_CREATE' && record.stream === stream)?.view;
    const isForeign = made?.getUint32(StreamCreateRecord.IS_FOREIGN, true) === 1;
    return isForeign ? made.getBigUint64(StreamCreateRecord.FOREIGN, true) : BigInt(stream) + 1000n;
  }

  isPeerGranted = (): boolean => false;
  memoryAddress(handle: number): bigint | undefined {
    return BigInt(handle);
  }

  unregister(handle: number): Promise<void> {
    this.unregistered.push(handle);
    return Promise.resolve();
  }

  keepAlive<T>(promise: Promise<T>): Promise<T> {
    return promise;
  }

  async destroy(): Promise<undefined> {
    await this.close();
    return undefined;
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }

  // ── what the device does ──

  complete(stream: number, ticket: number, word: 'device' | 'host' = 'device'): void {
    const at = (stream * TimelineSlot.BYTE_SIZE + (word === 'device' ? TimelineSlot.DEVICE_WORD : TimelineSlot.HOST_WORD)) / 8;
    Atomics.store(this.#words, at, BigInt(ticket));
  }

  /** Everything submitted finishes. */
  completeAll(): void {
    for (const [stream, ticket] of this.#tickets) this.complete(stream, ticket);
  }

  /** Adds a failure, or lets the one with its id grow. */
  fail(stream: number, failure: Partial<FailureRecord> & Pick<FailureRecord, 'id' | 'first' | 'last' | 'status'>): void {
    const list = this.#failures.get(stream) ?? [];
    const full: FailureRecord = {
      driverStatus: 0,
      note: '',
      cause: 0,
      requestedBytes: 0,
      freeBytes: 0,
      requested: 0,
      limit: 0,
      kernel: 0,
      lostDevice: 0,
      ...failure,
    };
    const known = list.findIndex(({ id }) => id === failure.id);
    if (known < 0) list.push(full);
    else list[known] = full;
    this.#failures.set(stream, list);
    Atomics.add(new Int32Array(this.timeline), (stream * TimelineSlot.BYTE_SIZE + TimelineSlot.FAILURES) / 4, 1);
  }

  opcodes(stream?: number): string[] {
    return this.records.filter((record) => stream === undefined || record.stream === stream).map(({ opcode }) => opcode);
  }

  #completed(stream: number): number {
    const at = (stream * TimelineSlot.BYTE_SIZE) / 8;
    const [device, host] = [Atomics.load(this.#words, at), Atomics.load(this.#words, at + 1)];
    return Number(device > host ? device : host);
  }
}

export interface Fixture {
  readonly channel: FakeChannel;
  readonly progress: CompletionPolling;
  readonly core: DeviceCore;
  readonly device: Device;
  /** How often the loop was held and let go. */
  readonly holds: boolean[];
}

/** The devices of a thread share its CompletionPolling and its tracker. */
const trackers: WeakMap<CompletionPolling, AccessTracker> = new WeakMap();

/** `sharedProgress`: that of another device of the thread. */
export function fixture(channel: FakeChannel = new FakeChannel(), sharedProgress?: CompletionPolling, id: DeviceName = 'cpu:0'): Fixture {
  const holds: boolean[] = [];
  const progress = sharedProgress ?? new CompletionPolling((on) => holds.push(on));
  const { backend } = channel;
  const tracker = trackers.get(progress) ?? new AccessTracker();
  trackers.set(progress, tracker);
  const core = new DeviceCore(id, channel, progress, tracker);
  const context = new DeviceContext(core, {
    info: { id, backend, ...channel.info, libraries: [] },
    ordering: 'tracked',
    isShared: () => false,
    release: () => undefined,
    ends: () => undefined,
    destroying: () => undefined,
    hung: () => undefined,
  });
  const device = new Device(context);
  return { channel, progress, core, device, holds };
}

/** The handle that the table gives for an index the first time. */
export const handleAt = (index: number): number => (index | (1 << HANDLE_INDEX_BITS)) >>> 0;

/** The device finishes everything, and that is heard. */
export function finish({ channel, progress }: Pick<Fixture, 'channel' | 'progress'>): void {
  channel.completeAll();
  progress.wake();
}

/** The stream is closed, and its device does what that needs. */
export async function closeStream(all: Fixture, stream: Stream): Promise<void> {
  const closing = stream.close();
  // What is pending, and then the record that destroys it.
  for (let n = 0; n < 3; n++) {
    finish(all);
    await turn();
  }
  await closing;
}

/** The device reaches a ticket of the stream, its last one unless another is named, and everything that hangs on it is heard. */
export async function reach({ channel, progress }: Fixture, stream: Stream, ticket: number = stream.timeline.last): Promise<void> {
  channel.complete(stream.timeline.slot, ticket);
  await settle(progress);
}

/** What was reached is heard, and whatever follows from that in a few turns. */
export async function settle(progress: CompletionPolling): Promise<void> {
  progress.wake();
  for (let n = 0; n < 5; n++) await turn();
}

/** A checked kernel of one array, which nothing compiles. */
export function shiftKernel<P extends ArrayParam>(y: P): Kernel<{ readonly y: P }> {
  return {
    name: 'shift',
    params: { y },
    source: '',
    build: {
      source: '',
      entry: 'shift',
      name: 'shift',
      options: [],
      fmad: true,
      isBounded: true,
      isChecked: true,
      mapping: { file: '', lines: [] },
    },
    [MADE]: true,
    abi: 'plain',
    indexRank: 1,
  };
}

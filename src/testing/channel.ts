// More than 400 lines: one class, whose methods answer one interface.
// A device without a thread and without native code: its records are executed in this thread, in virtual time. Everything above the
// channel (devices, streams, events, arrays, ordering between streams, failures, pipelines) is the library's own.
// Thread: owner.
import { DeviceLostError, StateError, UnavailableError, UnsupportedError } from '../core/base/errors.js';
import type { Build, FaultSource } from '../core/channel/build-spec.js';
import type { BuildReport, Channel, ModuleReport, VariableSpec } from '../core/channel/channel.js';
import type { ControlCalls, ControlName } from '../core/channel/control.js';
import { growableSharedBuffer, type GrowableSharedBuffer } from '../core/channel/host-buffers.js';
import { Encoder } from '../protocol/encoder.js';
import {
  AllocRecord,
  CopyRecord,
  FreeGraphRecord,
  FreeRecord,
  type HandleKind,
  LaunchGraphRecord,
  LaunchRecord,
  MemorySpace,
  Opcode,
  PeerRoute,
  type PeerWhat,
  RecordEventRecord,
  RecordHeader,
  Status,
  TimelineSlot,
  WaitRecord,
} from '../protocol/protocol.gen.js';
import type { ChannelStats, DeviceLoss, FailurePart, FailureRecord, NativeDeviceInfo, PoolReport } from '../protocol/reports.js';
import { Failures, firstOf } from './failures.js';
import { graphEffect, graphMs, type GraphNode, graphSteps, type NodeStep, readGraph, withTimes } from './graphs.js';
import { TestHostMemory } from './host-memory.js';
import { checkMs, decodeLaunch, type TestKernel, Unbuilt, unbuiltEffect } from './kernels.js';
import { TestStreams, type Step, type Submitted } from './streams.js';
import { type Block, copyEffect, type Effect, externalEffect, fillEffect, long, NO_EFFECT, ofCopies, stridedCopyEffect } from './memory.js';
import type { DeviceGroup } from './device-group.js';
import { TestPeerAccess } from './peer-access.js';

const SLOTS = 2048;
const MOST_ARENA = 2 ** 28;

/** How long a copy takes. */
export type CopyMs = number | ((bytes: number) => number);

export interface TestChannelSettings {
  readonly info: NativeDeviceInfo;
  readonly maxPending: number;
  readonly kernels: readonly TestKernel[];
  readonly uploadMs: CopyMs;
  readonly downloadMs: CopyMs;
}

export class TestChannel extends TestHostMemory implements Channel {
  readonly id: number;
  readonly backend = 'cpu' as const;
  readonly info: NativeDeviceInfo;
  readonly maxPending: number;
  readonly encoder: Encoder = new Encoder();
  readonly timeline: SharedArrayBuffer = new SharedArrayBuffer(SLOTS * TimelineSlot.BYTE_SIZE);
  readonly arena: GrowableSharedBuffer = growableSharedBuffer(0, MOST_ARENA);
  onLost: Channel['onLost'] = undefined;
  readonly isBinding = false;
  readonly isApart = false;
  readonly memory: Map<number, Block> = new Map();
  readonly streams: TestStreams;
  readonly #group: DeviceGroup;
  readonly #settings: TestChannelSettings;
  readonly #failures: Failures = new Failures(this.timeline);
  readonly #kernels: Map<number, TestKernel | undefined> = new Map();
  readonly #handles: number[] = [0, 0, 0, 0, 0];
  readonly #graphs: Map<number, readonly GraphNode[]> = new Map();
  /** When timing events were reached, by handle. */
  readonly #reachedMs: Map<number, number> = new Map();
  /** HOLD records that were released, as 'stream:ticket'. */
  readonly #released: Set<string> = new Set();
  readonly #peers: TestPeerAccess = new TestPeerAccess();
  /** The last EXTERNAL record of each stream whose function may be called. */
  readonly #called: Map<number, number> = new Map();
  /** Those whose functions failed, as 'stream:ticket'. */
  readonly #failing: Set<string> = new Set();
  #streams = 0;
  /** Of streams that are destroyed. */
  readonly #freeSlots: number[] = [];
  #liveBytes = 0;
  #highBytes = 0;

  constructor(group: DeviceGroup, settings: TestChannelSettings) {
    super();
    this.id = group.add(this);
    this.info = settings.info;
    this.maxPending = settings.maxPending;
    this.#group = group;
    this.#settings = settings;
    this.streams = new TestStreams(this.timeline, {
      step: (record) => this.#step(record),
      after: (ms, call) => group.clock.after(ms, call),
      onProgress: () => group.progressed(this),
    });
  }

  // ── records ──

  submit(bytes: number): number {
    if (this.streams.pending >= this.maxPending) return -Status.LIMIT;
    return this.streams.submit(this.encoder.block.slice(0, bytes));
  }

  arm(stream: number, ticket: number): boolean {
    return this.streams.completed(stream) >= ticket;
  }

  /** No other thread shares the device. */
  pendingPoints(): readonly number[] {
    return [];
  }

  lastTicket(stream: number): number {
    return this.streams.lastTicket(stream);
  }

  failures(stream: number, from: number, count: number): FailurePart {
    return this.#failures.of(stream, from, count);
  }

  reported(): void {}
  reportedOf(): void {}
  collectGarbage(): void {
    // Its memory is that of V8.
  }
  weigh(): void {
    // Its arrays are in V8's own memory.
  }

  releaseHold(stream: number, ticket: number): void {
    this.#released.add(`${stream}:${ticket}`);
    this.streams.issueWaitingSoon();
  }

  failExternal(stream: number, ticket: number): void {
    this.#failing.add(`${stream}:${ticket}`);
    this.releaseHold(stream, ticket);
  }

  readyExternal(stream: number): number {
    return this.#called.get(stream) ?? 0;
  }

  enterContext(): bigint {
    return 0n;
  }

  leaveContext(): void {}

  #step(record: Submitted): Step | undefined {
    const { opcode, view } = record;
    const nothing: Step = { ms: 0, end: () => undefined };
    switch (opcode) {
      case Opcode.ALLOC:
        return { ms: 0, end: () => this.#allocate(record) };
      case Opcode.FREE:
        return { ms: 0, end: () => this.#free(view.getUint32(FreeRecord.HANDLE, true)) };
      case Opcode.FILL:
      case Opcode.FILL_STRIDED:
      case Opcode.COPY:
      case Opcode.COPY_BATCH:
      case Opcode.COPY_STRIDED:
      case Opcode.LAUNCH:
        return this.#carryOut(record, this.#nodeStep(opcode, view));
      case Opcode.LAUNCH_GRAPH:
        return this.#launchGraph(record);
      case Opcode.FREE_GRAPH:
        return { ms: 0, end: () => void this.#graphs.delete(view.getUint32(FreeGraphRecord.GRAPH, true)) };
      case Opcode.WAIT: {
        const [device, target] = [view.getUint32(WaitRecord.DEVICE, true), view.getUint32(WaitRecord.TARGET, true)];
        return this.#group.completed(device, target) >= long(view, WaitRecord.TICKET) ? nothing : undefined;
      }
      case Opcode.HOLD:
        return this.#released.delete(`${record.stream}:${record.ticket}`) ? nothing : undefined;
      case Opcode.EXTERNAL:
        return this.#external(record);
      case Opcode.STREAM_DESTROY:
        return { ms: 0, end: () => void this.#freeSlots.push(record.stream) };
      case Opcode.RECORD_EVENT:
        return { ms: 0, end: () => void this.#reachedMs.set(view.getUint32(RecordEventRecord.HANDLE, true), this.#group.clock.now) };
      default:
        return nothing;
    }
  }

  /** The function is called when the record is the first of its stream, unless what it reads is poisoned. */
  #external(record: Submitted): Step | undefined {
    const effect = externalEffect(record.view, (handle) => this.memory.get(handle));
    const at = `${record.stream}:${record.ticket}`;
    if (effect === undefined) return undefined;
    if (!this.#released.has(at) && causeOf(effect) === 0) {
      if (this.#called.get(record.stream) !== record.ticket) this.#group.clock.after(0, () => this.#group.progressed(this));
      this.#called.set(record.stream, record.ticket);
      return undefined;
    }
    this.#released.delete(at);
    const status = this.#failing.delete(at) ? Status.FUNCTION : undefined;
    return this.#carryOut(record, { ms: 0, effect }, () => undefined, status);
  }

  #allocate({ view, stream, ticket }: Submitted): void {
    const bytes = long(view, AllocRecord.BYTES);
    const free = this.info.totalMemoryBytes - this.#liveBytes;
    const isAbsent = bytes > free;
    const block: Block = { bytes: new Uint8Array(isAbsent ? 0 : bytes), poison: 0, isAbsent };
    this.memory.set(view.getUint32(AllocRecord.HANDLE, true), block);
    this.#liveBytes += block.bytes.length;
    this.#highBytes = Math.max(this.#highBytes, this.#liveBytes);
    if (!isAbsent) return;
    block.poison = this.reserveFailure();
    this.#failures.add(stream, ticket, { id: block.poison, status: Status.OUT_OF_MEMORY, requestedBytes: bytes, freeBytes: free });
  }

  #free(handle: number): void {
    this.#liveBytes -= this.memory.get(handle)?.bytes.length ?? 0;
    this.memory.delete(handle);
  }

  #copyMs(view: DataView): number {
    const isDevice = (at: number): boolean => view.getUint16(at, true) === MemorySpace.DEVICE;
    const [toDevice, fromDevice] = [isDevice(CopyRecord.DST_SPACE), isDevice(CopyRecord.SRC_SPACE)];
    if (toDevice === fromDevice) return 0;
    const name = toDevice ? 'uploadMs' : 'downloadMs';
    const ms = this.#settings[name];
    return typeof ms === 'number' ? ms : checkMs(name, ms(long(view, CopyRecord.BYTES)));
  }

  /** What a record does that can be a node of a graph. Undefined while memory is not there yet. */
  #nodeStep(opcode: number, view: DataView): NodeStep | undefined {
    const find = (handle: number): Block | undefined => this.memory.get(handle);
    const taking = (ms: number, effect: Effect | undefined): NodeStep | undefined => (effect === undefined ? undefined : { ms, effect });
    switch (opcode) {
      case Opcode.COPY:
      case Opcode.COPY_BATCH:
        return taking(
          ofCopies(view, (copy) => this.#copyMs(copy)),
          copyEffect(view, (...at) => this.#group.block(...at)),
        );
      case Opcode.COPY_STRIDED:
        return taking(0, stridedCopyEffect(view, find));
      case Opcode.LAUNCH:
        return this.#launch(view);
      case Opcode.FILL:
      case Opcode.FILL_STRIDED:
        return taking(0, fillEffect(view, find));
      default:
        return taking(0, NO_EFFECT);
    }
  }

  #launch(view: DataView): NodeStep | undefined {
    const handle = view.getUint32(LaunchRecord.KERNEL, true);
    const kernel = this.#kernels.get(handle);
    // Its launches fail of what the build failed of.
    if (kernel === undefined) return { ms: 0, effect: unbuiltEffect(handle) };
    const decoded = decodeLaunch(kernel, view, this.id, (...at) => this.#group.block(...at));
    if (decoded === undefined) return undefined;
    const { ms = 0 } = kernel.opts;
    return { ms: typeof ms === 'number' ? ms : checkMs('ms', ms(decoded.launch)), effect: decoded.effect };
  }

  #launchGraph(record: Submitted): Step | undefined {
    const nodes = this.#graphs.get(record.view.getUint32(LaunchGraphRecord.GRAPH, true)) ?? [];
    const steps = graphSteps(nodes, record.view, {
      step: (device, view) => this.#group.channel(device).#nodeStep(view.getUint16(RecordHeader.OPCODE, true), view),
      block: (device, handle) => this.#group.channel(device).memory.get(handle),
    });
    if (steps === undefined) return undefined;
    let node: number | undefined;
    const run = graphEffect(steps, (next) => (node = next));
    const effect = withTimes(nodes, steps, run, this.#group.clock.now, this.#reachedMs);
    return this.#carryOut(record, { ms: graphMs(nodes, steps), effect }, () => node);
  }

  /** A failure poisons what the operation would have written; what reads that fails too. */
  #carryOut(
    record: Submitted,
    step: NodeStep | undefined,
    node: () => number | undefined = () => undefined,
    refused?: Status,
  ): Step | undefined {
    if (step === undefined) return undefined;
    const { writes, isWhole, run } = step.effect;
    const end = (): void => {
      const cause = causeOf(step.effect);
      if (cause !== 0) return this.#fail(record, { status: Status.UPSTREAM, cause }, step.effect);
      if (refused !== undefined) return this.#fail(record, { status: refused }, step.effect);
      try {
        run();
      } catch (error) {
        const failed = node();
        const at = failed === undefined ? {} : { node: failed };
        if (error instanceof Unbuilt) return this.#fail(record, { status: Status.COMPILE, kernel: error.kernel, ...at }, step.effect);
        const note = error instanceof Error ? error.message : String(error);
        return this.#fail(record, { status: Status.LAUNCH_FAILED, note, driverStatus: 0, ...at }, step.effect);
      }
      if (isWhole) for (const block of writes) block.poison = 0;
    };
    return { ms: step.ms, end };
  }

  #fail({ stream, ticket }: Submitted, facts: Pick<FailureRecord, 'status'> & Partial<FailureRecord>, { writes, isWhole }: Effect): void {
    const id = this.reserveFailure();
    for (const block of writes) if (block.isAbsent !== true) block.poison = firstOf([isWhole ? 0 : block.poison, facts.cause ?? id]);
    this.#failures.add(stream, ticket, { id, ...facts });
  }

  // ── what records name ──

  reserveHandles(kind: HandleKind, count: number): number {
    const first = this.#handles[kind] as number;
    this.#handles[kind] = first + count;
    return first;
  }

  defineGraph(handle: number, definition: Uint8Array): void {
    this.#graphs.set(handle, readGraph(definition));
  }

  reserveStream(): number {
    return this.#streams < SLOTS ? this.#streams++ : (this.#freeSlots.shift() ?? -1);
  }

  reserveFailure(): number {
    return this.#group.nextFailure();
  }

  build(handle: number, build: Build): Promise<BuildReport> {
    const known = this.#settings.kernels.find(({ kernel }) => kernel.build === build);
    this.#kernels.set(handle, known);
    if (known === undefined) {
      const message = `The test device has no testKernel for kernel ${build.name}, and it compiles no kernels.`;
      const help = [`Give createTestDevice kernels: [testKernel(${build.name}, { ms, run })].`];
      return Promise.reject(new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, help));
    }
    const { maxThreadsPerBlock, maxSharedBytes } = this.info;
    const limits = { maxThreadsPerBlock, maxSharedBytes, maxCooperativeBlocks: 1024, blocksAtOnce: [] };
    return Promise.resolve({ compiler: 'none', fromCache: true, ms: 0, limits });
  }

  loadModule(): Promise<ModuleReport> {
    return Promise.resolve({ compiler: 'none', fromCache: true, ms: 0 });
  }

  locate(): Promise<FaultSource> {
    return Promise.reject(unsupported('a race of shared memory'));
  }

  bindVariable(_handle: number, { name }: VariableSpec): Promise<void> {
    return Promise.reject(unsupported(`the variable ${name} of a module`));
  }

  protected override onRegistered(): void {
    this.streams.issueWaitingSoon();
  }

  streamHandle(): undefined {
    return undefined;
  }
  isPeerGranted(ordinal: number, what: PeerWhat): boolean {
    return this.#peers.report(ordinal, what).isGranted;
  }
  memoryAddress(): undefined {
    return undefined;
  }

  get address(): never {
    throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', 'Other threads cannot open a test device.', 'sharing');
  }

  endedError(): DeviceLostError {
    return new DeviceLostError('ERR_MILLRACE_LOST', 'The test device ended.', 'closed');
  }

  async ask<K extends ControlName>(name: K, ...args: Parameters<ControlCalls[K]>): Promise<ReturnType<ControlCalls[K]>> {
    const [first, second] = args as readonly number[];
    const answers: { readonly [N in ControlName]?: () => unknown } = {
      poolStats: () => this.#poolStats(),
      elapsed: () => this.#timeOf(second as number) - this.#timeOf(first as number),
      setReleaseThreshold: () => undefined,
      releaseThreshold: () => 0,
      trimPool: () => undefined,
      peerState: () => this.#peers.report(first as number, second as PeerWhat),
      setPeer: () => this.#peers.set(first as number, second as PeerWhat, args[2] === true),
      probePeer: () => PeerRoute.DIRECT,
      resetHighWater: () => void (this.#highBytes = this.#liveBytes),
    };
    const answer = answers[name];
    if (answer === undefined) throw unsupported(`what ${name} asks for`);
    return answer() as ReturnType<ControlCalls[K]>;
  }

  #timeOf(event: number): number {
    const ms = this.#reachedMs.get(event);
    if (ms === undefined) throw new StateError('ERR_MILLRACE_STATE', 'The device has not reached the event yet.');
    return ms;
  }

  #poolStats(): PoolReport {
    const { totalMemoryBytes: total } = this.info;
    const used = this.#liveBytes;
    return { total, free: total - used, used, usedHigh: this.#highBytes, reserved: used, reservedHigh: this.#highBytes };
  }

  hasTransformLibrary(): boolean {
    return false;
  }

  get callCaptures(): undefined {
    return undefined;
  }

  get communicators(): undefined {
    return undefined;
  }

  loss(): DeviceLoss | undefined {
    return undefined;
  }

  stats(): ChannelStats {
    return {
      pendingRecords: this.streams.pending,
      ringBytes: 0,
      liveMemory: this.memory.size,
      liveBytes: this.#liveBytes,
      stagingBytes: 0,
      pinnedBytes: this.arena.byteLength,
      streams: this.#streams - this.#freeSlots.length,
      parked: [],
    };
  }

  keepAlive<T>(promise: Promise<T>): Promise<T> {
    return promise;
  }

  close(): Promise<void> {
    this.streams.stop();
    this.#group.remove(this);
    return Promise.resolve();
  }

  async destroy(): Promise<undefined> {
    await this.close();
    return undefined;
  }
}

/** The failure that poisoned what the operation needs, or 0. */
function causeOf({ reads, writes }: Effect): number {
  return firstOf([...reads, ...writes.filter(({ isAbsent }) => isAbsent)].map(({ poison }) => poison));
}

function unsupported(what: string): UnsupportedError {
  return new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', `A test device does not have ${what}.`, what);
}

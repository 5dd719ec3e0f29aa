// A graph on its device: the handle, the memory that it keeps, and its place in the ordering of streams.
//
// The tracker sees one memory per graph, GraphMemory, which a launch writes. Every memory that the graph uses lists it (GraphUse), so a
// record outside of the graph that uses such bytes counts as a reader of that one memory. A launch therefore costs the same however much
// the graph uses, and a record pays for the graphs that use its memory. A memory that very many graphs use lists none of them: their
// launches access it as other records do (TrackedMemory.isCrowded).
// Thread: owner.
import { StateError } from '../base/errors.js';
import type { DeviceCore } from '../device/device-core.js';
import type { Storage } from '../memory/storage.js';
import { areInConflict, type GraphLaunch, type UsedBytes } from '../ordering/tracked-memory.js';
import type { Timeline, TimelinePartition } from '../timeline/timeline.js';
import { BarrierSlots } from './barrier-slots.js';
import { GraphMemory } from './captured-memory.js';
import type { CaptureSession, HostFunction } from './capture-session.js';
import type { PendingUse } from './captured-node.js';
import { encodeDefinition } from './graph-definition.js';
import { NamedNodes } from './graph-view.js';
import type { ArraySlot, ScalarSlot } from './slots.js';

/** Of all graphs of the thread. */
let launches = 0;

/** Events that measure the nodes. */
export interface TimedNodes {
  /** Nodes that record them, behind those of the capture. */
  records(): Iterable<{ readonly record: Uint8Array<ArrayBuffer>; readonly after: readonly number[] }>;
  /** A launch comes next on the stream. */
  begin(timeline: Timeline): void;
  noteLaunch(timeline: Timeline, ticket: number): void;
  release(): void;
}

export class GraphCore<T extends TimedNodes = TimedNodes> {
  readonly core: DeviceCore;
  readonly label: string;
  readonly handle: number;
  readonly memory: GraphMemory;
  readonly slots: readonly (ScalarSlot | ArraySlot)[];
  readonly hostFunctions: readonly HostFunction[];
  /** The other devices that run nodes. */
  readonly otherCores: readonly DeviceCore[];
  /** The other devices that run nodes or have memory that nodes use. */
  readonly usedCores: readonly DeviceCore[];
  /** The partitions that run nodes. */
  readonly partitions: readonly TimelinePartition[];
  /** The stream of a kernel or condition that uses the whole device; undefined if there is none. */
  readonly wholeStream: string | undefined;
  readonly session: CaptureSession;
  readonly #names: NamedNodes;
  readonly #barrierSlots: BarrierSlots;
  /** If the graph was captured with timing. */
  readonly timers: T | undefined;
  #state: 'open' | 'closed' = 'open';
  #isLaunched = false;
  #isUploaded = false;
  /** Uploads, and waits for addresses, that may not have finished. Like launches, they use the memories of the graph. */
  #uploads: PendingUse[] = [];

  /** `core`: the device of the stream that the graph was captured on. */
  constructor(core: DeviceCore, label: string, session: CaptureSession, slots: readonly (ScalarSlot | ArraySlot)[], timers?: T) {
    this.core = core;
    this.label = label;
    this.slots = slots;
    this.hostFunctions = session.hostFunctions;
    this.memory = new GraphMemory(core, label);
    this.session = session;
    this.#names = new NamedNodes(label, session.nodes);
    this.otherCores = [...new Set(session.nodes.map(({ stream }) => stream.core))].filter((other) => other !== core);
    const partitions = session.nodes.map(({ stream }) => stream.timeline.partition);
    this.partitions = [...new Set(partitions)].filter((partition) => partition !== undefined);
    this.wholeStream = session.nodes.find(
      ({ stream, kind, condition }) => stream.timeline.partition === undefined && (kind === 'launch' || condition !== undefined),
    )?.stream.label;
    const owners = [...session.memories.keys()].map((storage) => storage.core);
    this.usedCores = [...new Set([...this.otherCores, ...owners])].filter((other) => other !== core);
    this.handle = core.handles.graphs.take();
    try {
      this.#barrierSlots = new BarrierSlots(session.nodes);
    } catch (error) {
      core.handles.graphs.giveBackNow(this.handle);
      throw error;
    }
    this.timers = timers;
    const timed = [...(timers?.records() ?? [])].map((node) => ({ ...node, stream: { core }, slots: [] }));
    const nodes = [...session.nodes, ...timed];
    core.channel.defineGraph(
      this.handle,
      encodeDefinition(nodes, session.entryCount, (node) => this.#barrierSlots.of(node)),
    );
    for (const [storage, captured] of session.memories) this.#use(storage, captured.used());
    for (const external of session.externals) {
      const use = external.begin();
      if (use !== undefined) this.#uploads.push(use);
    }
  }

  /** The memories that it uses, and how. */
  *uses(): Iterable<UsedBytes & { readonly storage: Storage }> {
    for (const [storage, captured] of this.session.memories) for (const use of captured.used()) yield { ...use, storage };
  }

  /** Was this form of the graph launched? */
  get isLaunched(): boolean {
    return this.#isLaunched;
  }

  /** Throws StateError after `close`. */
  checkOpen(): void {
    if (this.#state === 'open') return;
    const { label, core } = this;
    throw new StateError('ERR_MILLRACE_STATE', `Graph ${label} of device ${core.name} is closed.`, { device: core.name });
  }

  /** Throws StateError if the graph reads an array of another capture that has no contents yet. */
  checkContents(): void {
    for (const { hasContents, label, madeAt } of this.session.readFirst) {
      if (hasContents) continue;
      const array = `array ${label}${madeAt === undefined ? '' : ` (made at ${madeAt})`}`;
      const message = `Graph ${this.label} reads ${array}, which another capture allocated and which has no contents yet: launch the graph of that capture first.`;
      throw new StateError('ERR_MILLRACE_STATE', message, { device: this.core.name });
    }
  }

  /** The graph with the nodes of another capture. Its launches come after those of this one, which is closed. */
  replacedBy(session: CaptureSession, slots: readonly (ScalarSlot | ArraySlot)[], timers: T | undefined): GraphCore<T> {
    const next = new GraphCore(this.core, this.label, session, slots, timers);
    next.memory.launch = this.memory.launch;
    this.close();
    return next;
  }

  /** An upload was submitted. */
  uploaded(upload: PendingUse): void {
    this.#isUploaded = true;
    this.#uploads = [...this.#uploads.filter(({ timeline, ticket }) => !timeline.hasReached(ticket)), upload];
  }

  /** A launch was submitted. */
  launched({ timeline, ticket, info, isOrdered }: Omit<GraphLaunch, 'nth'>): void {
    const { withoutContents, writtenFirst } = this.session;
    if (!this.#isLaunched) for (const storage of [...withoutContents, ...writtenFirst]) storage.hasContents = true;
    this.#isLaunched = true;
    if (timeline.graphLaunches.add(ticket, this.#names)) {
      this.core.failures.note(timeline);
      timeline.graphLaunches.forget(timeline.known);
    }
    for (const event of this.session.events) event.noteLaunch(timeline, ticket);
    this.timers?.noteLaunch(timeline, ticket);
    // Field by field: spreading an object costs more than the rest of a launch.
    this.memory.launch = { timeline, ticket, info, isOrdered, nth: ++launches };
  }

  /** Does the graph use bytes of this memory in a way that conflicts with an access? */
  conflictsWith(memory: Storage, start: number, end: number, isWrite: boolean): boolean {
    const captured = this.session.memories.get(memory);
    return captured?.used().some((use) => areInConflict(use, { start, end, isWrite })) === true;
  }

  /** Refuses further launches, and lets the device free what the graph keeps after the launches that were submitted. Idempotent. */
  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    const { core, handle, memory } = this;
    for (const other of memory.conflicts) other.conflicts.delete(memory);
    core.frees.freeAfter([...memory.users], (timeline) => {
      const ticket = core.submit(timeline, core.encoder.freeGraph(timeline.slot, handle));
      core.handles.graphs.giveBack(handle, timeline, ticket);
      this.#barrierSlots.giveBackAfter(timeline, ticket);
      this.session.dropExternals((external) => external.dropAfter(timeline, ticket, this.#isLaunched || this.#isUploaded));
    });
    this.timers?.release();
    // The memories are freed after the uploads and the launches: they list the graph until then.
    for (const { timeline, ticket, info } of this.#uploads)
      for (const storage of this.session.memories.keys()) storage.access(timeline, ticket, 0, storage.byteLength, 'readback', info, false);
    this.session.release();
    for (const storage of this.session.memories.keys()) storage.dropGraph(memory);
  }

  #use(storage: Storage, uses: readonly UsedBytes[]): void {
    const others = storage.graphUses;
    storage.addGraph(this.memory, uses);
    if (storage.isCrowded) return;
    // What was submitted before the graph existed counts as a reader of its memory.
    this.memory.takeUsersOf(storage, false);
    for (const other of others) {
      if (other.graph instanceof GraphMemory && uses.some((use) => areInConflict(use, other))) this.#conflictWith(other.graph);
    }
  }

  #conflictWith(other: GraphMemory): void {
    this.memory.conflicts.add(other);
    other.conflicts.add(this.memory);
  }
}

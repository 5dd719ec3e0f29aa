// More than 400 lines: all of one class.
// A capture in progress: takes the records of its streams and lists them as nodes, with the nodes that each must come after.
//
// While a capture runs, each of its streams writes to a Timeline of the capture instead of its own. `DeviceCore.submit` hands every record
// of such a timeline to `add`, and the waits that the access tracker would submit arrive at `follow`. So the checks, the encoding and the
// ordering of a captured call are those of any other call, and this file only keeps lists.
//
// A node comes after the node before it on its stream, and after the nodes that its stream was made to wait for since then.
// Thread: owner. The body of a capture is synchronous, so a thread has one session at a time.
import { EventKind, LaunchArg, Opcode, RecordEventRecord } from '../../protocol/protocol.gen.js';
import { badArgument } from '../base/arguments.js';
import { CaptureError, type CaptureReason } from '../base/errors.js';
import type { OperationKind } from '../base/snapshots.js';
import type { DeviceCore } from '../device/device-core.js';
import { Storage } from '../memory/storage.js';
import { type CapturedAllocation, type RecordedEvent, type SlotUse, type StreamRecording, Timeline } from '../timeline/timeline.js';
import { CapturedAllocations } from './captured-allocations.js';
import { CapturedMemory } from './captured-memory.js';
import {
  type CapturedNode,
  type CapturedStream,
  type Condition,
  copyNode,
  type ExternalNode,
  type LaunchParty,
  type SlotNeed,
  KINDS,
  REFUSED,
} from './captured-node.js';
import { KeptRecords } from './kept-records.js';
import { fillIn } from './slot-entries.js';
import { type ArraySlot, entriesOf, type ScalarSlot } from './slots.js';

/** A function that a captured `host` call gave. */
export interface HostFunction {
  readonly fn: () => unknown;
  readonly label: string | undefined;
}

const NO_SLOTS: readonly SlotUse[] = [];
const NO_RECORD: Uint8Array<ArrayBuffer> = new Uint8Array(0);

/** A stream in the session, and what its next node comes after. */
class SessionStream implements CapturedStream {
  readonly core: DeviceCore;
  readonly label: string;
  readonly timeline: Timeline;
  /** Of the stream itself. */
  readonly outside: Timeline;
  /** The node of each ticket, from ticket 1 on. */
  readonly nodes: number[] = [];
  after: Set<number> = new Set();

  constructor(core: DeviceCore, timeline: Timeline, outside: Timeline) {
    this.core = core;
    this.label = outside.label;
    this.timeline = timeline;
    this.outside = outside;
  }

  /** The nodes that its next node comes after, in order. */
  before(): number[] {
    const last = this.nodes.at(-1);
    if (last === undefined) return inOrder(this.after);
    return this.after.size === 0 ? [last] : inOrder(new Set(this.after).add(last));
  }
}

export class CaptureSession implements StreamRecording {
  readonly nodes: CapturedNode[] = [];
  readonly memories: Map<Storage, CapturedMemory> = new Map();
  /** What copies and fills need of the arrays of slots. */
  readonly needs: Map<ArraySlot, SlotNeed> = new Map();
  /** Slots that are filled: their lengths are further entries, in this order. */
  readonly lengths: ArraySlot[] = [];
  readonly #ownEntries: number;
  /** Functions of `host` calls: each launch of the graph calls them after it. */
  readonly hostFunctions: HostFunction[] = [];
  /** Events with timing: each launch of the graph records them. */
  readonly events: RecordedEvent[] = [];
  /** Of its nodes, and of those of embedded graphs and bodies. */
  readonly externals: Set<ExternalNode> = new Set();
  /** The same: what has to do with each launch. */
  readonly parties: Set<LaunchParty> = new Set();
  readonly #allocations: CapturedAllocations = new CapturedAllocations();
  /** Memory that the capture allocated. */
  readonly allocated: Storage[] = [];
  /** Memory that has no contents before the graph is launched: `allocated`, and that of embedded graphs. */
  readonly withoutContents: Set<Storage> = new Set();
  /** Memory of other captures, without contents when this capture used it: a node reads it before any node writes it. */
  readonly readFirst: Set<Storage> = new Set();
  /** The same, but a node writes it before any node reads it. */
  readonly writtenFirst: Set<Storage> = new Set();
  readonly #entries: Map<object, number> = new Map();
  readonly #streams: Map<Timeline, SessionStream> = new Map();
  /** By the node that comes after all of an embedded graph. */
  readonly #embedded: Map<CapturedNode, CaptureSession> = new Map();
  /** How many conditions are around its nodes. */
  readonly depth: number = 0;
  /** While the body of a condition is captured: the call that it was given to. */
  bodyOf: string | undefined = undefined;
  /** Of the conditions among its nodes. */
  readonly #bodies: CaptureSession[] = [];
  #isOver = false;
  readonly #records: KeptRecords = new KeptRecords();

  /** Of the graph; for a condition outside of a capture, the name of the call. */
  readonly label: string;
  /** Whether it captures a condition outside of a capture. */
  readonly isCall: boolean;

  /** `slots`: in the order of their entries. */
  constructor(label: string, slots: readonly (ScalarSlot | ArraySlot)[], isCall = false) {
    this.label = label;
    this.isCall = isCall;
    let count = 0;
    for (const slot of slots) {
      this.#entries.set(slot, count);
      count += entriesOf(slot);
    }
    this.#ownEntries = count;
  }

  /** A timeline of the session for a stream that joins it. */
  join(core: DeviceCore, outside: Timeline): Timeline {
    const timeline = Timeline.ofCapture(core.channel, outside.label, core.tracker.newClock(), this);
    timeline.begin();
    timeline.partition = outside.partition;
    this.#streams.set(timeline, new SessionStream(core, timeline, outside));
    return timeline;
  }

  outside(timeline: Timeline): Timeline {
    return this.#of(timeline).outside;
  }

  own(timeline: Timeline): Timeline {
    return (this.#streams.get(timeline) as SessionStream).outside;
  }

  /** The number of entries that each launch of the graph gives. */
  get entryCount(): number {
    return this.#ownEntries + this.lengths.length;
  }

  entryOf(slot: object): number | undefined {
    return this.#entries.get(slot);
  }

  /** The entry of the length of the slot's array. */
  lengthEntryOf(slot: ArraySlot): number {
    const known = this.lengths.indexOf(slot);
    return this.#ownEntries + (known < 0 ? this.lengths.push(slot) - 1 : known);
  }

  /** A node uses the first `elements` elements of the slot's arrays, or all of them, which are so many. */
  need(slot: ArraySlot, elements: number, isExact: boolean): void {
    const { least = 0, exact } = this.needs.get(slot) ?? {};
    const next = { least: Math.max(least, elements), exact: isExact ? elements : exact };
    if ((exact !== undefined && exact !== (next.exact as number)) || (next.exact !== undefined && next.least > next.exact)) {
      const lengths = `one node needs ${isExact ? 'exactly' : 'at least'} ${elements} elements, an earlier node needs ${exact === undefined ? `at least ${least}` : `exactly ${exact}`}`;
      const message = `No array fits slot ${slot.name} of graph ${this.label}: ${lengths}.`;
      throw badArgument(slot.name, slot, message, exact ?? least);
    }
    this.needs.set(slot, next);
  }

  add(timeline: Timeline, block: Uint8Array): number {
    const opcode = block[0] as number;
    const kind = KINDS.get(opcode);
    if (kind === undefined) {
      throw this.refusal(timeline, 'unsupported-node', `a graph cannot contain ${REFUSED.get(opcode) ?? `a record of opcode ${opcode}`}`);
    }
    const stream = this.#of(timeline);
    if (kind === 'record') this.#checkEvent(stream, block);
    return this.#put(stream, kind, this.#records.keep(block), stream.before());
  }

  name(timeline: Timeline, kind: OperationKind, label: string | undefined): void {
    const node = this.nodes[this.#of(timeline).nodes.at(-1) ?? -1];
    if (node === undefined) return;
    node.label = label;
    if ((node.kind !== 'empty' || kind === 'host') && node.condition === undefined) node.kind = kind;
  }

  takeSlots(timeline: Timeline, slots: readonly SlotUse[]): void {
    this.#last(timeline).slots = slots;
  }

  takeBarrier(timeline: Timeline, arg: number): void {
    this.#last(timeline).barrierArg = arg;
  }

  /** Of a function that the timeline's stream calls, or of an embedded graph. */
  addExternal(external: ExternalNode): void {
    if (this.externals.has(external)) return;
    external.keep();
    this.externals.add(external);
  }

  /** Throws CaptureError in a partition, and in the body of a condition: how often it runs is not known at a launch. */
  checkParty(timeline: Timeline): void {
    if (this.depth > 0) throw this.refusal(timeline, 'unsupported-node', 'the body of a condition cannot contain a collective');
    this.refuseInPartition(timeline, 'a collective');
  }

  addParty(party: LaunchParty): void {
    this.parties.add(party);
  }

  addHost(host: HostFunction): void {
    this.hostFunctions.push(host);
  }

  addEvent(event: RecordedEvent): void {
    event.hold();
    this.events.push(event);
  }

  addAllocation(memory: object, allocation?: CapturedAllocation): void {
    if (!(memory instanceof Storage)) return;
    this.allocated.push(memory);
    this.withoutContents.add(memory);
    if (allocation !== undefined) this.#allocations.add(memory, allocation);
  }

  /** Throws CaptureError for a node that cannot run on the share of the timeline's stream. */
  refuseInPartition(timeline: Timeline, what: string): void {
    if (timeline.partition === undefined) return;
    const instead = 'the graph can contain it on a stream without a partition';
    throw this.refusal(timeline, 'unsupported-node', `the stream is of a partition, and a graph cannot contain ${what} there; ${instead}`);
  }

  /** The captured function has returned: allocates the memory of its arrays. */
  bindAllocations(): void {
    this.#allocations.bind(this.nodes);
  }

  useWithoutContents(memory: object, isRead: boolean): void {
    const node = this.nodes.at(-1) as CapturedNode;
    if (memory instanceof Storage) this.#allocations.use(memory, this.nodes.length - 1, this.#embedded.has(node));
    if (!(memory instanceof Storage) || memory.hasContents || this.withoutContents.has(memory) || this.writtenFirst.has(memory)) return;
    (isRead ? this.readFirst : this.writtenFirst).add(memory);
  }

  /**
   * Adds the nodes of another graph, after what the timeline's next node comes after. `entries`: the values of its slots. Returns a ticket
   * that comes after all of them.
   */
  embed(timeline: Timeline, graph: CaptureSession, entries: Uint8Array, nop: Uint8Array): number {
    const stream = this.#of(timeline);
    if (graph.parties.size > 0) this.checkParty(timeline);
    for (const party of graph.parties) this.addParty(party);
    const before = stream.before();
    const first = this.nodes.length;
    const leaves = new Set<number>();
    const streams = new Map<CapturedStream, CapturedStream>();
    for (const node of graph.nodes) {
      const { after, slots, record } = node;
      leaves.add(this.nodes.length);
      for (const earlier of after) leaves.delete(first + earlier);
      const given = this.#records.keep(record);
      for (const { arg, entry } of slots)
        fillIn(given, arg, entries.subarray(entry * LaunchArg.BYTE_SIZE, (entry + 1) * LaunchArg.BYTE_SIZE));
      this.nodes.push({
        ...copyNode(node, streams),
        record: given,
        slots: NO_SLOTS,
        after: after.length > 0 ? after.map((earlier) => first + earlier) : before,
      });
    }
    this.hostFunctions.push(...graph.hostFunctions);
    for (const event of graph.events) this.addEvent(event);
    for (const external of graph.externals) this.addExternal(external);
    for (const memory of graph.readFirst) this.useWithoutContents(memory, true);
    for (const memory of graph.withoutContents) this.withoutContents.add(memory);
    const ticket = this.#put(stream, 'empty', this.#records.keep(nop), inOrder(leaves));
    this.#embedded.set(this.nodes.at(-1) as CapturedNode, graph);
    return ticket;
  }

  /** Adds a condition. The bodies were captured on the stream. Returns its ticket. */
  addCondition(
    timeline: Timeline,
    kind: 'if' | 'while' | 'switch',
    condition: Omit<Condition, 'bodies'>,
    bodies: readonly CaptureSession[],
  ): number {
    this.refuseInPartition(timeline, `a condition`);
    const stream = this.#of(timeline);
    this.#bodies.push(...bodies);
    for (const { withoutContents, readFirst, externals } of bodies) {
      for (const external of externals) this.addExternal(external);
      for (const memory of readFirst) this.useWithoutContents(memory, true);
      for (const memory of withoutContents) this.withoutContents.add(memory);
    }
    const given = { ...condition, bodies: bodies.map(({ nodes }) => nodes) };
    return this.#put(stream, kind, NO_RECORD, stream.before(), given);
  }

  awaited(timeline: Timeline): readonly number[] {
    return [...(this.#streams.get(timeline)?.after ?? [])];
  }

  follow(timeline: Timeline, other: Timeline, ticket: number, nodes: readonly number[] = []): void {
    if (timeline.recording !== this || other.recording !== this || this.#isOver) throw this.#isolation(timeline, other);
    const node = this.#of(other).nodes[ticket - 1];
    if (node !== undefined) this.#of(timeline).after.add(node);
    for (const earlier of nodes) this.#of(timeline).after.add(earlier);
  }

  memoryOf<M extends object>(memory: M): M {
    if (!(memory instanceof Storage)) return memory;
    let standIn = this.memories.get(memory);
    if (standIn === undefined) {
      standIn = new CapturedMemory(memory);
      this.memories.set(memory, standIn);
      memory.keep();
    }
    // The tracker asks for a TrackedMemory.
    return standIn as object as M;
  }

  refusal(timeline: Timeline, reason: CaptureReason, what: string): CaptureError {
    const state = this.#isOver ? 'was captured' : 'is being captured';
    const doing = this.isCall ? `runs a ${this.label}` : `${state} for graph ${this.label}`;
    const message = `Stream ${timeline.label} of device ${timeline.log.device} ${doing}: ${what}.`;
    return new CaptureError(message, reason, { device: timeline.log.device, stream: timeline.label });
  }

  /**
   * The last nodes of streams that the first stream, at its end, does not come after, by stream. The graph waits for them in any case.
   */
  unjoined(): string[] {
    const [first] = this.#streams.values();
    if (first === undefined) return [];
    const reached = new Set<number>();
    const open = [...first.after, ...first.nodes.slice(-1)];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (reached.has(node)) continue;
      reached.add(node);
      open.push(...(this.nodes[node] as CapturedNode).after);
    }
    return [...this.#streams.values()].filter(({ nodes }) => nodes.some((node) => !reached.has(node))).map(({ label }) => label);
  }

  /** The node of a ticket, and the graph that it embeds; undefined for another timeline than those of the capture. */
  captured(timeline: Timeline, ticket: number): { readonly node: CapturedNode; readonly embedded: CaptureSession | undefined } | undefined {
    const at = this.#streams.get(timeline)?.nodes[ticket - 1];
    const node = at === undefined ? undefined : this.nodes[at];
    return node && { node, embedded: this.#embedded.get(node) };
  }

  /** The body has returned or thrown: the session takes no further records. */
  end(): void {
    this.#isOver = true;
    for (const { timeline } of this.#streams.values()) timeline.clockEntry.end();
  }

  /** The capture failed: its arrays are disposed. */
  abandon(): void {
    for (const storage of this.allocated) if (!storage.isDisposed) storage.freeBy(() => storage.free());
    this.release();
    this.dropExternals((external) => external.drop());
  }

  /** Nothing of the capture names them any more, or from some point on. */
  dropExternals(drop: (external: ExternalNode) => void): void {
    for (const external of this.externals) drop(external);
    this.externals.clear();
    for (const body of this.#bodies) body.dropExternals(drop);
  }

  /** The capture failed, or its graph is gone: lets go of what it kept. */
  release(): void {
    for (const memory of this.memories.keys()) memory.release();
    for (const event of this.events) event.release();
    for (const body of this.#bodies) body.release();
  }

  /** Throws CaptureError for the record of an event that a graph cannot contain. */
  #checkEvent({ core, timeline }: SessionStream, record: Uint8Array): void {
    const refuse = (what: string): Error =>
      this.refusal(timeline, 'unsupported-node', `a graph cannot contain the record of an event ${what}`);
    if (record[RecordEventRecord.KIND] !== EventKind.TIMING) throw refuse('for other processes');
    if (this.depth > 0) throw refuse('in the body of a condition');
    const [first] = this.#streams.values();
    if (first === undefined || first.core === core) return;
    throw refuse(`with timing on another device than that of its first stream (${first.core.name})`);
  }

  /** `after`: the nodes that it comes after, in order. */
  #put(
    stream: SessionStream,
    kind: CapturedNode['kind'],
    record: CapturedNode['record'],
    after: readonly number[],
    condition?: Condition,
  ): number {
    const { timeline } = stream;
    stream.nodes.push(this.nodes.length);
    this.nodes.push({ kind, record, label: undefined, stream, after, slots: NO_SLOTS, condition, barrierArg: undefined });
    if (stream.after.size > 0) stream.after = new Set();
    timeline.last++;
    timeline.log.add(timeline.last, record[0] ?? Opcode.NOP);
    return timeline.last;
  }

  /** The last node of a timeline that has one. */
  #last(timeline: Timeline): CapturedNode {
    return this.nodes[this.#of(timeline).nodes.at(-1) as number] as CapturedNode;
  }

  #of(timeline: Timeline): SessionStream {
    const stream = this.#streams.get(timeline);
    if (stream === undefined || this.#isOver) throw this.refusal(timeline, 'isolation', 'its capture is over');
    if (this.bodyOf !== undefined) {
      const what = `while the body of a ${this.bodyOf} is being captured, only the stream of the body takes operations`;
      throw this.refusal(timeline, 'isolation', what);
    }
    return stream;
  }

  #isolation(timeline: Timeline, other: Timeline): CaptureError {
    const [inside, outside] = timeline.recording === this ? [timeline, other] : [other, timeline];
    if (this.#isOver) {
      return this.refusal(
        inside,
        'isolation',
        `stream ${outside.label} cannot wait for a captured operation; launch the graph and wait for the launch`,
      );
    }
    return this.refusal(
      inside,
      'isolation',
      timeline === inside ? this.#cannotWaitFor(outside) : `stream ${outside.label} of another capture cannot wait for it`,
    );
  }

  #cannotWaitFor(outside: Timeline): string {
    const instead = 'let the stream that launches the graph wait for it, before the launch';
    if (outside.recording !== undefined) return `it cannot wait for work of another graph on stream ${outside.label}; ${instead}`;
    if ([...this.#streams.values()].some((stream) => stream.outside === outside))
      return `it cannot wait for work of stream ${outside.label} from before the capture; ${instead}`;
    const joins = 'to make the stream part of the capture, let it wait for a captured one first';
    return `it cannot wait for stream ${outside.label}, which is not part of the capture; ${joins}; to order launches after its work, ${instead}`;
  }
}

function inOrder(nodes: Iterable<number>): number[] {
  return [...nodes].toSorted((a, b) => a - b);
}

// The accesses of one record: collected, ordered after earlier accesses, and written down once the record is submitted.
//
//   const record = tracker.begin(stream);
//   record.add(memory, start, end, isWrite) ...; record.order(kind, label); <encode and submit>; record.commit(ticket)
//
// or, where one of these throws, `record.abandon()`. Nothing is remembered before `commit`, so a record that was refused changes no order.
//
// These objects are scratch space that the tracker uses again, so a launch allocates none. A getter of an argument may submit another
// record before the first one is submitted. That inner record has scratch space of its own, and its end restores the half-written
// outer record in the encoder, which the thread has only one of.
// Thread: owner.
import type { OperationKind } from '../base/snapshots.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import type { AccessInterval } from './access-history.js';
import type { AccessInfo, AccessInfos } from './access-info.js';
import { waitOnDevice } from './wait-records.js';
import { endedError, type GivenBytes, hazardError, noContents, sameBytes } from './hazards.js';
import type { LatestAccesses } from './latest-accesses.js';
import type { NodesOfLaunch } from './nodes-of-launch.js';
import type { OrderedStream } from './ordered-stream.js';
import type { TrackedMemory } from './tracked-memory.js';
import { type Clocks, entryOf } from './vector-clock.js';

/** Bytes of a memory that a record uses. */
interface Use {
  /** Undefined between records. */
  memory: TrackedMemory | undefined;
  start: number;
  end: number;
  isWrite: boolean;
  /** The parameter of the kernel that gets them. */
  name: string | undefined;
}

export class RecordAccesses {
  readonly #clocks: Clocks;
  readonly #infos: AccessInfos;
  readonly #outer: RecordAccesses | undefined;
  #inner: RecordAccesses | undefined = undefined;
  /** What the encoder held of the outer record when this one began. */
  #outerBytes: Uint8Array | undefined = undefined;
  #stream: OrderedStream | undefined = undefined;
  #info: AccessInfo | undefined = undefined;
  /** The first `#count` are of this record; the others are kept for later records. */
  readonly #uses: Use[] = [];
  #count = 0;
  /** One of the memories was used by another stream when it was added. */
  #isShared = false;
  /** Since this one began, another record was submitted, or something ended that it may use. */
  #isInterrupted = false;
  /** In a capture: memory without contents. */
  readonly #empty: { readonly memory: TrackedMemory; readonly isRead: boolean }[] = [];
  /** The points that the record has to come after: of each stream the last. */
  readonly #after: Map<Timeline, number> = new Map();
  /** The same without the copies of `read`, with the clocks that the stream's clock takes over. */
  readonly #followed: Map<Timeline, Point> = new Map();

  /** `outer`: the scratch space of the record that this one interrupts. */
  constructor(clocks: Clocks, infos: AccessInfos, outer?: RecordAccesses) {
    this.#clocks = clocks;
    this.#infos = infos;
    this.#outer = outer;
  }

  /** Is a record being made in this scratch space? */
  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  /** Does the record interrupt another one? */
  get isNested(): boolean {
    return this.#outer !== undefined;
  }

  /** Scratch space for a record that interrupts this one. */
  get inner(): RecordAccesses {
    this.#isInterrupted = true;
    return (this.#inner ??= new RecordAccesses(this.#clocks, this.#infos, this));
  }

  begin(stream: OrderedStream): void {
    if (this.#outer !== undefined) this.#outerBytes = this.#outer.#block.slice();
    this.#stream = stream;
    this.#count = 0;
  }

  /** An array was disposed, or a stream closed. */
  interrupt(): void {
    if (!this.isOpen) return;
    this.#isInterrupted = true;
    this.#inner?.interrupt();
  }

  /** Two parameters of a launch get the same bytes, and the kernel writes them: on checked streams a hazard, elsewhere a warning. */
  checkSameBytes(label: string): void {
    for (let i = 1; i < this.#count; i++) {
      const use = this.#uses[i] as Use;
      for (let j = 0; j < i; j++) {
        const other = this.#uses[j] as Use;
        if (other.memory === use.memory && (use.isWrite || other.isWrite) && this.#areSame(other, use, label)) return;
      }
    }
  }

  /**
   * The record accesses bytes `start` to `end` of the memory, counted from its own start and not from that of the allocation. For a view
   * with gaps, the range is from its first byte to its last. `name`: the parameter of a kernel that gets them.
   */
  add(memory: TrackedMemory, start: number, end: number, isWrite: boolean, isRead: boolean = !isWrite, name?: string): void {
    const { timeline } = this.#stream as OrderedStream;
    const { recording } = timeline;
    if (recording !== undefined) {
      if (!memory.hasContents) this.#empty.push({ memory, isRead });
      memory = recording.memoryOf(memory);
    } else if (memory.graphUses.length > 0) this.#addGraphs(memory, start, end, isWrite, isRead);
    if (memory.isShared(timeline)) this.#isShared = true;
    const at = this.#count++;
    if (at === this.#uses.length) {
      this.#uses.push({ memory, start, end, isWrite, name });
      return;
    }
    const use = this.#uses[at] as Use;
    use.memory = memory;
    use.start = start;
    use.end = end;
    use.isWrite = isWrite;
    use.name = name;
  }

  /** The record uses memory that graphs use too: it counts as a reader of the launches that it conflicts with. */
  #addGraphs(memory: TrackedMemory, start: number, end: number, isWrite: boolean, isRead: boolean): void {
    if (isRead && !memory.hasContents) throw noContents(memory);
    memory.whenUsed?.();
    memory.hasContents = true;
    memory.beginAccess(start, end, isWrite, (graph) => this.add(graph, 0, graph.byteLength, false));
  }

  /**
   * Submits the waits that the record needs (tracked), or throws a StreamHazardError (checked). `label` is the label of the operation. On
   * a stream with timing, the operation's time begins after the waits. `nodes`: of a launch of a graph.
   */
  order(kind: OperationKind, label: string | undefined, nodes?: NodesOfLaunch): void {
    const stream = this.#stream as OrderedStream;
    if (this.#isInterrupted) this.#checkEndings(stream);
    if (this.#isShared || (this.#isInterrupted && this.#isSharedNow(stream.timeline))) this.#orderAfterOthers(stream, kind, label, nodes);
    if (stream.timeline.recording === undefined) stream.timer?.start();
    // The record's clock is the stream's clock after the waits.
    this.#info = this.#infos.of(stream, kind, label, nodes);
  }

  /** The record was submitted and has this ticket. Returns what its accesses are known by. */
  commit(ticket: number): AccessInfo {
    const { core, timeline, ordering, isReadback } = this.#stream as OrderedStream;
    const info = this.#info as AccessInfo;
    const isOrdered = ordering !== 'explicit';
    if (this.#empty.length > 0) for (const { memory, isRead } of this.#empty) timeline.recording?.useWithoutContents(memory, isRead);
    for (let i = 0; i < this.#count; i++) {
      const use = this.#uses[i] as Use;
      const { start, end, isWrite } = use;
      const memory = use.memory as TrackedMemory;
      use.memory = undefined;
      if (isReadback === true || !memory.accessAlone(timeline, ticket, start, end, isWrite, info)) {
        const mode = isWrite ? 'write' : isReadback === true ? 'readback' : 'read';
        memory.access(timeline, ticket, start, end, mode, info, isOrdered);
      }
      if (memory.core !== core && timeline.recording === undefined) memory.core.peerUsers.add(timeline, ticket);
    }
    this.#count = 0;
    this.abandon();
    return info;
  }

  /** Orders and submits the record that `encode` writes, remembers its accesses, and returns its ticket. For records without arguments. */
  submit(kind: OperationKind, label: string | undefined, encode: () => number): number {
    const { core, timeline } = this.#stream as OrderedStream;
    try {
      this.order(kind, label);
      const ticket = core.submit(timeline, encode());
      this.commit(ticket);
      return ticket;
    } catch (error) {
      this.abandon();
      throw error;
    }
  }

  /** Ends the record without remembering it: it was refused, or uses no memory. Scratch space lives as long as the thread, so it lets go. */
  abandon(): void {
    for (let i = 0; i < this.#count; i++) (this.#uses[i] as Use).memory = undefined;
    this.#count = 0;
    if (this.#empty.length > 0) this.#empty.length = 0;
    this.#isShared = false;
    this.#isInterrupted = false;
    this.#stream = undefined;
    this.#info = undefined;
    if (this.#outerBytes === undefined) return;
    (this.#outer as RecordAccesses).#block.set(this.#outerBytes);
    this.#outerBytes = undefined;
  }

  /** A getter among the arguments has ended something. */
  #checkEndings(stream: OrderedStream): void {
    stream.checkOpen?.();
    for (let i = 0; i < this.#count; i++) if (this.#memory(i).isGone) throw endedError(this.#memory(i));
  }

  #areSame(one: Use, other: Use, label: string): boolean {
    if (one.name === undefined || other.name === undefined || Math.max(one.start, other.start) >= Math.min(one.end, other.end))
      return false;
    const stream = this.#stream as OrderedStream;
    sameBytes(stream, { ...this.#infos.of(stream, 'launch', label), label }, one as GivenBytes, other as GivenBytes);
    return true;
  }

  #memory(i: number): TrackedMemory {
    return (this.#uses[i] as Use).memory as TrackedMemory;
  }

  /** Where the encoder writes the record. */
  get #block(): Uint8Array {
    return (this.#stream as OrderedStream).core.encoder.block;
  }

  /** Has another stream used one of the memories? A record that interrupted this one may have. */
  #isSharedNow(timeline: Timeline): boolean {
    for (let i = 0; i < this.#count; i++) if (this.#memory(i).isShared(timeline)) return true;
    return false;
  }

  #orderAfterOthers(stream: OrderedStream, kind: OperationKind, label: string | undefined, nodes: NodesOfLaunch | undefined): void {
    try {
      // Finding the place in user code costs more than a launch, so only a refusal asks for it here.
      if (stream.ordering === 'checked') this.#check(stream, () => this.#infos.of(stream, kind, label, nodes), nodes);
      this.#wait(stream);
    } finally {
      this.#after.clear();
      this.#followed.clear();
    }
  }

  /** Refuses the record if it races with an earlier access. Nothing has been submitted yet. */
  #check(stream: OrderedStream, info: () => AccessInfo, nodes: NodesOfLaunch | undefined): void {
    let unnamed: Error | undefined;
    for (let i = 0; i < this.#count; i++) {
      // The histories of the memories have the launches, too.
      if (nodes === undefined && this.#memory(i).isOfGraph) continue;
      const isWrite = (this.#uses[i] as Use).isWrite;
      this.#visit(i, ({ writes, reads }) => {
        unnamed ??= this.#checkAfter(stream, i, writes, true, info);
        if (isWrite) unnamed ??= this.#checkAfter(stream, i, reads, false, info);
      });
    }
    if (unnamed !== undefined) throw unnamed;
  }

  /** Throws the error of a hazard, or returns it if its array may still be found. */
  #checkAfter(
    { core, timeline }: OrderedStream,
    i: number,
    earlier: LatestAccesses,
    isWrite: boolean,
    info: () => AccessInfo,
  ): Error | undefined {
    for (const first of earlier) {
      if (entryOf(timeline).comesAfter(entryOf(first.timeline), first.ticket)) continue;
      const memory = this.#memory(i);
      const second = { timeline, info: info(), isWrite: (this.#uses[i] as Use).isWrite };
      const own = { ...(this.#uses[i] as Use), memory, isWrite };
      const bytes = memory.isOfGraph ? second.info.nodes?.conflictWith(first.timeline, first.ticket) : own;
      const error = hazardError(bytes ?? own, core.name, { ...first, isWrite: (bytes ?? own).isWrite }, second);
      if (bytes === undefined) return error;
      throw error;
    }
    return undefined;
  }

  /** Tracked streams wait for the records of user code. Streams of every ordering wait for the copies of `read`. */
  #wait({ core, timeline, ordering, isReadback }: OrderedStream): void {
    // Readbacks may run on any stream, so their waits add no happens-before edges to it.
    const follows = isReadback !== true && this.#clocks.areKept;
    let isWrite = false;
    const see = ({ writes, reads, readbacks }: AccessInterval): void => {
      if (isWrite && readbacks !== undefined) this.#comeAfter(readbacks, timeline, false);
      if (ordering !== 'tracked') return;
      this.#comeAfter(writes, timeline, follows);
      if (isWrite) this.#comeAfter(reads, timeline, follows);
    };
    for (let i = 0; i < this.#count; i++) {
      isWrite = (this.#uses[i] as Use).isWrite;
      this.#visit(i, see);
    }
    for (const [other, ticket] of this.#after) waitOnDevice(core, timeline, other, ticket, 'array');
    for (const [other, { ticket, clock }] of this.#followed) entryOf(timeline).follow(entryOf(other), ticket, clock);
  }

  #visit(i: number, see: (interval: AccessInterval) => void): void {
    const { start, end } = this.#uses[i] as Use;
    this.#memory(i).history.visit(start, end, see);
  }

  #comeAfter({ timeline: first, ticket, info, rest }: LatestAccesses, timeline: Timeline, follows: boolean): void {
    if (first === undefined) return;
    if (first !== timeline) this.#comeAfterOne(first, ticket, info, follows);
    for (const other of rest) if (other.timeline !== timeline) this.#comeAfterOne(other.timeline, other.ticket, other.info, follows);
  }

  #comeAfterOne(timeline: Timeline, ticket: number, info: AccessInfo | undefined, follows: boolean): void {
    if ((this.#after.get(timeline) ?? 0) < ticket) this.#after.set(timeline, ticket);
    if (!follows || (this.#followed.get(timeline)?.ticket ?? 0) >= ticket) return;
    this.#followed.set(timeline, { timeline, ticket, clock: info?.clock });
  }
}

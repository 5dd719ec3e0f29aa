// A memory and the accesses to it: which record used which bytes, as points. Storage extends this class.
//
// Accesses are kept in every ordering, because a free waits for all of them. One stream that uses a memory is the common case: then
// `users` names that stream alone, and a record of it needs no look at the history.
// Thread: owner.
import type { Point, Timeline } from '../timeline/timeline.js';
import { AccessHistory, type AccessInterval, type AccessMode } from './access-history.js';
import type { AccessInfo } from './access-info.js';
import { type Access, LatestAccesses } from './latest-accesses.js';
import type { OrderedDevice } from './ordered-stream.js';
import { entryOf } from './vector-clock.js';

/** Bytes of a memory that the launches of a graph use. */
export interface UsedBytes {
  readonly start: number;
  readonly end: number;
  readonly isWrite: boolean;
}

/** Do the two overlap, at least one of them writing? */
export function areInConflict(one: UsedBytes, other: UsedBytes): boolean {
  return one.start < other.end && other.start < one.end && (one.isWrite || other.isWrite);
}

export interface GraphUse extends UsedBytes {
  /** Stands for everything that the graph uses: a launch writes it, and a record that conflicts with a launch reads it. */
  readonly graph: TrackedMemory & {
    readonly launch: GraphLaunch | undefined;
    /** Bytes of crowded memories, which each launch accesses as other records do. */
    readonly crowded: (UsedBytes & { readonly memory: TrackedMemory })[];
  };
  /** The number of the launch that the history of the memory contains. */
  seen: number;
}

/** The last launch of a graph. */
export interface GraphLaunch {
  readonly timeline: Timeline;
  readonly ticket: number;
  readonly info: AccessInfo;
  /** It came after all earlier accesses that conflict with it. */
  readonly isOrdered: boolean;
  /** Counts the launches of all graphs of the thread. */
  readonly nth: number;
}

const NO_GRAPHS: readonly GraphUse[] = [];
const NO_GRAPH = { launch: undefined, crowded: [] as const } as unknown as GraphUse['graph'];
/** Makes records look at a memory that no graph is listed for. */
const MARKED: readonly GraphUse[] = [{ graph: NO_GRAPH, start: 0, end: 0, isWrite: false, seen: 0 }];
/**
 * A record pays for every listed graph, and a listed graph for every other one; a launch pays for every crowded memory. A graph for each
 * of a few dozen batch sizes, all with the same weights, is still listed.
 */
const MOST_LISTED = 64;

export abstract class TrackedMemory {
  readonly byteLength: number;
  /** The graphs that use it, unless it is crowded. The list is replaced and never changed. */
  graphUses: readonly GraphUse[] = NO_GRAPHS;
  #isCrowded = false;
  /** Made when it is asked for: most memory is used by one stream alone. */
  #history: AccessHistory | undefined = undefined;
  readonly #users: LatestAccesses = new LatestAccesses();
  // While one stream alone uses the memory, and all of it each time, its last write and the read after that are kept here: noting an access
  // takes a fifth of the instructions. `history` and `users` get them when something asks for these.
  #alone: Timeline | undefined = undefined;
  #lastWrite = 0;
  #lastRead = 0;
  #writeInfo: AccessInfo | undefined = undefined;
  #readInfo: AccessInfo | undefined = undefined;
  /** False for an array that a capture made, until its graph is launched. */
  hasContents: boolean = true;
  #whenUsed: (() => void) | undefined = undefined;
  /** Where user code made the memory, if its device or stream is checked. */
  madeAt: string | undefined = undefined;
  /** The device that the memory belongs to. */
  abstract readonly core: OrderedDevice;

  constructor(byteLength: number) {
    this.byteLength = byteLength;
  }

  /** Which records used which bytes. */
  get history(): AccessHistory {
    if (this.#alone !== undefined) this.#endAlone(this.#alone);
    return (this.#history ??= new AccessHistory(this.byteLength));
  }

  /** The last access by each stream, to any bytes, except those that an ordered write of all bytes came after. */
  get users(): LatestAccesses {
    if (this.#alone !== undefined) this.#endAlone(this.#alone);
    return this.#users;
  }

  /** The name of the memory in messages. */
  abstract readonly label: string;

  /** Does it stand for everything that a graph uses? */
  get isOfGraph(): boolean {
    return false;
  }

  /** While its capture is in progress: called before something outside of the capture uses it. */
  get whenUsed(): (() => void) | undefined {
    return this.#whenUsed;
  }

  set whenUsed(called: (() => void) | undefined) {
    this.#whenUsed = called;
    // A record looks at the graphs of a memory only if it has some.
    this.graphUses = called === undefined ? NO_GRAPHS : MARKED;
  }

  /** Have so many graphs used it that they are not listed, and their launches access it as other records do? */
  get isCrowded(): boolean {
    return this.#isCrowded;
  }

  /** Launches of the graph will use these bytes. */
  addGraph(graph: GraphUse['graph'], bytes: readonly UsedBytes[]): void {
    const uses = bytes.map(({ start, end, isWrite }) => ({ graph, start, end, isWrite, seen: 0 }));
    if (!this.#isCrowded) {
      this.graphUses = [...this.graphUses, ...uses];
      if (this.graphUses.length <= MOST_LISTED || new Set(this.graphUses.map((use) => use.graph)).size <= MOST_LISTED) return;
      this.#isCrowded = true;
      this.#addLaunches();
      uses.splice(0, uses.length, ...this.graphUses);
      this.graphUses = this.hasContents ? NO_GRAPHS : MARKED;
    }
    for (const use of uses) if (use.graph !== NO_GRAPH) use.graph.crowded.push({ memory: this, ...use });
  }

  /** The graph is launched no more. Its last launch is in the history. */
  dropGraph(graph: GraphUse['graph']): void {
    this.#addLaunches();
    // Memory that was never written stays marked by the graph.
    if (this.hasContents && this.graphUses.length > 0) this.graphUses = this.graphUses.filter((use) => use.graph !== graph);
  }

  /** Was its array disposed? */
  get isGone(): boolean {
    return false;
  }

  /** The last writes to bytes of this range, as points: one, unless parts of the range were written separately. */
  lastWrites(start: number, end: number): readonly Point[] {
    if (this.graphUses.length > 0) this.#addLaunches();
    const points: Point[] = [];
    this.history.visit(start, end, ({ writes }) => {
      for (const { timeline, ticket, info } of writes) {
        const isKnown = points.some((point) => timeline === point.timeline && ticket === point.ticket);
        if (!isKnown) points.push({ timeline, ticket, clock: info.clock, page: timeline.failurePage(ticket) });
      }
    });
    return points;
  }

  /** Every access that a free has to wait for, of records and of launches of graphs. */
  uses(): Iterable<Point> {
    if (this.graphUses.length > 0) this.#addLaunches();
    return this.users;
  }

  /** The stream that alone used it, as far as that is known without a look at the history. */
  get onlyUser(): Timeline | undefined {
    return this.graphUses.length === 0 ? this.#alone : undefined;
  }

  /** Do all streams that used it pass the test, with their last tickets? */
  everyUse(test: (timeline: Timeline, ticket: number) => boolean): boolean {
    if (this.graphUses.length === 0 && this.#alone !== undefined) return test(this.#alone, Math.max(this.#lastWrite, this.#lastRead));
    for (const { timeline, ticket } of this.uses()) if (!test(timeline, ticket)) return false;
    return true;
  }

  /** Counts the users of another memory as users of all bytes of this one. */
  takeUsersOf(other: TrackedMemory, isWrite: boolean): void {
    if (other.graphUses.length > 0) other.#addLaunches();
    for (const { timeline, ticket, info } of other.users) {
      // Of several memories that are taken, each has a last ticket of its own.
      if (ticket <= this.users.lastOf(timeline)) continue;
      this.access(timeline, ticket, 0, this.byteLength, isWrite ? 'write' : 'read', info, false);
    }
  }

  /**
   * A record will access these bytes: `use` is called with each graph that uses them in conflict with it. A launch does not touch the
   * memories of its graph, so their histories take up the launches here.
   */
  beginAccess(start: number, end: number, isWrite: boolean, use: (graph: TrackedMemory) => void): void {
    this.#addLaunches();
    const access = { start, end, isWrite };
    for (const each of this.graphUses) if (areInConflict(each, access)) use(each.graph);
  }

  /** Adds the last launches of its graphs to the history, in the order of the launches. */
  #addLaunches(): void {
    const missing = this.graphUses.filter(({ graph, seen }) => graph.launch !== undefined && graph.launch.nth > seen);
    if (missing.length === 0) return;
    missing.sort((a, b) => (a.graph.launch as GraphLaunch).nth - (b.graph.launch as GraphLaunch).nth);
    for (const use of missing) {
      const { timeline, ticket, info, isOrdered, nth } = use.graph.launch as GraphLaunch;
      use.seen = nth;
      this.access(timeline, ticket, use.start, use.end, use.isWrite ? 'write' : 'read', info, isOrdered);
    }
  }

  /** Has a stream other than this one used the memory? */
  isShared(timeline: Timeline): boolean {
    if (this.#alone !== undefined) return this.#alone !== timeline;
    return this.#users.timeline !== timeline || this.#users.rest.length > 0;
  }

  /**
   * Fast path of `access`, for a stream that alone uses the memory and an access to all of it. Otherwise returns false and changes nothing.
   */
  accessAlone(timeline: Timeline, ticket: number, start: number, end: number, isWrite: boolean, info: AccessInfo): boolean {
    if (start > 0 || end < this.byteLength) return false;
    if (this.#alone !== timeline && !this.#beginAlone(timeline)) return false;
    if (isWrite) {
      this.#lastWrite = ticket;
      this.#lastRead = 0;
      if (this.#writeInfo !== info) this.#writeInfo = info;
    } else {
      this.#lastRead = ticket;
      if (this.#readInfo !== info) this.#readInfo = info;
    }
    return true;
  }

  #beginAlone(timeline: Timeline): boolean {
    // While another stream is the only one, `users` and `history` do not have its accesses.
    if (this.#alone !== undefined || !this.#users.isOnly(timeline)) return false;
    if (this.#history === undefined) {
      this.#alone = timeline;
      return true;
    }
    const { whole } = this.#history;
    if (whole?.isOnly(timeline) !== true) return false;
    const { writes, reads } = whole;
    this.#alone = timeline;
    this.#lastWrite = writes.timeline === undefined ? 0 : writes.ticket;
    this.#writeInfo = writes.info;
    this.#lastRead = reads.timeline === undefined ? 0 : reads.ticket;
    this.#readInfo = reads.info;
    return true;
  }

  /** `history` and `users` get the accesses of the stream that alone used the memory. */
  #endAlone(timeline: Timeline): void {
    this.#alone = undefined;
    this.#history ??= new AccessHistory(this.byteLength);
    const whole = this.#history.whole as AccessInterval;
    const [writeInfo, readInfo] = [this.#writeInfo as AccessInfo, this.#readInfo as AccessInfo];
    whole.reads.clear();
    if (this.#lastWrite > 0) whole.writes.put(timeline, this.#lastWrite, writeInfo);
    if (this.#lastRead > 0) whole.reads.put(timeline, this.#lastRead, readInfo);
    // A write comes after every earlier read, which is then not kept.
    if (this.#lastRead > 0) this.#users.put(timeline, this.#lastRead, readInfo);
    else this.#users.put(timeline, this.#lastWrite, writeInfo);
    this.#writeInfo = undefined;
    this.#readInfo = undefined;
  }

  /**
   * A record accesses bytes `start` to `end`. `isOrdered`: the record comes after all earlier accesses that conflict with it, so none of
   * these has to be waited for again.
   */
  access(timeline: Timeline, ticket: number, start: number, end: number, mode: AccessMode, info: AccessInfo, isOrdered: boolean): void {
    const { users, history } = this;
    if (users.isOnly(timeline)) {
      // By far the most frequent case.
      users.put(timeline, ticket, info);
      history.add(start, end, timeline, ticket, mode, info, undefined);
    } else {
      if (mode === 'write' && isOrdered && start <= 0 && end >= this.byteLength) users.clear();
      else users.keep((access) => access.timeline === timeline || !isFinished(access));
      users.put(timeline, ticket, info);
      history.add(start, end, timeline, ticket, mode, info, isOrdered ? undefined : (access) => !isKnownBefore(access, timeline));
    }
    if (history.isLong) history.forget((access, isWrite) => this.#isOver(access, isWrite));
  }

  /**
   * The access has finished and, if it is a write, the device has noted whether it failed. A failure is reported before the timeline
   * word moves. Once it is noted, the device has poisoned the bytes, and records that read them learn it from there.
   */
  #isOver(access: Access, isWrite: boolean): boolean {
    if (!isFinished(access)) return false;
    if (!isWrite) return true;
    const { timeline } = access;
    // The stream of another device has its failures noted by that device; a closed stream has had them noted.
    if (this.core.timelines.has(timeline)) this.core.failures.note(timeline);
    return this.core.timelines.has(timeline) || timeline.isRetired;
  }
}

/**
 * No record has to wait for the access any more. While clocks are kept, that is so only once the host has observed that the record has
 * finished. Records of a destroyed device count as unfinished, because the device still runs what it has.
 */
function isFinished({ timeline, ticket }: Access): boolean {
  return timeline.hasReached(ticket) && entryOf(timeline).isSettled(ticket);
}

/** Will later records of this stream come after the access, as far as the host knows now? */
function isKnownBefore(access: Access, timeline: Timeline): boolean {
  return entryOf(timeline).isKnownAfter(entryOf(access.timeline), access.ticket) || isFinished(access);
}

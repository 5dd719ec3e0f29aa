// Which records last wrote, and have read since, which bytes of a memory: intervals of bytes with equal accesses, side by side, from
// the first byte to the last.
//
// An access splits the intervals at its two ends, and neighbours that have become equal are joined, so there are only as many
// intervals as differ. Memory that is always used whole is one interval. If one stream uses it, an access stores a ticket.
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';
import type { AccessInfo } from './access-info.js';
import { type Access, LatestAccesses } from './latest-accesses.js';

/** 'readback': by the copy of a `read`. Every later write waits for it, whatever the ordering of the writing stream. */
export type AccessMode = 'read' | 'write' | 'readback';

/** Says which earlier accesses must still be waited for after a write; undefined: none. */
export type IsNeeded = ((access: Access) => boolean) | undefined;

/** With more intervals than this, accesses that no record will wait for are looked for and dropped. */
const FEW = 64;

export class AccessInterval {
  start: number;
  /** One past the last byte. */
  end: number;
  /** The last write; several where streams wrote and nothing orders the writes. */
  readonly writes: LatestAccesses;
  /** The reads that no known write comes after. */
  readonly reads: LatestAccesses;
  /** The same for the copies of `read`. */
  readbacks: LatestAccesses | undefined = undefined;

  constructor(start: number, end: number, writes: LatestAccesses = new LatestAccesses(), reads: LatestAccesses = new LatestAccesses()) {
    this.start = start;
    this.end = end;
    this.writes = writes;
    this.reads = reads;
  }

  add(timeline: Timeline, ticket: number, mode: AccessMode, info: AccessInfo, isNeeded: IsNeeded): void {
    if (mode === 'read') {
      this.reads.put(timeline, ticket, info);
      return;
    }
    if (mode === 'readback') {
      this.readbacks ??= new LatestAccesses();
      this.readbacks.put(timeline, ticket, info);
      return;
    }
    if (this.readbacks !== undefined) this.readbacks = undefined;
    if (this.writes.timeline === timeline && this.writes.rest.length === 0 && this.reads.timeline === undefined) {
      // The stream that wrote last writes again: `put` replaces its ticket.
    } else if (isNeeded === undefined || (this.writes.isOnly(timeline) && this.reads.isOnly(timeline))) {
      this.writes.clear();
      this.reads.clear();
    } else {
      this.writes.keep(isNeeded);
      this.reads.keep(isNeeded);
    }
    this.writes.put(timeline, ticket, info);
  }

  /** Has no other stream than this accesses here, and does no `read` copy the bytes? */
  isOnly(timeline: Timeline): boolean {
    return this.readbacks === undefined && this.writes.isOnly(timeline) && this.reads.isOnly(timeline);
  }

  /** Ends this interval at a byte and returns a new one for the bytes from there on. */
  splitAt(byte: number): AccessInterval {
    const behind = new AccessInterval(byte, this.end, this.writes.copy(), this.reads.copy());
    behind.readbacks = this.readbacks?.copy();
    this.end = byte;
    return behind;
  }

  equals(other: AccessInterval): boolean {
    if (!this.writes.equals(other.writes) || !this.reads.equals(other.reads)) return false;
    if (this.readbacks === undefined || other.readbacks === undefined) return this.readbacks === other.readbacks;
    return this.readbacks.equals(other.readbacks);
  }

  /** Drops the accesses for which `isOver` returns true. */
  forget(isOver: (access: Access, isWrite: boolean) => boolean): void {
    this.writes.keep((access) => !isOver(access, true));
    this.reads.keep((access) => !isOver(access, false));
    this.readbacks?.keep((access) => !isOver(access, false));
    if (this.readbacks?.timeline === undefined) this.readbacks = undefined;
  }
}

export class AccessHistory {
  #whole: AccessInterval | undefined;
  /** All intervals, while there are several. */
  #parts: AccessInterval[] = [];
  #limit = FEW;

  constructor(byteLength: number) {
    this.#whole = new AccessInterval(0, byteLength);
  }

  /** The only interval, while there is one. */
  get whole(): AccessInterval | undefined {
    return this.#whole;
  }

  /** The number of intervals. */
  get size(): number {
    return this.#whole === undefined ? this.#parts.length : 1;
  }

  /** Are there so many intervals that `forget` should be called? */
  get isLong(): boolean {
    return this.#parts.length > this.#limit;
  }

  /** Calls `see` with each interval that has bytes of this range, in order. */
  visit(start: number, end: number, see: (interval: AccessInterval) => void): void {
    if (start >= end) return;
    if (this.#whole !== undefined) {
      see(this.#whole);
      return;
    }
    for (let at = this.#find(start); at < this.#parts.length; at++) {
      const part = this.#parts[at] as AccessInterval;
      if (part.start >= end) return;
      see(part);
    }
  }

  /** Adds the access of a record to bytes `start` to `end`. */
  add(start: number, end: number, timeline: Timeline, ticket: number, mode: AccessMode, info: AccessInfo, isNeeded: IsNeeded): void {
    if (start >= end) return;
    const whole = this.#whole;
    if (whole !== undefined && start <= whole.start && end >= whole.end) {
      whole.add(timeline, ticket, mode, info, isNeeded);
      return;
    }
    if (whole !== undefined) this.#parts = [whole];
    this.#whole = undefined;
    const parts = this.#parts;
    let from = this.#find(start);
    const first = parts[from] as AccessInterval;
    if (first.start < start) parts.splice(++from, 0, first.splitAt(start));
    let to = from;
    for (let part = parts[to]; part !== undefined && part.start < end; part = parts[++to]) {
      if (part.end > end) parts.splice(to + 1, 0, part.splitAt(end));
      part.add(timeline, ticket, mode, info, isNeeded);
    }
    this.#join(Math.max(from - 1, 0), Math.min(to, parts.length - 1));
  }

  /**
   * Drops the accesses for which `isOver` returns true. A loop that moves through a memory leaves an interval a step; once its accesses
   * are over, these intervals are equal and are joined.
   */
  forget(isOver: (access: Access, isWrite: boolean) => boolean): void {
    for (const part of this.#parts) part.forget(isOver);
    const parts = this.#parts;
    this.#join(0, parts.length - 1);
    this.#limit = Math.max(FEW, 2 * parts.length);
  }

  /** The index of the interval that has this byte. */
  #find(byte: number): number {
    let low = 0;
    let high = this.#parts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#parts[middle] as AccessInterval).start <= byte) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Joins equal neighbours, from interval `first` to interval `last`. */
  #join(first: number, last: number): void {
    const parts = this.#parts;
    let kept = first;
    for (let at = first + 1; at <= last; at++) {
      const [before, part] = [parts[kept] as AccessInterval, parts[at] as AccessInterval];
      if (before.equals(part)) before.end = part.end;
      else parts[++kept] = part;
    }
    if (kept < last) parts.splice(kept + 1, last - kept);
    if (parts.length > 1) return;
    this.#whole = parts[0];
    this.#parts = [];
  }
}

// Which bytes of a memory were last written and since read by whom: stretches that differ in it, side by side, from the
// first byte to the last.
//
// A use splits the stretches at its ends, and neighbours that have become the same are joined, so there are never more than
// what is distinct. Memory that is always used whole is one stretch, and a use by the one stream that uses it stores a point.
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';
import type { Access } from './access-info.js';
import { Latest, type Use } from './latest-accesses.js';

/** 'readback': by `read`, which waits by itself and is waited for by every later write, whatever the stream's ordering. */
export type Mode = 'read' | 'write' | 'readback';

/** Whether a write leaves this earlier use to be waited for; undefined: none. */
export type Needed = ((use: Use) => boolean) | undefined;

/** Beyond so many stretches, what no longer matters is looked for. */
const FEW = 64;

export class Stretch {
  start: number;
  /** Behind its last byte. */
  end: number;
  /** The last write. More than one where streams wrote that nothing orders. */
  readonly writes: Latest;
  /** Reads that no write is known to come after. */
  readonly reads: Latest;
  /** The same of `read`. */
  readbacks: Latest | undefined = undefined;

  constructor(start: number, end: number, writes: Latest = new Latest(), reads: Latest = new Latest()) {
    this.start = start;
    this.end = end;
    this.writes = writes;
    this.reads = reads;
  }

  use(timeline: Timeline, ticket: number, mode: Mode, access: Access, isNeeded: Needed): void {
    if (mode === 'read') {
      this.reads.put(timeline, ticket, access);
      return;
    }
    if (mode === 'readback') {
      this.readbacks ??= new Latest();
      this.readbacks.put(timeline, ticket, access);
      return;
    }
    if (this.readbacks !== undefined) this.readbacks = undefined;
    if (this.writes.timeline === timeline && this.writes.rest.length === 0 && this.reads.timeline === undefined) {
      // The stream that wrote last writes again.
    } else if (isNeeded === undefined || (this.writes.isOnly(timeline) && this.reads.isOnly(timeline))) {
      this.writes.clear();
      this.reads.clear();
    } else {
      this.writes.keep(isNeeded);
      this.reads.keep(isNeeded);
    }
    this.writes.put(timeline, ticket, access);
  }

  /** Gives up what is behind this byte, as a stretch of its own. */
  splitAt(byte: number): Stretch {
    const behind = new Stretch(byte, this.end, this.writes.copy(), this.reads.copy());
    behind.readbacks = this.readbacks?.copy();
    this.end = byte;
    return behind;
  }

  equals(other: Stretch): boolean {
    if (!this.writes.equals(other.writes) || !this.reads.equals(other.reads)) return false;
    if (this.readbacks === undefined || other.readbacks === undefined) return this.readbacks === other.readbacks;
    return this.readbacks.equals(other.readbacks);
  }

  /** Drops what nothing will ask for again. */
  forget(isOver: (use: Use, isWrite: boolean) => boolean): void {
    this.writes.keep((use) => !isOver(use, true));
    this.reads.keep((use) => !isOver(use, false));
    this.readbacks?.keep((use) => !isOver(use, false));
    if (this.readbacks?.timeline === undefined) this.readbacks = undefined;
  }
}

export class History {
  /** The only stretch, while there is one. */
  #whole: Stretch | undefined;
  /** All of them, while there are several. */
  #parts: Stretch[] = [];
  #limit = FEW;

  constructor(byteLength: number) {
    this.#whole = new Stretch(0, byteLength);
  }

  /** How many stretches differ. */
  get size(): number {
    return this.#whole === undefined ? this.#parts.length : 1;
  }

  /** Are there so many that it is time for `forget`? */
  get isLong(): boolean {
    return this.#parts.length > this.#limit;
  }

  /** Calls with each stretch that has bytes of this range, in order. */
  visit(start: number, end: number, see: (stretch: Stretch) => void): void {
    if (start >= end) return;
    if (this.#whole !== undefined) {
      see(this.#whole);
      return;
    }
    for (let at = this.#find(start); at < this.#parts.length; at++) {
      const part = this.#parts[at] as Stretch;
      if (part.start >= end) return;
      see(part);
    }
  }

  /** Bytes `start` to `end` were used by this record. */
  use(start: number, end: number, timeline: Timeline, ticket: number, mode: Mode, access: Access, isNeeded: Needed): void {
    if (start >= end) return;
    const whole = this.#whole;
    if (whole !== undefined && start <= whole.start && end >= whole.end) {
      whole.use(timeline, ticket, mode, access, isNeeded);
      return;
    }
    if (whole !== undefined) this.#parts = [whole];
    this.#whole = undefined;
    const parts = this.#parts;
    let from = this.#find(start);
    const first = parts[from] as Stretch;
    if (first.start < start) parts.splice(++from, 0, first.splitAt(start));
    let to = from;
    for (let part = parts[to]; part !== undefined && part.start < end; part = parts[++to]) {
      if (part.end > end) parts.splice(to + 1, 0, part.splitAt(end));
      part.use(timeline, ticket, mode, access, isNeeded);
    }
    this.#join(Math.max(from - 1, 0), Math.min(to, parts.length - 1));
  }

  /** A program that moves on through a memory leaves a stretch a step; those that are over are all the same. */
  forget(isOver: (use: Use, isWrite: boolean) => boolean): void {
    for (const part of this.#parts) part.forget(isOver);
    const parts = this.#parts;
    this.#join(0, parts.length - 1);
    this.#limit = Math.max(FEW, 2 * parts.length);
  }

  /** The stretch that has this byte. */
  #find(byte: number): number {
    let low = 0;
    let high = this.#parts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#parts[middle] as Stretch).start <= byte) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Joins those that are the same, between and including these two. */
  #join(first: number, last: number): void {
    const parts = this.#parts;
    let kept = first;
    for (let at = first + 1; at <= last; at++) {
      const [before, part] = [parts[kept] as Stretch, parts[at] as Stretch];
      if (before.equals(part)) before.end = part.end;
      else parts[++kept] = part;
    }
    if (kept < last) parts.splice(kept + 1, last - kept);
    if (parts.length > 1) return;
    this.#whole = parts[0];
    this.#parts = [];
  }
}

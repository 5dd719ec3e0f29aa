// Which bytes of a memory were last written and since read by whom: stretches that differ in it, side by side, from the
// first byte to the last.
//
// A use splits the stretches at its ends, and neighbours that have become the same are joined, so there are never more than
// what is distinct. Memory that is always used whole is one stretch, and a use by the one stream that uses it stores a number.
// Thread: owner.
import { Latest } from './latest.js';
import type { Point, Timeline } from './timeline.js';

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

  constructor(start: number, end: number, writes: Latest = new Latest(), reads: Latest = new Latest()) {
    this.start = start;
    this.end = end;
    this.writes = writes;
    this.reads = reads;
  }

  /** `isNeeded`: whether a write leaves this earlier use to be waited for; undefined: none. */
  use(timeline: Timeline, ticket: number, writes: boolean, isNeeded: ((point: Point) => boolean) | undefined): void {
    if (!writes) {
      this.reads.put(timeline, ticket);
      return;
    }
    if (isNeeded === undefined || (this.writes.isOnly(timeline) && this.reads.isOnly(timeline))) {
      this.writes.clear();
      this.reads.clear();
    } else {
      this.writes.keep(isNeeded);
      this.reads.keep(isNeeded);
    }
    this.writes.put(timeline, ticket);
  }

  /** Gives up what is behind this byte, as a stretch of its own. */
  splitAt(byte: number): Stretch {
    const behind = new Stretch(byte, this.end, this.writes.copy(), this.reads.copy());
    this.end = byte;
    return behind;
  }

  equals(other: Stretch): boolean {
    return this.writes.equals(other.writes) && this.reads.equals(other.reads);
  }
}

export class History {
  /** The only stretch, while there is one. */
  #whole: Stretch | undefined;
  /** All of them, while there are several. */
  #parts: Stretch[] = [];
  #limit = FEW;
  readonly #isOver: (point: Point, isWrite: boolean) => boolean;

  /** `isOver`: nothing will ever ask for this use again. */
  constructor(byteLength: number, isOver: (point: Point, isWrite: boolean) => boolean) {
    this.#whole = new Stretch(0, byteLength);
    this.#isOver = isOver;
  }

  /** How many stretches differ. */
  get size(): number {
    return this.#whole === undefined ? this.#parts.length : 1;
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

  /** Bytes `start` to `end` were used. `isNeeded` as for a stretch. */
  use(
    start: number,
    end: number,
    timeline: Timeline,
    ticket: number,
    writes: boolean,
    isNeeded: ((point: Point) => boolean) | undefined,
  ): void {
    if (start >= end) return;
    const whole = this.#whole;
    if (whole === undefined || start > whole.start || end < whole.end) this.#useParts(start, end, timeline, ticket, writes, isNeeded);
    else whole.use(timeline, ticket, writes, isNeeded);
  }

  #useParts(
    start: number,
    end: number,
    timeline: Timeline,
    ticket: number,
    writes: boolean,
    isNeeded: ((point: Point) => boolean) | undefined,
  ): void {
    if (this.#whole !== undefined) this.#parts = [this.#whole];
    this.#whole = undefined;
    const parts = this.#parts;
    let from = this.#find(start);
    const first = parts[from] as Stretch;
    if (first.start < start) parts.splice(++from, 0, first.splitAt(start));
    let to = from;
    for (let part = parts[to]; part !== undefined && part.start < end; part = parts[++to]) {
      if (part.end > end) parts.splice(to + 1, 0, part.splitAt(end));
      part.use(timeline, ticket, writes, isNeeded);
    }
    this.#join(Math.max(from - 1, 0), Math.min(to, parts.length - 1));
    if (parts.length > this.#limit) this.#forget();
    if (parts.length > 1) return;
    this.#whole = parts[0];
    this.#parts = [];
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
  }

  /** A program that moves on through a memory leaves a stretch a step; those that are over are all the same. */
  #forget(): void {
    for (const { writes, reads } of this.#parts) {
      writes.keep((point) => !this.#isOver(point, true));
      reads.keep((point) => !this.#isOver(point, false));
    }
    this.#join(0, this.#parts.length - 1);
    this.#limit = Math.max(FEW, 2 * this.#parts.length);
  }
}

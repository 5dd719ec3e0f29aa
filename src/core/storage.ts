// The memory behind arrays and what order is known of: which bytes were used by whom, as points.
//
// The points are kept in every ordering, because a free waits for all uses whatever the streams were told. One stream used
// is the common case: then `users` names that stream alone, and nothing has to be looked for before the next use.
// Thread: owner.
import type { MemorySpace } from '../protocol/protocol.gen.js';
import type { DeviceCore, StreamSite } from './device-core.js';
import { History } from './history.js';
import { Latest } from './latest.js';
import type { Point, Timeline } from './timeline.js';

export type Ordering = 'tracked' | 'checked' | 'explicit';

export class Storage {
  readonly space: MemorySpace;
  readonly handle: number;
  /** Where it starts in what `handle` names. */
  readonly base: number;
  readonly byteLength: number;
  /** The device whose handle it is. */
  readonly core: DeviceCore;
  isDisposed: boolean = false;
  /** Who used which bytes. */
  readonly history: History;
  /** The last use by each stream, of any bytes, that no ordered write of all bytes came after. */
  readonly users: Latest = new Latest();

  constructor(space: MemorySpace, handle: number, base: number, byteLength: number, core: DeviceCore) {
    this.core = core;
    this.space = space;
    this.handle = handle;
    this.base = base;
    this.byteLength = byteLength;
    this.history = new History(byteLength, (point, isWrite) => this.#isOver(point, isWrite));
  }

  /** May using it on this stream need waits? */
  isForeign(timeline: Timeline): boolean {
    return this.users.timeline !== timeline || this.users.rest.length > 0;
  }

  /** It was made by this record: the first write. */
  make(site: StreamSite, ticket: number): void {
    this.use(site.timeline, ticket, 0, this.byteLength, true, true);
  }

  /** The last writes to bytes of this range, as points: one, unless parts were written apart. */
  lastWrites(start: number, end: number): readonly Point[] {
    const points: Point[] = [];
    this.history.visit(start, end, ({ writes }) => {
      for (const point of writes) {
        if (!points.some(({ timeline, ticket }) => timeline === point.timeline && ticket === point.ticket)) points.push(point);
      }
    });
    return points;
  }

  /** Every use that a free has to come after. */
  uses(): Iterable<Point> {
    return this.users;
  }

  /** Bytes `start` to `end` were used by this record. `isOrdered`: it comes after all earlier uses that it has to come after. */
  use(timeline: Timeline, ticket: number, start: number, end: number, writes: boolean, isOrdered: boolean): void {
    const { users } = this;
    if (users.isOnly(timeline)) {
      // By far the most frequent.
      users.put(timeline, ticket);
      this.history.use(start, end, timeline, ticket, writes, undefined);
      return;
    }
    if (writes && isOrdered && start <= 0 && end >= this.byteLength) users.clear();
    else users.keep((use) => use.timeline === timeline || !use.timeline.hasReached(use.ticket));
    users.put(timeline, ticket);
    this.history.use(start, end, timeline, ticket, writes, isOrdered ? undefined : (point) => !isKnownBefore(point, timeline));
  }

  /** Reached, and if it is a write it went well: late reports of a failure come before the words move. */
  #isOver({ timeline, ticket }: Point, isWrite: boolean): boolean {
    if (!timeline.hasReached(ticket)) return false;
    if (!isWrite) return true;
    // The failures of another device's stream are that device's to notice; those of a closed one have been.
    if (this.core.timelines.has(timeline)) this.core.failures.note(timeline);
    else if (!timeline.isRetired) return false;
    return timeline.failureAt(ticket) === undefined;
  }
}

/** Will later work of this stream come after the point, as far as is known at once? */
function isKnownBefore({ timeline: other, ticket }: Point, timeline: Timeline): boolean {
  return other === timeline || (timeline.waited.get(other) ?? 0) >= ticket || other.hasReached(ticket);
}

// The memory behind arrays and what order is known of: who wrote it last and who used it since, as points.
//
// One stream used is the common case and costs two comparisons: `user` is that stream and `others` is empty. With more
// streams, `tracked` ordering waits for the last write before reading and for every use before writing; the points are
// kept in every ordering, because a free waits for all uses whatever the streams were told.
// Thread: owner.
import type { MemorySpace } from '../protocol/protocol.gen.js';
import type { DeviceCore, StreamSite } from './device-core.js';
import type { Point, Timeline } from './timeline.js';

export type Ordering = 'tracked' | 'checked' | 'explicit';

const NONE: readonly Point[] = [];

export class Storage {
  readonly space: MemorySpace;
  readonly handle: number;
  /** Where it starts in what `handle` names. */
  readonly base: number;
  readonly byteLength: number;
  /** The device whose handle it is. */
  readonly core: DeviceCore;
  isDisposed: boolean = false;
  /** The last write. */
  writer: Timeline | undefined = undefined;
  written: number = 0;
  /** The stream that used it last, and its last use. */
  user: Timeline | undefined = undefined;
  used: number = 0;
  /** Last uses by other streams that `user` is not known to come after. */
  others: readonly Point[] = NONE;

  constructor(space: MemorySpace, handle: number, base: number, byteLength: number, core: DeviceCore) {
    this.core = core;
    this.space = space;
    this.handle = handle;
    this.base = base;
    this.byteLength = byteLength;
  }

  /** May using it on this stream need waits? */
  isForeign(timeline: Timeline): boolean {
    return this.user !== timeline || this.others.length > 0;
  }

  /** It was made by this record: the first write. */
  make(site: StreamSite, ticket: number): void {
    this.use(site.timeline, ticket, true, true);
  }

  /** The last write to bytes of this range, as a point. */
  lastWrite(_start: number, _end: number): Point | undefined {
    return this.writer && { timeline: this.writer, ticket: this.written };
  }

  /** The points that a use on this stream has to come after, if they are not reached yet. */
  *before(timeline: Timeline, writes: boolean): Iterable<Point> {
    if (!writes) {
      if (this.writer !== undefined && this.writer !== timeline) yield { timeline: this.writer, ticket: this.written };
      return;
    }
    for (const use of this.uses()) if (use.timeline !== timeline) yield use;
  }

  /** Every use that a free has to come after. */
  *uses(): Iterable<Point> {
    if (this.user !== undefined) yield { timeline: this.user, ticket: this.used };
    yield* this.others;
  }

  /** It was used by this record. `isOrdered`: the waits of `before` were inserted. */
  use(timeline: Timeline, ticket: number, writes: boolean, isOrdered: boolean): void {
    if (writes) {
      this.writer = timeline;
      this.written = ticket;
    }
    if (this.user !== timeline || this.others.length > 0) this.#change(timeline, writes && isOrdered);
    this.used = ticket;
  }

  #change(timeline: Timeline, isAfterAll: boolean): void {
    this.others = isAfterAll ? NONE : [...this.uses()].filter((use) => use.timeline !== timeline && !use.timeline.hasReached(use.ticket));
    this.user = timeline;
  }
}

// The memory behind arrays and what order is known of: which bytes were used by whom, as points.
//
// The points are kept in every ordering, because a free waits for all uses whatever the streams were told. One stream used
// is the common case: then `users` names that stream alone, and nothing has to be looked for before the next use.
// Thread: owner.
import type { MemorySpace } from '../../protocol/protocol.gen.js';
import { callSite } from '../base/call-site.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import type { DType } from '../elements/dtype.js';
import { areClocksKept } from '../timeline/vector-clock.js';
import { latestId } from '../timeline/operation-log.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { type Access, accessOf } from './access-info.js';
import { History, type Mode } from './access-history.js';
import { Latest, type Use } from './latest-accesses.js';

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
  /** Where the program made it, if its device or stream is checked. */
  madeAt: string | undefined = undefined;
  #dtype: DType | undefined = undefined;
  #shape: readonly number[] = [];

  constructor(space: MemorySpace, handle: number, base: number, byteLength: number, core: DeviceCore) {
    this.core = core;
    this.space = space;
    this.handle = handle;
    this.base = base;
    this.byteLength = byteLength;
    this.history = new History(byteLength);
  }

  /** What messages call it. */
  get label(): string {
    return this.#dtype === undefined ? `${this.byteLength} bytes` : `${this.#dtype}[${this.#shape.join(', ')}]`;
  }

  /** It is the memory of an array. */
  belongTo({ dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] }): void {
    this.#dtype = dtype;
    this.#shape = shape;
    if (this.madeAt === undefined && this.core.isChecked) this.madeAt = callSite();
  }

  /** May using it on this stream need waits? */
  isForeign(timeline: Timeline): boolean {
    return this.users.timeline !== timeline || this.users.rest.length > 0;
  }

  /** It was made by this record: the first write. */
  make(site: StreamContext, ticket: number): void {
    const access = accessOf(site, 'alloc', undefined, latestId());
    if (site.ordering === 'checked') this.madeAt = access.at;
    this.use(site.timeline, ticket, 0, this.byteLength, 'write', access, true);
  }

  /** The last writes to bytes of this range, as points: one, unless parts were written apart. */
  lastWrites(start: number, end: number): readonly Point[] {
    const points: Point[] = [];
    this.history.visit(start, end, ({ writes }) => {
      for (const { timeline, ticket, access } of writes) {
        const isKnown = points.some((point) => timeline === point.timeline && ticket === point.ticket);
        if (!isKnown) points.push({ timeline, ticket, clock: access.clock, page: timeline.failurePage(ticket) });
      }
    });
    return points;
  }

  /** Every use that a free has to come after. */
  uses(): Iterable<Point> {
    return this.users;
  }

  /** Bytes `start` to `end` were used by this record. `isOrdered`: it comes after all earlier uses that it has to come after. */
  use(timeline: Timeline, ticket: number, start: number, end: number, mode: Mode, access: Access, isOrdered: boolean): void {
    const { users, history } = this;
    if (users.isOnly(timeline)) {
      // By far the most frequent.
      users.put(timeline, ticket, access);
      history.use(start, end, timeline, ticket, mode, access, undefined);
    } else {
      if (mode === 'write' && isOrdered && start <= 0 && end >= this.byteLength) users.clear();
      else users.keep((use) => use.timeline === timeline || !isFinished(use));
      users.put(timeline, ticket, access);
      history.use(start, end, timeline, ticket, mode, access, isOrdered ? undefined : (use) => !isKnownBefore(use, timeline));
    }
    if (history.isLong) history.forget((use, isWrite) => this.#isOver(use, isWrite));
  }

  /**
   * Finished, and of a write it is known whether it failed: late reports of a failure come before the words move. Once they are noted the
   * device has marked the bytes as poisoned, and tells that to whoever reads them.
   */
  #isOver(use: Use, isWrite: boolean): boolean {
    if (!isFinished(use)) return false;
    if (!isWrite) return true;
    const { timeline } = use;
    // The failures of another device's stream are that device's to notice; those of a closed one have been.
    if (this.core.timelines.has(timeline)) this.core.failures.note(timeline);
    return this.core.timelines.has(timeline) || timeline.isRetired;
  }
}

/**
 * Is it nothing to wait for any more? To those who keep clocks, only once the program has seen that it has finished. A device that was
 * destroyed still runs what it has.
 */
function isFinished({ timeline, ticket }: Use): boolean {
  return timeline.hasReached(ticket) && (!areClocksKept() || timeline.clockEntry.seen >= ticket);
}

/** Will later work of this stream come after the use, as far as is known at once? */
function isKnownBefore(use: Use, timeline: Timeline): boolean {
  const { clockEntry } = use.timeline;
  if (areClocksKept()) return timeline.clockEntry.comesAfter(clockEntry, use.ticket);
  return use.timeline === timeline || timeline.clockEntry.hasWaited(clockEntry, use.ticket) || isFinished(use);
}

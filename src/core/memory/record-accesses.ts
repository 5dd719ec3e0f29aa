// What a record is about to use: collected, ordered against earlier uses, and written down once the record is submitted.
//
//   uses.begin(site); uses.add(storage, start, end, writes) ...; uses.order(kind, label); <encode, submit>; uses.commit(ticket)
//
// or, where one of these throws, `uses.abandon()`.
//
// One collector serves the whole thread, since a record is submitted by the call that began it; nothing is allocated while
// one stream is used. Nothing is remembered before `commit`: a record that is refused has changed no order.
//
// While a launch reads its arguments, a getter of the program may make another call that begins here. That call puts back what
// it found, the half-written record included, when it commits or abandons.
// Thread: owner.
import type { OperationKind } from '../base/snapshots.js';
import type { StreamContext } from '../device/stream-context.js';
import { areClocksKept } from '../timeline/vector-clock.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { type Access, accessOf } from './access-info.js';
import { hazardError } from './hazards.js';
import type { Stretch } from './access-history.js';
import type { Latest } from './latest-accesses.js';
import type { Storage } from './storage.js';

/** What a call had collected when another one began inside of it. */
interface Outer {
  readonly site: StreamContext;
  readonly storages: readonly (Storage | undefined)[];
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  readonly writes: readonly boolean[];
  readonly mayNeedOrder: boolean;
  readonly record: Uint8Array;
}

export class Uses {
  readonly #storages: (Storage | undefined)[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #writes: boolean[] = [];
  #count = 0;
  #site: StreamContext | undefined = undefined;
  #access: Access | undefined = undefined;
  #mayNeedOrder = false;
  /** The points that the record has to come after, of each stream the last; and the same without `read`, for the clocks. */
  readonly #after: Map<Timeline, number> = new Map();
  readonly #followed: Map<Timeline, Point> = new Map();
  /** The calls that the present one was made inside of. */
  readonly #outer: Outer[] = [];

  /** Has a call begun that is not over? */
  get isBusy(): boolean {
    return this.#site !== undefined;
  }

  begin(site: StreamContext): void {
    if (this.#site !== undefined) this.#outer.push(this.#save(this.#site));
    this.#site = site;
    this.#count = 0;
    this.#mayNeedOrder = false;
  }

  /** Bytes `start` to `end` of the storage, not of what its handle names; of a view with gaps, from its first byte to its last. */
  add(storage: Storage, start: number, end: number, writes: boolean): void {
    const at = this.#count++;
    this.#storages[at] = storage;
    this.#starts[at] = start;
    this.#ends[at] = end;
    this.#writes[at] = writes;
    if (storage.isForeign((this.#site as StreamContext).timeline)) this.#mayNeedOrder = true;
  }

  /**
   * Inserts the waits that are needed before the record (tracked), or throws a StreamHazardError (checked). `label` is what the
   * operation will be called. On a stream with timing, the operation's time begins behind the waits.
   */
  order(kind: OperationKind, label: string | undefined): void {
    const site = this.#site as StreamContext;
    if (this.#mayNeedOrder) this.#order(site, kind, label);
    // Its clock is the one after the waits.
    site.timer?.start(site.core, site.timeline);
    this.#access = accessOf(site, kind, label);
  }

  #order(site: StreamContext, kind: OperationKind, label: string | undefined): void {
    try {
      if (site.ordering === 'checked') this.#check(site, kind, label);
      this.#wait(site);
    } finally {
      this.#after.clear();
      this.#followed.clear();
    }
  }

  /** The record was submitted. */
  commit(ticket: number): void {
    const { core, timeline, ordering, isReadback } = this.#site as StreamContext;
    const access = this.#access as Access;
    const isOrdered = ordering !== 'explicit';
    for (let i = 0; i < this.#count; i++) {
      const storage = this.#storages[i] as Storage;
      const mode = this.#writes[i] ? 'write' : isReadback === true ? 'readback' : 'read';
      storage.use(timeline, ticket, this.#starts[i] as number, this.#ends[i] as number, mode, access, isOrdered);
      if (storage.core !== core) storage.core.peerUsers.add(timeline, ticket);
    }
    this.abandon();
  }

  /** Orders and submits the record that `encode` writes, and remembers its uses; its ticket. Of records that are not launches. */
  submit(kind: OperationKind, label: string | undefined, encode: () => number): number {
    const { core, timeline } = this.#site as StreamContext;
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

  /** There is no such record: it was refused, or needs none of this. A collector that lives for ever keeps no device. */
  abandon(): void {
    for (let i = 0; i < this.#count; i++) this.#storages[i] = undefined;
    this.#count = 0;
    this.#site = undefined;
    this.#access = undefined;
    if (this.#outer.length > 0) this.#restore(this.#outer.pop() as Outer);
  }

  #save(site: StreamContext): Outer {
    const count = this.#count;
    return {
      site,
      storages: this.#storages.slice(0, count),
      starts: this.#starts.slice(0, count),
      ends: this.#ends.slice(0, count),
      writes: this.#writes.slice(0, count),
      mayNeedOrder: this.#mayNeedOrder,
      record: site.core.encoder.block.slice(),
    };
  }

  /** Other streams may have used the arrays meanwhile. */
  #restore({ site, storages, starts, ends, writes, mayNeedOrder, record }: Outer): void {
    this.begin(site);
    for (const [at, storage] of storages.entries())
      this.add(storage as Storage, starts[at] as number, ends[at] as number, writes[at] as boolean);
    if (mayNeedOrder) this.#mayNeedOrder = true;
    site.core.encoder.block.set(record);
  }

  /** Before anything is submitted. */
  #check(site: StreamContext, kind: OperationKind, label: string | undefined): void {
    // Looking for the call site costs more than a launch: only a refusal needs it before the record stands.
    const access = (): Access => accessOf(site, kind, label);
    for (let i = 0; i < this.#count; i++) {
      const isWrite = this.#writes[i] as boolean;
      this.#visit(i, ({ writes, reads }) => {
        this.#checkAfter(site, i, writes, true, access);
        if (isWrite) this.#checkAfter(site, i, reads, false, access);
      });
    }
  }

  #checkAfter({ core, timeline }: StreamContext, i: number, earlier: Latest, isWrite: boolean, access: () => Access): void {
    for (const use of earlier) {
      if (timeline.clockEntry.comesAfter(use.timeline.clockEntry, use.ticket)) continue;
      const second = { timeline, access: access(), isWrite: this.#writes[i] as boolean };
      throw hazardError(this.#storages[i] as Storage, core.name, { timeline: use.timeline, access: use.access, isWrite }, second);
    }
  }

  /** Only tracked streams wait for what the program does; all wait for `read`, whose streams it cannot name. */
  #wait({ core, timeline, ordering, isReadback }: StreamContext): void {
    // Where a `read` runs, and so what it waits for, is chance: the stream that lends its place learns nothing by it.
    const follows = isReadback !== true && areClocksKept();
    let isWrite = false;
    const see = ({ writes, reads, readbacks }: Stretch): void => {
      if (isWrite && readbacks !== undefined) this.#comesAfter(readbacks, timeline, false);
      if (ordering !== 'tracked') return;
      this.#comesAfter(writes, timeline, follows);
      if (isWrite) this.#comesAfter(reads, timeline, follows);
    };
    for (let i = 0; i < this.#count; i++) {
      isWrite = this.#writes[i] as boolean;
      this.#visit(i, see);
    }
    for (const [other, ticket] of this.#after) core.dependencies.wait(timeline, other, ticket);
    for (const [other, { ticket, clock }] of this.#followed) timeline.clockEntry.follow(other.clockEntry, ticket, clock);
  }

  #visit(i: number, see: (stretch: Stretch) => void): void {
    (this.#storages[i] as Storage).history.visit(this.#starts[i] as number, this.#ends[i] as number, see);
  }

  #comesAfter({ timeline: first, ticket, access, rest }: Latest, timeline: Timeline, follows: boolean): void {
    if (first === undefined) return;
    if (first !== timeline) this.#comesAfterUse(first, ticket, access, follows);
    for (const use of rest) if (use.timeline !== timeline) this.#comesAfterUse(use.timeline, use.ticket, use.access, follows);
  }

  #comesAfterUse(timeline: Timeline, ticket: number, access: Access | undefined, follows: boolean): void {
    if ((this.#after.get(timeline) ?? 0) < ticket) this.#after.set(timeline, ticket);
    if (!follows || (this.#followed.get(timeline)?.ticket ?? 0) >= ticket) return;
    this.#followed.set(timeline, { timeline, ticket, clock: access?.clock });
  }
}

export const uses: Uses = new Uses();

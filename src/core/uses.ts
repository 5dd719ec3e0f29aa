// What a record is about to use: collected, ordered against earlier uses, and written down once the record is submitted.
//
//   uses.begin(site); uses.add(storage, start, end, writes) ...; uses.order(kind, label); <encode, submit>; uses.commit(ticket)
//
// One collector serves the whole thread, since a record is submitted by the call that began it; nothing is allocated while
// one stream is used. Nothing is remembered before `commit`: a record that is refused has changed no order.
// Thread: owner.
import type { DeviceCore, StreamSite } from './device-core.js';
import type { OperationKind } from './errors.js';
import type { Stretch } from './history.js';
import type { Latest } from './latest.js';
import type { Storage } from './storage.js';
import type { Timeline } from './timeline.js';

export class Uses {
  readonly #storages: (Storage | undefined)[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #writes: boolean[] = [];
  #count = 0;
  #site: StreamSite | undefined = undefined;
  #mayNeedOrder = false;
  /** The points that the record has to come after: of each stream the last. */
  readonly #after: Map<Timeline, number> = new Map();

  begin(site: StreamSite): void {
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
    if (storage.isForeign((this.#site as StreamSite).timeline)) this.#mayNeedOrder = true;
  }

  /**
   * Inserts the waits that are needed before the record (tracked), or throws a StreamHazardError (checked). `label` is what the
   * operation will be called.
   */
  order(_kind: OperationKind, _label: string | undefined): void {
    if (!this.#mayNeedOrder) return;
    const { core, timeline, ordering } = this.#site as StreamSite;
    // `explicit` streams wait for nothing, but for reads on streams that the program did not make and cannot name.
    const isTracked = ordering === 'tracked';
    if (!isTracked && core.readers.size === 0) return;
    const see = ({ writes, reads }: Stretch): void => {
      this.#comesAfter(writes, core, isTracked);
      if (isWrite) this.#comesAfter(reads, core, isTracked);
    };
    let isWrite = false;
    for (let i = 0; i < this.#count; i++) {
      isWrite = this.#writes[i] as boolean;
      (this.#storages[i] as Storage).history.visit(this.#starts[i] as number, this.#ends[i] as number, see);
    }
    try {
      for (const [other, ticket] of this.#after) core.order(timeline, other, ticket);
    } finally {
      this.#after.clear();
    }
  }

  /** The record was submitted. */
  commit(ticket: number): void {
    const { core, timeline, ordering } = this.#site as StreamSite;
    for (let i = 0; i < this.#count; i++) {
      const storage = this.#storages[i] as Storage;
      storage.use(timeline, ticket, this.#starts[i] as number, this.#ends[i] as number, this.#writes[i] as boolean, ordering === 'tracked');
      if (storage.core !== core) storage.core.orders.visitedBy(timeline, ticket);
      this.#storages[i] = undefined;
    }
    // A collector that lives for ever keeps no device.
    this.#site = undefined;
  }

  #comesAfter(points: Latest, core: DeviceCore, isTracked: boolean): void {
    const { timeline, ticket, rest } = points;
    if (timeline === undefined) return;
    this.#comesAfterPoint(timeline, ticket, core, isTracked);
    for (const point of rest) this.#comesAfterPoint(point.timeline, point.ticket, core, isTracked);
  }

  #comesAfterPoint(other: Timeline, ticket: number, core: DeviceCore, isTracked: boolean): void {
    if (other === this.#site?.timeline || !(isTracked || core.readers.has(other))) return;
    if ((this.#after.get(other) ?? 0) < ticket) this.#after.set(other, ticket);
  }
}

export const uses: Uses = new Uses();

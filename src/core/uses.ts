// What a record is about to use: collected, ordered against earlier uses, and written down once the record is submitted.
//
//   uses.begin(site); uses.add(storage, start, end, writes) ...; uses.order(kind, label); <encode, submit>; uses.commit(ticket)
//
// One collector serves the whole thread, since a record is submitted by the call that began it; nothing is allocated while
// one stream is used. Nothing is remembered before `commit`: a record that is refused has changed no order.
// Thread: owner.
import type { StreamSite } from './device-core.js';
import type { OperationKind } from './errors.js';
import type { Storage } from './storage.js';

export class Uses {
  readonly #storages: (Storage | undefined)[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #writes: boolean[] = [];
  #count = 0;
  #site: StreamSite | undefined = undefined;
  #mayNeedOrder = false;

  begin(site: StreamSite): void {
    this.#site = site;
    this.#count = 0;
    this.#mayNeedOrder = false;
  }

  /** Bytes `start` to `end` of the storage, not of what its handle names. */
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
    for (let i = 0; i < this.#count; i++) {
      core.orderUse(timeline, this.#storages[i] as Storage, this.#writes[i] as boolean, ordering === 'tracked');
    }
  }

  /** The record was submitted. */
  commit(ticket: number): void {
    const { timeline, ordering } = this.#site as StreamSite;
    for (let i = 0; i < this.#count; i++) {
      (this.#storages[i] as Storage).use(timeline, ticket, this.#writes[i] as boolean, ordering === 'tracked');
      this.#storages[i] = undefined;
    }
    // A collector that lives for ever keeps no device.
    this.#site = undefined;
  }
}

export const uses: Uses = new Uses();

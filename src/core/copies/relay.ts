// A copy that takes several records, perhaps on streams of several devices: each step comes after the one before, and
// the given stream after the last, so that outside it looks like one operation of the given stream.
//
// Room for all records is looked for before the first one. Should a later one be refused all the same, because another
// thread took the room, what was submitted keeps its order and its memory, and temporaries are freed.
// Thread: owner.
import { AllocKind } from '../../protocol/protocol.gen.js';
import { LimitError } from '../base/errors.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import { allocate } from '../memory/allocation.js';
import type { Storage } from '../memory/storage.js';
import { uses } from '../memory/record-accesses.js';
import type { FailingPart } from '../timeline/failures.js';
import type { Point } from '../timeline/timeline.js';
import { type Elements, flatRegion, type Region, writeAxes } from './region.js';

interface Temporary {
  readonly site: StreamContext;
  readonly storage: Storage;
}

export class Relay {
  readonly #given: StreamContext;
  readonly #label: string | undefined;
  /** One site a device. */
  readonly #sites: Map<DeviceCore, StreamContext> = new Map();
  readonly #temporaries: Temporary[] = [];
  /** The steps, each of which may fail by itself. */
  readonly parts: FailingPart[] = [];
  #last: Point;

  constructor(given: StreamContext, label: string | undefined) {
    this.#given = given;
    this.#label = label;
    this.#last = { timeline: given.timeline, ticket: given.timeline.last };
    this.#sites.set(given.core, given);
  }

  /** Where this device's part is done: on the given stream if that is its own. */
  on(core: DeviceCore): StreamContext {
    let site = this.#sites.get(core);
    if (site === undefined) {
      site = { core, timeline: core.helpers.take(this.#given.timeline), ordering: this.#given.ordering };
      this.#sites.set(core, site);
    }
    return site;
  }

  /** Where copies of this device's memory are done: on the given stream if that is one of the same backend. */
  near(core: DeviceCore): StreamContext {
    return this.#given.core.channel.backend === core.channel.backend ? this.#given : this.on(core);
  }

  /** Throws LimitError unless each of the streams taken so far has room for so many records. */
  reserve(records: number): void {
    for (const { core, timeline } of this.#sites.values()) core.checkRoom(timeline, records);
  }

  /** Memory of the site's device until `end`. */
  temporary(site: StreamContext, byteLength: number): Region {
    this.#follow(site, this.#last);
    const { storage, ticket } = allocate(site, byteLength, AllocKind.STAGING);
    this.#temporaries.push({ site, storage });
    this.#reached(site, ticket);
    return flatRegion(storage, 0, byteLength);
  }

  /** Bytes, between two regions that the site's backend reaches. Comes after the step before, or after `earlier`. `flags` are CopyFlags. */
  move(site: StreamContext, dst: Region, src: Region, byteLength: number, earlier: Point = this.#last, flags = 0): Point {
    this.#follow(site, earlier);
    return this.#reached(site, submitMove(site, dst, src, byteLength, this.#label, flags));
  }

  /** Elements, between two regions of the site's device. */
  arrange(site: StreamContext, dst: Region, src: Region, elements: Elements): Point {
    this.#follow(site, this.#last);
    return this.#reached(site, submitArrange(site, dst, src, elements, this.#label));
  }

  /** Throws a hazard that the given stream has with these, before anything is submitted. */
  check(dst: Region, src: Region): void {
    if (this.#given.ordering !== 'checked') return;
    collect(this.#given, dst, src);
    try {
      uses.order('copy', this.#label);
    } finally {
      uses.abandon();
    }
    // What that submitted stands before the first step too, and its clock is the one to follow.
    this.#last = this.#given.timeline.here();
  }

  /** The given stream comes after the last step; the ticket by which everything has finished. */
  end(): number {
    const { core, timeline } = this.#given;
    const last = this.#last;
    if (last.timeline !== timeline) {
      core.dependencies.order(timeline, last.timeline, last.ticket, 'array');
      // A ticket of its own: the wait may have been unnecessary, and what the stream was given before is not this copy.
      this.#reached(this.#given, core.submit(timeline, core.encoder.nop(timeline.slot)));
    }
    const { ticket } = this.#last;
    this.#free(last);
    return ticket;
  }

  /** A record was refused: what is there is given back after what was submitted. */
  abandon(): void {
    this.#free(this.#last);
  }

  #free(after: Point): void {
    for (const { site, storage } of this.#temporaries.splice(0)) {
      try {
        this.#follow(site, after);
        site.core.dependencies.freeOn(site.timeline, storage.handle);
      } catch (error) {
        // The copy itself was submitted; this waits for room as a disposed array does.
        if (error instanceof LimitError) site.core.dependencies.free(storage.handle, [...storage.uses()]);
        else if (site.core.refuseIfOver() === undefined) throw error;
      }
    }
  }

  #follow({ core, timeline }: StreamContext, { timeline: other, ticket }: Point): void {
    core.dependencies.order(timeline, other, ticket, 'array');
  }

  #reached({ core, timeline }: StreamContext, ticket: number): Point {
    this.parts.push({ failures: core.failures, timeline, ticket, page: timeline.failurePage(ticket) });
    this.#last = { timeline, ticket };
    return this.#last;
  }
}

/** The record of a copy of bytes, between two regions that the site's backend reaches; its ticket. */
export function submitMove(
  site: StreamContext,
  dst: Region,
  src: Region,
  byteLength: number,
  label: string | undefined,
  flags = 0,
): number {
  collect(site, dst, src);
  const { core, timeline } = site;
  return uses.submit('copy', label, () =>
    core.encoder.copy(
      timeline.slot,
      dst.storage.core.channel.id,
      dst.storage.space,
      dst.storage.handle,
      dst.storage.base + dst.offset,
      src.storage.core.channel.id,
      src.storage.space,
      src.storage.handle,
      src.storage.base + src.offset,
      byteLength,
      flags,
    ),
  );
}

/** The record of a copy of elements, between two regions of the site's device; its ticket. */
export function submitArrange(site: StreamContext, dst: Region, src: Region, elements: Elements, label: string | undefined): number {
  collect(site, dst, src);
  const { core, timeline } = site;
  return uses.submit('copy', label, () =>
    core.encoder.copyStrided(
      timeline.slot,
      dst.storage.handle,
      dst.storage.base + dst.offset,
      src.storage.handle,
      src.storage.base + src.offset,
      elements.byteSize,
      writeAxes(core.encoder, elements, dst, src),
    ),
  );
}

/** The uses of one record. */
function collect(site: StreamContext, dst: Region, src: Region): void {
  uses.begin(site);
  uses.add(dst.storage, dst.start, dst.end, true);
  uses.add(src.storage, src.start, src.end, false);
}

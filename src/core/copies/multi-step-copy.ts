// A copy that takes several records, possibly on streams of several devices. Each step waits for the step before, and the given
// stream for the last step, so the copy behaves like one operation of the given stream.
//
// Room for all records is checked before the first one. If a later record is refused because another thread took the room, the
// submitted steps keep their order and their memory, and temporaries are freed.
// Thread: owner.
import { AllocKind, CopyFlag } from '../../protocol/protocol.gen.js';
import { LimitError } from '../base/errors.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import { allocate, allocateCaptured } from '../memory/allocation.js';
import type { Storage } from '../memory/storage.js';
import type { RecordAccesses } from '../ordering/access-tracker.js';
import type { FailingPart } from '../timeline/failures.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { type Elements, flatRegion, type Region, writeAxes } from './memory-region.js';

interface Temporary {
  readonly site: StreamContext;
  readonly storage: Storage;
}

export class MultiStepCopy {
  readonly #given: StreamContext;
  readonly #label: string | undefined;
  /** One site per device. */
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

  /** The stream for steps of this device: the given stream if it belongs to the device. */
  on(core: DeviceCore): StreamContext {
    let site = this.#sites.get(core);
    if (site === undefined) {
      site = { core, timeline: this.#copyStream(core), ordering: this.#given.ordering };
      this.#sites.set(core, site);
    }
    return site;
  }

  /** The stream for copies of this device's memory: the given stream if it belongs to the same backend. */
  near(core: DeviceCore): StreamContext {
    return this.#given.core.channel.backend === core.channel.backend ? this.#given : this.on(core);
  }

  /** Throws LimitError unless each of the streams used so far has room for this many records. */
  reserve(records: number): void {
    for (const { core, timeline } of this.#sites.values()) core.checkRoom(timeline, records);
  }

  /** Allocates memory of the site's device, which `end` frees. */
  temporary(site: StreamContext, byteLength: number): Region {
    const { recording } = site.timeline;
    if (recording !== undefined) {
      const own = recording.own(site.timeline);
      const given = recording.own(this.#given.timeline);
      const captured = allocateCaptured(site, recording, own, byteLength, AllocKind.STAGING, own === given);
      // Launches come after the allocation, as after one by the given stream.
      this.#follow({ core: this.#given.core, timeline: given }, own.here());
      this.#temporaries.push({ site, storage: captured });
      return flatRegion(captured, 0, byteLength);
    }
    this.#follow(site, this.#last);
    const { storage, ticket } = allocate(site, byteLength, AllocKind.STAGING);
    this.#temporaries.push({ site, storage });
    this.#reached(site, ticket);
    return flatRegion(storage, 0, byteLength);
  }

  /** Copies bytes between two regions that the site's backend can access, after the step before or after `earlier`. `flags` are CopyFlags. */
  move(site: StreamContext, dst: Region, src: Region, byteLength: number, earlier: Point = this.#last, flags = 0): Point {
    this.#follow(site, earlier);
    return this.#reached(site, submitMove(site, dst, src, byteLength, this.#label, flags));
  }

  /** Copies elements between two regions of the site's device. */
  arrange(site: StreamContext, dst: Region, src: Region, elements: Elements): Point {
    return this.step(site, () => submitArrange(site, dst, src, elements, this.#label));
  }

  /** Calls `submit`, which submits one record to the site. */
  step(site: StreamContext, submit: () => number): Point {
    this.#follow(site, this.#last);
    return this.#reached(site, submit());
  }

  /** Throws if these regions are a hazard on the given stream, before anything is submitted. */
  check(dst: Region, src: Region): void {
    if (this.#given.ordering !== 'checked') return;
    this.checkRecord(beginCopy(this.#given, dst, src), 'copy');
  }

  /** Throws if this record is a hazard on the given stream, before anything is submitted. */
  checkRecord(record: RecordAccesses, kind: 'copy' | 'fill'): void {
    try {
      record.order(kind, this.#label);
    } finally {
      record.abandon();
    }
    // The check may have submitted waits; the first step follows them.
    this.#last = this.#given.timeline.here();
  }

  /** Makes the given stream wait for the last step. Returns the ticket by which everything has finished. */
  end(): number {
    const { core, timeline } = this.#given;
    const last = this.#last;
    if (last.timeline !== timeline) {
      core.tracker.waitFor(core, timeline, last, 'array');
      // A ticket of its own: the wait may have been unnecessary, and what the stream was given before is not this copy.
      this.#reached(this.#given, core.submit(timeline, core.encoder.nop(timeline.slot)));
    }
    const { ticket } = this.#last;
    this.#free(last);
    return ticket;
  }

  /** Call it when a record was refused: frees the temporaries after the submitted steps. */
  abandon(): void {
    this.#free(this.#last);
  }

  #free(after: Point): void {
    for (const { site, storage } of this.#temporaries.splice(0)) {
      if (site.timeline.recording !== undefined) {
        storage.freeBy(() => storage.free());
        continue;
      }
      try {
        this.#follow(site, after);
        storage.freeOn(site.timeline);
      } catch (error) {
        // The copy itself was submitted; this waits for room as a disposed array does.
        if (error instanceof LimitError) storage.free();
        else if (site.core.refuseIfOver() === undefined) throw error;
      }
    }
  }

  #follow({ core, timeline }: Pick<StreamContext, 'core' | 'timeline'>, point: Point): void {
    core.tracker.waitFor(core, timeline, point, 'array');
  }

  #copyStream(core: DeviceCore): Timeline {
    const { timeline } = this.#given;
    const { recording } = timeline;
    const taken = core.internalStreams.copies.takeFor(recording?.own(timeline) ?? timeline, !core.tracker.areClocksKept);
    return recording?.join(core, taken) ?? taken;
  }

  #reached({ core, timeline }: StreamContext, ticket: number): Point {
    this.parts.push({ failures: core.failures, timeline, ticket, page: timeline.failurePage(ticket) });
    this.#last = { timeline, ticket };
    return this.#last;
  }
}

/** Submits a copy of bytes between two regions that the site's backend can access. Returns its ticket. */
export function submitMove(
  site: StreamContext,
  dst: Region,
  src: Region,
  byteLength: number,
  label: string | undefined,
  flags = 0,
): number {
  const { core, timeline } = site;
  return beginCopy(site, dst, src).submit('copy', label, () =>
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
      flags | (dst.storage.isPinned || src.storage.isPinned ? CopyFlag.PINNED : 0),
    ),
  );
}

/** Submits a copy of elements between two regions of the site's device. Returns its ticket. */
export function submitArrange(site: StreamContext, dst: Region, src: Region, elements: Elements, label: string | undefined): number {
  const { core, timeline } = site;
  return beginCopy(site, dst, src).submit('copy', label, () =>
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

/** Begins the record of a copy. */
function beginCopy(site: StreamContext, dst: Region, src: Region): RecordAccesses {
  const record = site.core.tracker.begin(site);
  record.add(dst.storage, dst.start, dst.end, true);
  record.add(src.storage, src.start, src.end, false);
  return record;
}

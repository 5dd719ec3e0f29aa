// Events: timestamps of the device, and events that other processes see. Each is an object of the driver with a handle, made
// by the record that first names it and given back in stream order.
//
// A timing event is recorded once: a record of a timing event makes a new one, so that `elapsed` of the earlier record, still
// under way, keeps what it asks about. An event is held by its event or operation and by each such question; when nobody
// holds it, its FREE_EVENT is submitted behind its last use.
// Thread: owner.
import { EventKind } from '../../protocol/protocol.gen.js';
import type { DeviceCore } from '../device/device-core.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { checkWaitOptions, type WaitOptions, waitWith } from '../waits/wait.js';

export class EventHandle {
  readonly core: DeviceCore;
  readonly kind: EventKind;
  readonly handle: number;
  #holders = 1;
  /** Does the handle name something? */
  #isBound = false;
  // Its last use on each stream; the latest stands apart, because a timing event has no other.
  #last: Point | undefined = undefined;
  #others: Map<Timeline, number> | undefined = undefined;

  /** Held by whoever makes it. */
  constructor(core: DeviceCore, kind: EventKind) {
    this.core = core;
    this.kind = kind;
    this.handle = core.eventHandles.take();
  }

  /** The record's ticket. */
  record(timeline: Timeline): number {
    const { encoder } = this.core;
    return this.#use(timeline, encoder.recordEvent(timeline.slot, this.handle, this.kind));
  }

  /** Later work of the stream, one of the event's device, comes after its last record, whoever made that. The record's ticket. */
  waitOn(timeline: Timeline): number {
    const { encoder } = this.core;
    return this.#use(timeline, encoder.waitEvent(timeline.slot, this.handle));
  }

  /** The device's worker makes something of it, apart from all streams. */
  bind(): void {
    this.#isBound = true;
  }

  hold(): void {
    this.#holders++;
  }

  letGo(): void {
    if (--this.#holders > 0) return;
    const { core, handle } = this;
    if (!this.#isBound) core.eventHandles.giveBackNow(handle);
    else
      core.dependencies.giveBack([...this.uses()], (timeline) => {
        core.eventHandles.giveBack(handle, timeline, core.submit(timeline, core.encoder.freeEvent(timeline.slot, handle)));
      });
  }

  /** @internal Every use, the latest first. */
  *uses(): Iterable<Point> {
    if (this.#last !== undefined) yield this.#last;
    for (const [timeline, ticket] of this.#others ?? []) yield { timeline, ticket };
  }

  #use(timeline: Timeline, bytes: number): number {
    const ticket = this.core.submit(timeline, bytes);
    this.#isBound = true;
    if (this.#last !== undefined && this.#last.timeline !== timeline) {
      this.#others ??= new Map();
      this.#others.set(this.#last.timeline, this.#last.ticket);
      this.#others.delete(timeline);
    }
    this.#last = { timeline, ticket };
    return ticket;
  }
}

/** A timing event of this place. Refused, it throws and nothing is left. */
export function stamp(core: DeviceCore, timeline: Timeline): EventHandle {
  const eventHandle = new EventHandle(core, EventKind.TIMING);
  try {
    eventHandle.record(timeline);
  } catch (error) {
    eventHandle.letGo();
    throw error;
  }
  return eventHandle;
}

/**
 * Milliseconds between two timing events of one device whose records have finished: `cuEventElapsedTime`. They are held until
 * the answer is there, whether or not it is waited for that long.
 */
export async function askElapsed(start: EventHandle, end: EventHandle, opts: WaitOptions | undefined): Promise<number> {
  const { core } = start;
  const over = core.refuseIfOver();
  if (over !== undefined) throw over;
  start.hold();
  end.hold();
  const answer = core.channel.ask('elapsed', start.handle, end.handle).finally(() => {
    start.letGo();
    end.letGo();
  });
  return waitWith(answer, opts, `the clock of device ${core.name}`);
}

/** What is left of a wait that began at `sinceMs`. */
export function rest(opts: WaitOptions | undefined, sinceMs: number): WaitOptions | undefined {
  const { timeoutMs, ...others } = checkWaitOptions(opts);
  return timeoutMs === undefined ? opts : { ...others, timeoutMs: Math.max(0, timeoutMs - (performance.now() - sinceMs)) };
}

// ── what owns events ──

/** The events of an event or operation, apart from it: they are given back when it is collected undisposed. */
export class EventCell {
  eventHandles: readonly EventHandle[] = [];

  /** Takes these over instead of those it had. */
  replace(...eventHandles: readonly EventHandle[]): void {
    const before = this.eventHandles;
    this.eventHandles = eventHandles;
    for (const eventHandle of before) eventHandle.letGo();
  }
}

// Finalizers never touch the device: giving back is a record, submitted on a turn of its own.
const collected = new FinalizationRegistry<EventCell>((cell) => setImmediate(() => cell.replace()));

/** `owner` is forgotten without further notice: losing an event costs nobody memory to speak of, so nobody is warned. */
export function own(owner: object, cell: EventCell): void {
  collected.register(owner, cell, cell);
}

export function disown(cell: EventCell): void {
  collected.unregister(cell);
  cell.replace();
}

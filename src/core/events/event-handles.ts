// Handles of driver events: timestamps, and interprocess events. The record that first names a handle creates its driver event,
// and a FREE_EVENT record frees it in stream order.
//
// A timing handle is recorded once. Recording a timing event again takes a new handle, so that an `elapsed` call that is still
// pending for the earlier record keeps its handle. A handle is counted as used by its event or operation and by each pending
// `elapsed` call. When the count is 0, FREE_EVENT is submitted after its last use. A timing handle of a capture is recorded by every launch
// of its graph, which counts as a user of the handle, too; the device keeps the times of the latest launch that has finished. Each launch
// makes the handle that of its event again, which a stream or another graph may have recorded meanwhile.
// Thread: owner.
import { EventKind } from '../../protocol/protocol.gen.js';
import { endForgotten } from '../base/forgotten.js';
import type { DeviceCore } from '../device/device-core.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { type WaitOptions, waitWith } from '../waits/wait.js';

export class EventHandle {
  readonly core: DeviceCore;
  readonly kind: EventKind;
  readonly handle: number;
  #holders = 1;
  /** Whether a driver event exists, or will after submitted records. */
  #isBound = false;
  // Its last use on each stream. The latest use is kept apart, because a timing event has only one.
  #last: Point | undefined = undefined;
  #others: Map<Timeline, number> | undefined = undefined;
  /** If it was recorded in a capture: the event that it belongs to, and the point in the capture. */
  #captured: { readonly cell: EventCell; readonly point: Point } | undefined = undefined;

  /** The creator holds the first reference. */
  constructor(core: DeviceCore, kind: EventKind) {
    this.core = core;
    this.kind = kind;
    this.handle = core.handles.events.take();
  }

  /** Records the event. Returns the ticket. In a capture, the launches of the graph record it. */
  record(timeline: Timeline): number {
    const { encoder } = this.core;
    if (timeline.recording !== undefined) {
      const ticket = this.core.submit(timeline, encoder.recordEvent(timeline.slot, this.handle, this.kind));
      timeline.recording.addEvent(this);
      return ticket;
    }
    return this.#use(timeline, encoder.recordEvent(timeline.slot, this.handle, this.kind));
  }

  /** Makes later work of the stream, one of the event's device, wait for the last record of the event, in any process. Returns the ticket. */
  waitOn(timeline: Timeline): number {
    const { encoder } = this.core;
    return this.#use(timeline, encoder.waitEvent(timeline.slot, this.handle));
  }

  /** Call it when the device's worker creates or opens the driver event, outside of all streams. */
  bind(): void {
    this.#isBound = true;
  }

  /** A launch of a graph that records it was submitted. */
  noteLaunch(timeline: Timeline, ticket: number): void {
    this.#note(timeline, ticket);
    this.#captured?.cell.takeAgain(this);
  }

  /** It was recorded at a point of a capture, for the event of this cell. */
  noteCapture(cell: EventCell, point: Point): void {
    this.#captured = { cell, point };
  }

  /** Its point in the capture that recorded it. */
  get capturedPoint(): Point | undefined {
    return this.#captured?.point;
  }

  /** Its latest use. Of an event of graphs, the latest launch. */
  get last(): Point | undefined {
    return this.#last;
  }

  hold(): void {
    this.#holders++;
  }

  release(): void {
    if (--this.#holders > 0) return;
    const { core, handle } = this;
    if (!this.#isBound) core.handles.events.giveBackNow(handle);
    else
      core.frees.freeAfter([...this.uses()], (timeline) => {
        core.handles.events.giveBack(handle, timeline, core.submit(timeline, core.encoder.freeEvent(timeline.slot, handle)));
      });
  }

  /** @internal All uses, the latest first. */
  *uses(): Iterable<Point> {
    if (this.#last !== undefined) yield this.#last;
    for (const [timeline, ticket] of this.#others ?? []) yield { timeline, ticket };
  }

  #use(timeline: Timeline, bytes: number): number {
    const ticket = this.core.submit(timeline, bytes);
    this.#note(timeline, ticket);
    return ticket;
  }

  #note(timeline: Timeline, ticket: number): void {
    this.#isBound = true;
    if (this.#last !== undefined && this.#last.timeline !== timeline) {
      this.#others ??= new Map();
      this.#others.set(this.#last.timeline, this.#last.ticket);
      this.#others.delete(timeline);
    }
    this.#last = { timeline, ticket };
  }
}

/** Records a new timing event on the stream. If the record is refused, throws and frees the handle. */
export function stamp(core: DeviceCore, timeline: Timeline): EventHandle {
  const eventHandle = new EventHandle(core, EventKind.TIMING);
  try {
    eventHandle.record(timeline);
  } catch (error) {
    eventHandle.release();
    throw error;
  }
  return eventHandle;
}

/**
 * Milliseconds between two timing events of one device whose records have finished: `cuEventElapsedTime`. Both handles are kept until the
 * answer arrives, also if `opts` ends the wait earlier.
 */
export async function askElapsed(start: EventHandle, end: EventHandle, opts: WaitOptions | undefined): Promise<number> {
  const { core } = start;
  const over = core.refuseIfOver();
  if (over !== undefined) throw over;
  start.hold();
  end.hold();
  const answer = core.channel.ask('elapsed', start.handle, end.handle).finally(() => {
    start.release();
    end.release();
  });
  return waitWith(answer, opts, `the clock of device ${core.name}`);
}

// ── Owners of events ──

/** The handles of an event or operation, in a separate object, so that they are freed when their owner is collected without being disposed. */
export class EventCell {
  eventHandles: readonly EventHandle[] = [];
  #isOver = false;

  /** Releases the present handles and takes over these. */
  replace(...eventHandles: readonly EventHandle[]): void {
    const before = this.eventHandles;
    this.eventHandles = eventHandles;
    for (const eventHandle of before) eventHandle.release();
  }

  /** A graph has recorded this handle after whatever was recorded since the capture. */
  takeAgain(eventHandle: EventHandle): void {
    if (this.#isOver || this.eventHandles[0] === eventHandle) return;
    eventHandle.hold();
    this.replace(eventHandle);
  }

  /** The owner is gone. */
  end(): void {
    this.#isOver = true;
    this.replace();
  }
}

const collected = endForgotten<EventCell>((cell) => cell.end());

/** Frees the cell's handles when `owner` is collected. Prints no warning, unlike for arrays, because an event uses little memory. */
export function own(owner: object, cell: EventCell): void {
  collected.register(owner, cell, cell);
}

export function disown(cell: EventCell): void {
  collected.unregister(cell);
  cell.end();
}

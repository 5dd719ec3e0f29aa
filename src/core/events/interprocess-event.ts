// An interprocess event. One driver event serves all its records. Once another process can record it too, the points of this
// process do not show all records, so waits also wait for the driver event: on the waiting stream, or, for the host and for
// streams of other devices, on a hidden stream.
// Thread: owner.
import { EventKind } from '../../protocol/protocol.gen.js';
import { MillraceError, StateError } from '../base/errors.js';
import type { DeviceCore } from '../device/device-core.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { noteObserved } from '../waits/host-observed.js';
import type { WaitOptions } from '../waits/wait.js';
import { EventHandle, EventCell } from './event-handles.js';

export class InterprocessEvent {
  readonly cell: EventCell = new EventCell();
  readonly #core: DeviceCore;
  readonly #eventHandle: EventHandle;
  readonly #isOpened: boolean;
  /** Whether another process can record it. */
  #isShared: boolean;
  /** The last wait on a hidden stream for the host. */
  #asked: Point | undefined = undefined;

  /** `opened`: the handle of an event that another process created. */
  constructor(core: DeviceCore, opened: EventHandle | undefined) {
    this.#core = core;
    this.#eventHandle = opened ?? new EventHandle(core, EventKind.INTERPROCESS);
    this.#isOpened = opened !== undefined;
    this.#isShared = this.#isOpened;
    this.cell.replace(this.#eventHandle);
  }

  get isShared(): boolean {
    return this.#isShared;
  }

  /**
   * Submits a wait for the latest record, unless one was submitted since the latest record of this process, `point`. Does nothing if the wait
   * is refused.
   */
  ask(point: Point | undefined): void {
    try {
      this.#asked ??= this.#meet(point);
    } catch (error) {
      // The device is gone or its queue is full: whether the event is complete stays unknown.
      if (!(error instanceof MillraceError)) throw error;
    }
  }

  /** Whether the last wait of the host or of `ask` has ended and this process has recorded nothing since. */
  get isComplete(): boolean {
    if (this.#asked === undefined || !this.#asked.timeline.hasReached(this.#asked.ticket)) return false;
    noteObserved(this.#asked);
    return true;
  }

  /** Records the event. Returns the ticket. */
  record(timeline: Timeline): number {
    const ticket = this.#eventHandle.record(timeline);
    this.#asked = undefined;
    return ticket;
  }

  /** Makes later work of the stream, of any device, wait for the latest record. `point` is the latest record of this process. */
  waitOn(core: DeviceCore, timeline: Timeline, point: Point | undefined): void {
    if (core === this.#core) {
      if (point !== undefined) core.tracker.waitFor(core, timeline, point, 'event');
      this.#eventHandle.waitOn(timeline);
      return;
    }
    const met = this.#meet(point);
    core.tracker.waitFor(core, timeline, met, 'event');
  }

  /** Resolves when the device has passed the latest record. */
  async wait(point: Point | undefined, opts: WaitOptions | undefined): Promise<void> {
    const met = this.#meet(point);
    this.#asked = met;
    await this.#core.waits.until(met.timeline, met.ticket, undefined, opts);
  }

  async export(): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#isOpened) throw new StateError('ERR_MILLRACE_STATE', 'The event belongs to another process: get its handle in that process.');
    const over = this.#core.refuseIfOver();
    if (over !== undefined) throw over;
    this.#eventHandle.bind();
    this.#eventHandle.hold();
    try {
      const handle = await this.#core.channel.ask('exportEvent', this.#eventHandle.handle);
      this.#isShared = true;
      return handle;
    } finally {
      this.#eventHandle.release();
    }
  }

  /** A point of a hidden stream after the latest record. */
  #meet(point: Point | undefined): Point {
    const core = this.#core;
    const timeline = core.internalStreams.interprocess.take();
    if (point !== undefined) core.tracker.waitFor(core, timeline, point, 'event');
    return { timeline, ticket: this.#eventHandle.waitOn(timeline), clock: timeline.clockEntry.clock };
  }
}

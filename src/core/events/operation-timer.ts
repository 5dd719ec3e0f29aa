// How long the device worked on an operation of a stream with timing: a timestamp before its records and one after them.
//
// The first is taken after the waits that the operation needs, so that what it waited for does not count; the access
// tracker asks for it. An operation that uses no memory has none. Streams without timing have no timer.
// Thread: owner.
import { DeviceLostError, LimitError, StateError } from '../base/errors.js';
import type { DeviceCore } from '../device/device-core.js';
import type { Timeline } from '../timeline/timeline.js';
import { type WaitOptions, waitWith } from '../waits/wait.js';
import { askElapsed, disown, type EventHandle, EventCell, own, stamp } from './event-handles.js';

/** The two timestamps of an operation. */
export class Span {
  readonly #core: DeviceCore;
  readonly #timeline: Timeline;
  readonly #start: EventHandle;
  readonly #end: EventHandle;
  readonly #ticket: number;
  readonly #cell: EventCell = new EventCell();
  #elapsed: Promise<number | undefined> | undefined = undefined;

  /** `end` was the last record of the stream. */
  constructor(core: DeviceCore, timeline: Timeline, start: EventHandle, end: EventHandle) {
    this.#core = core;
    this.#timeline = timeline;
    this.#start = start;
    this.#end = end;
    this.#ticket = timeline.last;
    this.#cell.replace(start, end);
  }

  /** Sets the owner: the timestamps are freed when this operation is collected. */
  belongsTo(operation: object): void {
    own(operation, this.#cell);
  }

  /** The time in milliseconds, read from the device once; undefined if the device is gone. */
  elapsedMs(opts: WaitOptions | undefined): Promise<number | undefined> {
    this.#elapsed ??= this.#ask();
    return waitWith(this.#elapsed, opts, `the clock of device ${this.#core.name}`);
  }

  async #ask(): Promise<number | undefined> {
    try {
      await this.#core.waits.until(this.#timeline, this.#ticket);
      return await askElapsed(this.#start, this.#end, undefined);
    } catch (error) {
      // The operation itself has finished.
      if (isRefusal(error)) return undefined;
      throw error;
    } finally {
      disown(this.#cell);
    }
  }
}

export class OperationTimer {
  readonly #core: DeviceCore;
  readonly #timeline: Timeline;
  #start: EventHandle | undefined = undefined;

  constructor(core: DeviceCore, timeline: Timeline) {
    this.#core = core;
    this.#timeline = timeline;
  }

  /** A call begins, or the stream ends; what is left here is of a call that was refused. */
  clear(): void {
    this.#start?.release();
    this.#start = undefined;
  }

  /** The operation's first record of its own comes next. */
  start(): void {
    this.#start ??= stamp(this.#core, this.#timeline);
  }

  /** Its records are submitted. Undefined where it was not started, and where the second timestamp is refused. */
  end(): Span | undefined {
    const start = this.#start;
    if (start === undefined) return undefined;
    this.#start = undefined;
    try {
      return new Span(this.#core, this.#timeline, start, stamp(this.#core, this.#timeline));
    } catch (error) {
      start.release();
      if (isRefusal(error)) return undefined;
      throw error;
    }
  }
}

/** Whether the queue was full or the device gone, which does not fail the operation. */
function isRefusal(error: unknown): boolean {
  return error instanceof LimitError || error instanceof StateError || error instanceof DeviceLostError;
}

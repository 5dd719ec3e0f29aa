// How long the device worked on an operation of a stream with timing: a timestamp before its records and one behind them.
//
// The first is taken after the waits that the operation needs, so that what it waited for does not count; `uses.order` asks
// for it. An operation that uses no memory has none. Streams without timing have no timer.
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

  /** It is this operation's: when that is collected its timestamps go back. */
  belongsTo(operation: object): void {
    own(operation, this.#cell);
  }

  /** In milliseconds; the device is asked once. Undefined when it is gone. */
  elapsedMs(opts: WaitOptions | undefined): Promise<number | undefined> {
    this.#elapsed ??= this.#ask();
    return waitWith(this.#elapsed, opts, `the clock of device ${this.#core.name}`);
  }

  async #ask(): Promise<number | undefined> {
    try {
      await this.#core.waits.until(this.#timeline, this.#ticket);
      return await askElapsed(this.#start, this.#end, undefined);
    } catch (error) {
      // The operation has finished all the same.
      if (isRefusal(error)) return undefined;
      throw error;
    } finally {
      disown(this.#cell);
    }
  }
}

export class OperationTimer {
  #start: EventHandle | undefined = undefined;

  /** A call begins, or the stream ends; what is left here is of a call that was refused. */
  clear(): void {
    this.#start?.letGo();
    this.#start = undefined;
  }

  /** The operation's first record of its own comes next. */
  start(core: DeviceCore, timeline: Timeline): void {
    this.#start ??= stamp(core, timeline);
  }

  /** Its records are submitted. Undefined where it was not started, and where the second timestamp is refused. */
  end(core: DeviceCore, timeline: Timeline): Span | undefined {
    const start = this.#start;
    if (start === undefined) return undefined;
    this.#start = undefined;
    try {
      return new Span(core, timeline, start, stamp(core, timeline));
    } catch (error) {
      start.letGo();
      if (isRefusal(error)) return undefined;
      throw error;
    }
  }
}

/** No room, or nothing to ask any more: no fault of the operation. */
function isRefusal(error: unknown): boolean {
  return error instanceof LimitError || error instanceof StateError || error instanceof DeviceLostError;
}

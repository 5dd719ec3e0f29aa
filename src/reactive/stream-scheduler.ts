// A stream as an RxJS scheduler: `observeOn(onStream(stream))` passes a value on when the stream has finished the operations that were
// submitted before.
//
// A scheduled action waits for the stream and submits nothing. Actions of a stream run in the order in which they began to wait, each
// in the asynchronous context of its `schedule` call.
// Thread: owner.
import { AsyncResource } from 'node:async_hooks';
import type { SchedulerAction, SchedulerLike, Subscription } from 'rxjs';
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { Stream } from '../core/api/stream.js';
import { MAX_TIMEOUT_MS } from '../core/waits/wait.js';
import { rx } from './observe.js';
import { setImmediate } from '../core/base/timers.js';

interface Waiting {
  readonly run: () => void;
  isReached: boolean;
  isDropped: boolean;
}

/** The actions that wait for one stream. */
class Line {
  readonly #stream: Stream;
  #waiting: Waiting[] = [];
  #isScheduled = false;

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  /** Calls `run` on a turn of the event loop after the stream's present operations have finished. Returns a function that drops it. */
  add(run: () => void): () => void {
    const waiting = { run, isReached: false, isDropped: false };
    const cancel = new AbortController();
    this.#waiting.push(waiting);
    const reached = (): void => {
      waiting.isReached = true;
      this.#runSoon();
    };
    // Run the action also on rejection: a closed stream has finished everything, and the stream of a lost device finishes nothing more.
    this.#stream.synchronize({ signal: cancel.signal }).then(reached, reached);
    return () => {
      waiting.isDropped = true;
      cancel.abort();
    };
  }

  #runSoon(): void {
    if (this.#isScheduled || this.#waiting[0]?.isReached !== true) return;
    this.#isScheduled = true;
    // An action that schedules itself again runs in a later turn, so that other callbacks of the loop run between.
    setImmediate(() => {
      this.#isScheduled = false;
      const open = this.#waiting.findIndex(({ isReached }) => !isReached);
      for (const { run, isDropped } of this.#waiting.splice(0, open < 0 ? this.#waiting.length : open)) if (!isDropped) run();
      this.#runSoon();
    });
  }
}

const schedulers: WeakMap<Stream, SchedulerLike> = new WeakMap();

/**
 * The stream as an RxJS scheduler, for `observeOn`, `subscribeOn` and other operators that take one. An action runs on the event loop,
 * never within the `schedule` call, after everything that was submitted to the stream before has finished: host functions have returned and
 * the bytes of copies have arrived. Failed operations, operations of a lost device and operations of a closed stream count as finished.
 * Actions run in the order of the calls and submit nothing to the device. With a `delay` in milliseconds, an action waits first for the
 * delay, then for everything that was submitted to the stream until then. Unsubscribing drops an action. A waiting action keeps the process
 * alive.
 *
 * Throws ArgumentError for anything but a Stream. `schedule` throws ArgumentError for a bad delay, and StateError inside a `hold` that the
 * stream waits for. An error that an action throws is an uncaught exception.
 * @example source.pipe(tap((x) => stream.copy(y, x)), observeOn(onStream(stream))).subscribe(() => console.log('copied'));
 */
export function onStream(stream: Stream): SchedulerLike {
  if (arguments.length > 1) refuseSurplus('onStream', arguments, 1);
  if (!(stream instanceof Stream)) throw badArgument('stream', stream, `The stream to schedule on (${show(stream)}) is not a stream.`);
  let scheduler = schedulers.get(stream);
  if (scheduler === undefined) schedulers.set(stream, (scheduler = makeScheduler(stream)));
  return scheduler;
}

function makeScheduler(stream: Stream): SchedulerLike {
  const line = new Line(stream);
  const schedule = <T>(work: (this: SchedulerAction<T>, state?: T) => void, delay?: number, state?: T): Subscription =>
    makeAction(stream, line, work as Work<T>).schedule(state, delay);
  return { now: stream.core.clock.timeOfDay, schedule };
}

type Work<T> = (this: SchedulerAction<T>, state: T | undefined) => void;

/** Like RxJS's own actions, it stays open after it has run, and may schedule itself again. */
function makeAction<T>(stream: Stream, line: Line, work: Work<T>): SchedulerAction<T> {
  const { Subscription } = rx();
  const { clock } = stream.core;
  let cancelTimer: (() => void) | undefined;
  let drop: (() => void) | undefined;
  const cancel = (): void => {
    cancelTimer?.();
    drop?.();
    drop = undefined;
  };
  const schedule = (state?: T, delay: number = 0): Subscription => {
    checkDelay(delay);
    const refused = stream.refuseWait();
    if (refused !== undefined) throw refused;
    if (action.closed) return action;
    cancel();
    const context = new AsyncResource('millrace.scheduled');
    const run = (): void => {
      drop = undefined;
      try {
        context.runInAsyncScope(() => work.call(action, state));
      } catch (error) {
        action.unsubscribe();
        // Throw on a later turn, so that the actions after this one still run.
        setImmediate(() => {
          throw error;
        });
      }
    };
    const wait = (): void => {
      drop = line.add(run);
    };
    if (delay > 0) cancelTimer = clock.after(delay, wait);
    else wait();
    return action;
  };
  const action: SchedulerAction<T> = Object.assign(new Subscription(cancel), { schedule });
  return action;
}

/** RxJS's operators may compute delays below 0, which count as 0. */
function checkDelay(delay: unknown): void {
  if (typeof delay === 'number' && delay <= MAX_TIMEOUT_MS) return;
  throw badArgument('delay', delay, `The delay (${show(delay)}) is not a number of milliseconds up to ${MAX_TIMEOUT_MS}.`, MAX_TIMEOUT_MS);
}

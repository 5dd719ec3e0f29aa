// Virtual time. The clock owns the queue of RxJS's TestScheduler: a device, a pipeline and an RxJS operator that wait are actions in it.
//
// RxJS's own `TestScheduler.run` executes the whole queue in one synchronous call. A pipeline hands its items on by promises, whose
// callbacks cannot run meanwhile. So the clock executes one action, lets the event loop turn until nothing follows from it any more, and
// only then takes the next action.
// Thread: owner.
import { AsyncResource } from 'node:async_hooks';
import type { SchedulerLike } from 'rxjs';
import { badArgument, show } from '../core/base/arguments.js';
import type { Clock } from '../core/base/clock.js';
import { LimitError, StateError, WaitTimeoutError } from '../core/base/errors.js';
import { isPromiseLike } from '../core/base/promise-like.js';
import { useVirtualTime } from './rxjs-time.js';
import { type Marbles, MarbleScheduler } from './marbles.js';
import { performance, setImmediate, setTimeout } from '../core/base/timers.js';

/** Turns of the event loop without a new event before the clock advances. The library's longest chain of `setImmediate` is shorter. */
const QUIET_TURNS = 6;
const DEFAULT_MAX_MS = 3_600_000;
const DEFAULT_REAL_TIMEOUT_MS = 2000;

/** Options of `createTestClock`. */
export interface TestClockOptions {
  /** Compares the expected marbles of `expectObservable` with the actual ones. Default: `deepStrictEqual` of `node:assert`. */
  readonly assertEqual?: (actual: unknown, expected: unknown) => void;
}

/** Limits of `TestClock.run`. */
export interface TestRunOptions {
  /** Virtual milliseconds after which `run` rejects with a LimitError, because work is still scheduled. Default: one hour. */
  readonly maxMs?: number;
  /**
   * Real milliseconds with nothing scheduled on the clock, after which `run` rejects with a WaitTimeoutError because `work` has not
   * settled. Default: 2000.
   */
  readonly realTimeoutMs?: number;
}

/** Time for the devices of a test, for pipelines on them and, inside `run`, for RxJS. It starts at 0 and only `advance` and `run` move it. */
export interface TestClock {
  /** Milliseconds since the clock was made. */
  readonly now: number;
  /** An RxJS scheduler of this time, for operators that are not inside `run`: `interval(10, clock.scheduler)`. */
  readonly scheduler: SchedulerLike;
  /**
   * Advances the time by `ms`. Due actions run in their order, and promises, `setImmediate` and `process.nextTick` settle before each step.
   * Rejects with what an action throws. Throws ArgumentError for a bad `ms`. Inside `run` it waits until the time has come.
   */
  advance(ms: number): Promise<void>;
  /** Resolves `ms` virtual milliseconds from now: the `setTimeout` of a stage under test. */
  sleep(ms: number): Promise<void>;
  /**
   * Calls `work`, and advances the time whenever nothing else is left to do. It ends when the promise that `work` returned has settled;
   * without a promise, or with expected marbles, when nothing is scheduled any more. Then it compares the expectations. Meanwhile, RxJS's
   * operators use this time by default. `work` gets the helpers of RxJS's `TestScheduler.run`.
   *
   * Real work (files, threads of a pool) takes no virtual time. Rejects with what `work`, an action or a comparison throws, with LimitError
   * and WaitTimeoutError as `TestRunOptions` say, and with StateError while another `run` is under way in this process.
   */
  run<R>(work: (marbles: Marbles) => R | PromiseLike<R>, opts?: TestRunOptions): Promise<R>;
}

/** The clock, with what devices of a test use of it. */
export class VirtualClock implements TestClock {
  /** For the library. */
  readonly core: Clock;
  readonly #queue: MarbleScheduler;
  /** Grows with whatever is scheduled or happens. */
  #events = 0;
  #isDriven = false;
  #isTurnAsked = false;

  constructor(assertEqual: TestClockOptions['assertEqual']) {
    this.#queue = new MarbleScheduler(assertEqual, () => this.#noteEvent());
    this.core = { now: () => this.now, timeOfDay: () => this.now, after: (ms, call) => this.after(ms, call) };
  }

  get now(): number {
    return this.#queue.frame;
  }

  get scheduler(): SchedulerLike {
    return this.#queue;
  }

  /** As `Clock.after`. */
  after(ms: number, call: () => void): () => void {
    const bound = AsyncResource.bind(call, 'millrace.test-timer');
    const action = this.#queue.schedule(() => bound(), ms);
    return () => action.unsubscribe();
  }

  sleep(ms: number): Promise<void> {
    checkDuration('ms', ms);
    return new Promise((resolve) => {
      this.after(ms, resolve);
    });
  }

  async advance(ms: number): Promise<void> {
    checkDuration('ms', ms);
    if (this.#isDriven) return this.sleep(ms);
    const end = this.now + ms;
    await this.#drive(async () => {
      while (await this.#step(end));
      this.#queue.frame = end;
    });
  }

  async run<R>(work: (marbles: Marbles) => R | PromiseLike<R>, opts: TestRunOptions = {}): Promise<R> {
    const { maxMs = DEFAULT_MAX_MS, realTimeoutMs = DEFAULT_REAL_TIMEOUT_MS } = opts;
    checkDuration('maxMs', maxMs);
    checkDuration('realTimeoutMs', realTimeoutMs);
    if (typeof work !== 'function') throw badArgument('work', work, `The work (${show(work)}) is not a function.`);
    if (this.#isDriven) throw new StateError('ERR_MILLRACE_STATE', 'Another advance or run is already moving the clock.');
    const stopUsing = useVirtualTime(this);
    try {
      return await this.#drive(() => this.#run(work, this.now + maxMs, maxMs, realTimeoutMs));
    } finally {
      stopUsing();
      this.#queue.forgetExpectations();
    }
  }

  async #run<R>(work: (marbles: Marbles) => R | PromiseLike<R>, end: number, maxMs: number, realTimeoutMs: number): Promise<R> {
    const result = work(this.#queue.marbles());
    let isSettled = !isPromiseLike(result);
    const settle = (): void => {
      isSettled = true;
      this.#noteEvent();
    };
    if (isPromiseLike(result)) result.then(settle, settle);
    const isToTheEnd = !isPromiseLike(result);
    const isDone = (): boolean => isSettled && !isToTheEnd && !this.#queue.isExpecting;
    for (;;) {
      const hasStepped = await this.#step(end, isDone);
      if (isDone()) break;
      if (hasStepped) continue;
      if (this.#queue.actions.length > 0) throw endless(maxMs);
      if (isSettled) break;
      await this.#waitForReality(realTimeoutMs);
    }
    // A failure of the work says more than the expectations that it did not meet.
    const value = await result;
    this.#queue.compare();
    return value;
  }

  /** Executes the next action, if there is one until `end`, when everything before it has settled. */
  async #step(end: number, isDone: () => boolean = () => false): Promise<boolean> {
    await this.#settle();
    if (isDone()) return false;
    this.#queue.setUpHotObservables();
    const [next] = this.#queue.actions;
    if (next === undefined || next.delay > end) return false;
    this.#queue.execute();
    return true;
  }

  /** Lets the event loop turn until nothing has followed for some turns. */
  async #settle(): Promise<void> {
    for (let quiet = 0, seen = this.#events; quiet < QUIET_TURNS; quiet++) {
      await new Promise<void>((resolve) => void setImmediate(resolve));
      if (seen !== this.#events) [quiet, seen] = [0, this.#events];
    }
  }

  /** Nothing is scheduled: waits for an event outside of this clock, such as the end of a read. */
  async #waitForReality(limitMs: number): Promise<void> {
    const seen = this.#events;
    for (const startMs = performance.now(); seen === this.#events; ) {
      if (performance.now() - startMs > limitMs) {
        const message = `Nothing is scheduled on the clock at ${this.now} ms, and the work has not settled within ${limitMs} ms of real time.`;
        throw new WaitTimeoutError('ERR_MILLRACE_TIMEOUT', message, limitMs, []);
      }
      await new Promise<void>((resolve) => void setTimeout(resolve, 1));
    }
  }

  async #drive<R>(drive: () => Promise<R>): Promise<R> {
    this.#isDriven = true;
    try {
      return await drive();
    } finally {
      this.#isDriven = false;
      this.#askTurn();
    }
  }

  #noteEvent(): void {
    this.#events++;
    this.#askTurn();
  }

  /** What is due at the present time happens without `advance`, in a turn of the event loop. */
  #askTurn(): void {
    const [next] = this.#queue.actions;
    if (this.#isDriven || this.#isTurnAsked || next === undefined || next.delay > this.now) return;
    this.#isTurnAsked = true;
    setImmediate(() => {
      this.#isTurnAsked = false;
      const [due] = this.#queue.actions;
      if (this.#isDriven || due === undefined || due.delay > this.now) return;
      try {
        this.#queue.execute();
      } finally {
        this.#askTurn();
      }
    });
  }
}

function endless(maxMs: number): LimitError {
  const message = `Work is still scheduled after ${maxMs} ms (maxMs): unsubscribe from Observables that never complete, for example with an unsubscription marble.`;
  return new LimitError('ERR_MILLRACE_LIMIT', message, maxMs, () => Promise.resolve());
}

function checkDuration(argument: string, ms: number): void {
  if (typeof ms === 'number' && ms >= 0 && ms < Number.POSITIVE_INFINITY) return;
  throw badArgument(argument, ms, `${argument} (${show(ms)}) is not a number of milliseconds of at least 0.`, 0);
}

/**
 * Makes a clock of virtual time for a test. Use one for each test. Throws ArgumentError for a bad option.
 * @example
 * const clock = createTestClock();
 * const device = createTestDevice({ clock });
 * await clock.run(({ cold, expectObservable }) => {
 *   expectObservable(cold('a-b|').pipe(overlapMap(device, { overflow: 'fail' }, stage))).toBe('--a-(b|)');
 * });
 */
export function createTestClock(opts: TestClockOptions = {}): TestClock {
  const { assertEqual } = opts;
  if (assertEqual !== undefined && typeof assertEqual !== 'function')
    throw badArgument('assertEqual', assertEqual, `assertEqual (${show(assertEqual)}) is not a function.`);
  return new VirtualClock(assertEqual);
}

// RxJS's TestScheduler as a queue from which the clock takes one action at a time, and the helpers of its `run`.
import { deepStrictEqual } from 'node:assert';
import type { TestScheduler } from 'rxjs/testing';
import { StateError } from '../core/base/errors.js';
import { Scheduler } from './test-scheduler.js';

/** What `TestClock.run` gives to its work: the helpers of RxJS's `TestScheduler.run`, with the same marbles. One character is 1 ms. */
export interface Marbles {
  /** A cold Observable: its marbles begin when it is subscribed to. */
  readonly cold: TestScheduler['createColdObservable'];
  /** A hot Observable: its marbles begin with `run`, or at '^'. */
  readonly hot: TestScheduler['createHotObservable'];
  /** Milliseconds until the '|' of the marbles. */
  readonly time: TestScheduler['createTime'];
  /** Subscribes, and compares with `toBe` or `toEqual` when `run` ends. Throws StateError on a clock that has moved before. */
  readonly expectObservable: TestScheduler['expectObservable'];
  /** Expects subscriptions to a cold or hot Observable. Throws StateError on a clock that has moved before. */
  readonly expectSubscriptions: TestScheduler['expectSubscriptions'];
}

/** What TestScheduler keeps to itself. */
interface Hidden {
  /** `run` sets it: marbles may then have spaces and durations. */
  runMode: boolean;
  flushTests: { readonly actual: unknown; readonly expected?: unknown; readonly ready: boolean }[];
}

export class MarbleScheduler extends Scheduler {
  readonly #onSchedule: () => void;

  constructor(assertEqual: (actual: unknown, expected: unknown) => void = deepStrictEqual, onSchedule: () => void) {
    super(assertEqual as (actual: unknown, expected: unknown) => boolean);
    this.#onSchedule = onSchedule;
    this.#hidden.runMode = true;
  }

  get #hidden(): Hidden {
    return this as unknown as Hidden;
  }

  override schedule: TestScheduler['schedule'] = (work, delay, state) => {
    const subscription = Scheduler.prototype.schedule.call(this, work as never, delay, state);
    this.#onSchedule();
    return subscription;
  };

  marbles(): Marbles {
    const start = this.frame;
    const checkStart = (): void => {
      if (start === 0) return;
      throw new StateError('ERR_MILLRACE_STATE', `Marbles begin at 0 ms, and the clock is at ${start} ms: make a clock for each test.`);
    };
    return {
      cold: (...args) => this.createColdObservable(...args),
      hot: (...args) => this.createHotObservable(...args),
      time: (marbles) => this.createTime(marbles),
      expectObservable: (...args) => {
        checkStart();
        return this.expectObservable(...args);
      },
      expectSubscriptions: (logs) => {
        checkStart();
        return this.expectSubscriptions(logs);
      },
    };
  }

  get isExpecting(): boolean {
    return this.#hidden.flushTests.length > 0;
  }

  /** Starts the hot Observables that were made since the last call. */
  setUpHotObservables(): void {
    for (const hot of this.hotObservables.splice(0)) hot.setup();
  }

  /** Executes the first action. Throws what it throws. */
  execute(): void {
    const action = this.actions.shift();
    if (action === undefined) return;
    this.frame = action.delay;
    this.#onSchedule();
    const error: unknown = action.execute(action.state, action.delay);
    if (error !== undefined) throw error;
  }

  /** Compares every expectation; throws at the first that is not met. */
  compare(): void {
    for (const { ready, actual, expected } of this.#hidden.flushTests) if (ready) this.assertDeepEqual(actual, expected);
  }

  forgetExpectations(): void {
    this.#hidden.flushTests = [];
  }
}

// Emits the phases of a stream's operations, in order, to `activity$` of the stream and of its device. The end of a timed operation
// is emitted when the device has reported its time, and later phases after it. If the stream ends first, it is emitted without a time.
// Thread: owner.
import { type Hub, batchEmissions } from '../base/observable.js';
import type { Activity } from './operation.js';

interface Held {
  activity: Activity;
  isReady: boolean;
}

export class ActivityFeed {
  readonly #hubs: readonly Hub<Activity>[];
  readonly #onTold: () => void;
  #held: Held[] = [];

  /** `onTold` is called when `isEmpty` becomes true. */
  constructor(hubs: readonly Hub<Activity>[], onTold: () => void) {
    this.#hubs = hubs;
    this.#onTold = onTold;
  }

  get observed(): boolean {
    return this.#hubs.some((hub) => hub.observed);
  }

  /** Whether every phase was emitted. */
  get isEmpty(): boolean {
    return this.#held.length === 0;
  }

  /** Emits a phase. If `time` is given, waits for it first: the `deviceMs` of the operation. It never rejects. */
  next(activity: Activity, time?: Promise<number | undefined>): void {
    if (time === undefined && this.isEmpty) {
      this.#tell(activity);
      return;
    }
    const held = { activity, isReady: time === undefined };
    this.#held.push(held);
    void time?.then((deviceMs) => {
      if (deviceMs !== undefined) held.activity = { ...activity, deviceMs };
      held.isReady = true;
      const waiting = this.#held.findIndex(({ isReady }) => !isReady);
      this.#release(waiting < 0 ? this.#held.length : waiting);
    });
  }

  /** Emits the remaining phases, without the times that the device has not reported. */
  flush(): void {
    this.#release(this.#held.length);
  }

  /** Drops the remaining phases: there is no listener any more. */
  clear(): void {
    this.#held = [];
  }

  #release(count: number): void {
    if (count === 0) return;
    for (const { activity } of this.#held.splice(0, count)) this.#tell(activity);
    if (this.isEmpty) this.#onTold();
  }

  #tell(activity: Activity): void {
    batchEmissions(() => {
      for (const hub of this.#hubs) hub.next(activity);
    });
  }
}

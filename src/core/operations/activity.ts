// The phases of a stream's operations as `activity$` of the stream and of its device tell them, in order. The end of an operation
// that the device timed is told when the device has said how long it took, and those behind it after that; where the stream ends
// first, without.
// Thread: owner.
import { type Hub, together } from '../base/observable.js';
import type { Activity } from './operation.js';

interface Held {
  activity: Activity;
  isReady: boolean;
}

export class ActivityFeed {
  readonly #hubs: readonly Hub<Activity>[];
  readonly #onTold: () => void;
  #held: Held[] = [];

  /** `onTold`: called when `isEmpty` turns true. */
  constructor(hubs: readonly Hub<Activity>[], onTold: () => void) {
    this.#hubs = hubs;
    this.#onTold = onTold;
  }

  get observed(): boolean {
    return this.#hubs.some((hub) => hub.observed);
  }

  /** Is everything told? */
  get isEmpty(): boolean {
    return this.#held.length === 0;
  }

  /** `time`: the milliseconds that will be told with it; never rejects. */
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

  /** Tells what is left, without the times that the device has not said. */
  flush(): void {
    this.#release(this.#held.length);
  }

  /** Nobody listens any more. */
  clear(): void {
    this.#held = [];
  }

  #release(count: number): void {
    if (count === 0) return;
    for (const { activity } of this.#held.splice(0, count)) this.#tell(activity);
    if (this.isEmpty) this.#onTold();
  }

  #tell(activity: Activity): void {
    together(() => {
      for (const hub of this.#hubs) hub.next(activity);
    });
  }
}

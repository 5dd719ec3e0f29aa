// The phases of a stream's operations as `activity$` tells them, in order. The end of an operation that the device timed is
// told when the device has said how long it took, and those behind it after that; where the stream ends first, without.
// Thread: owner.
import { Hub } from '../base/observable.js';
import type { Activity } from './operation.js';

interface Held {
  activity: Activity;
  isReady: boolean;
}

export class ActivityFeed {
  readonly hub: Hub<Activity> = new Hub();
  #held: Held[] = [];

  get observed(): boolean {
    return this.hub.observed;
  }

  /** `time`: the milliseconds that will be told with it; never rejects. */
  next(activity: Activity, time?: Promise<number | undefined>): void {
    if (time === undefined && this.#held.length === 0) {
      this.hub.next(activity);
      return;
    }
    const held = { activity, isReady: time === undefined };
    this.#held.push(held);
    void time?.then((deviceMs) => {
      if (deviceMs !== undefined) held.activity = { ...activity, deviceMs };
      held.isReady = true;
      this.#tell(false);
    });
  }

  /** The stream ends. */
  end(error: Error | undefined): void {
    this.#tell(true);
    if (error === undefined) this.hub.complete();
    else this.hub.error(error);
  }

  #tell(isEnd: boolean): void {
    const waiting = isEnd ? -1 : this.#held.findIndex(({ isReady }) => !isReady);
    for (const { activity } of this.#held.splice(0, waiting < 0 ? this.#held.length : waiting)) this.hub.next(activity);
  }
}

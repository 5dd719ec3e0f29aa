// How late the event loop is while a program works.
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 1;

/** Collects the delays of the event loop during all works that it measures. */
export class LoopDelay {
  readonly #milliseconds: number[] = [];

  async during<T>(work: () => Promise<T>): Promise<T> {
    // A histogram that is enabled again takes the time between two works for a delay.
    const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    histogram.enable();
    const result = await work();
    histogram.disable();
    for (let at = 0; at < 100; at++) {
      // The histogram has the time between two ticks, of which the resolution is no delay.
      this.#milliseconds.push(Math.max(0, histogram.percentile(Math.max(at, 0.1)) / 1e6 - RESOLUTION_MS));
    }
    return result;
  }

  /** By which ticks came late: the percentiles 0 to 99 of each work, because a histogram keeps no single values. */
  get milliseconds(): readonly number[] {
    return this.#milliseconds;
  }
}

// How late the event loop is while a program works.
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 1;

/** Collects the delays of the event loop during all works that it measures. */
export class LoopDelay {
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#histogram.enable();
    try {
      return await work();
    } finally {
      this.#histogram.disable();
    }
  }

  /** Milliseconds by which ticks came late: the percentiles 0 to 99, because the histogram keeps no single values. */
  percentiles(): number[] {
    // The histogram has the time between two ticks, of which the resolution is no delay.
    return Array.from({ length: 100 }, (_, at) => Math.max(0, this.#histogram.percentile(Math.max(at, 0.1)) / 1e6 - RESOLUTION_MS));
  }
}

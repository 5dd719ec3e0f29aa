// Time as the library waits for it: the process's timers, or the virtual time of a test.
import { clearTimeout, Date, performance, setTimeout } from './timers.js';

export interface Clock {
  /** Milliseconds since some moment in the past. */
  readonly now: () => number;
  /** Milliseconds since 1970, for schedulers; in a test, the same as `now`. */
  readonly timeOfDay: () => number;
  /** Calls `call` once, `ms` milliseconds from now, in the asynchronous context of this call. Returns what cancels it. */
  after(ms: number, call: () => void): () => void;
}

/** Real time. A timer keeps the process alive. */
export const realClock: Clock = {
  now: () => performance.now(),
  timeOfDay: () => Date.now(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};

// Streams of a device that no program made, for work that may have to wait where a stream of the program must not: one that
// is idle, a new one while there are few, and then they are shared in turn.
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';

export class HiddenStreams<T> {
  readonly #most: number;
  readonly #isIdle: (stream: T) => boolean;
  readonly #make: (nth: number) => T;
  readonly #made: T[] = [];
  #turn = 0;

  /** At most `most`; `make` is told how many there will be. */
  constructor(most: number, isIdle: (stream: T) => boolean, make: (nth: number) => T) {
    this.#most = most;
    this.#isIdle = isIdle;
    this.#make = make;
  }

  /** Throws what `make` throws. */
  take(): T {
    const idle = this.#made.find(this.#isIdle);
    if (idle !== undefined) return idle;
    if (this.#made.length === this.#most) return this.#made[this.#turn++ % this.#most] as T;
    const made = this.#make(this.#made.length + 1);
    this.#made.push(made);
    return made;
  }
}

/** Those that nobody observes: 'frees-1' and so on; `open` makes a stream of the device. */
export function hiddenTimelines(open: (label: string) => Timeline, most: number, label: string): HiddenStreams<Timeline> {
  return new HiddenStreams(
    most,
    (timeline) => timeline.isComplete,
    (nth) => open(`${label}-${nth}`),
  );
}

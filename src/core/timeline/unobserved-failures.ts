// Failures on their way to whoever has not heard of them: each waits until everything that was submitted when it was noticed
// has finished, for until then somebody may wait for it.
// Thread: owner.
import type { Point, Timeline } from './timeline.js';

export interface UnobservedFailure {
  /** Whoever waits for it has heard. */
  readonly isHeard: boolean;
  /** Tells everybody else. */
  tell(): void;
}

interface Waiting {
  readonly ticket: number;
  readonly untold: UnobservedFailure;
}

export class UnobservedFailures {
  /** By stream, in the order of their tickets, from the first that has not passed on. */
  readonly #lines: Map<Timeline, Waiting[]> = new Map();
  /** Those that wait for several streams. */
  readonly #several: Map<UnobservedFailure, readonly Point[]> = new Map();

  get isEmpty(): boolean {
    return this.#lines.size === 0 && this.#several.size === 0;
  }

  /** It waits for what the stream has been given. */
  add(timeline: Timeline, untold: UnobservedFailure): void {
    const waiting = { ticket: timeline.last, untold };
    const line = this.#lines.get(timeline);
    if (line === undefined) this.#lines.set(timeline, [waiting]);
    else line.push(waiting);
  }

  /** It waits for all of these. */
  addFor(points: readonly Point[], untold: UnobservedFailure): void {
    this.#several.set(untold, points);
  }

  /** Takes out those whose time has come. `isFinal`: all of them. */
  take(isFinal: boolean): readonly UnobservedFailure[] {
    const due: UnobservedFailure[] = [];
    for (const [timeline, line] of this.#lines) {
      const { completed } = timeline;
      const kept = isFinal ? -1 : line.findIndex(({ ticket }) => ticket > completed);
      for (const { untold } of kept < 0 ? line : line.splice(0, kept)) due.push(untold);
      if (kept < 0) this.#lines.delete(timeline);
    }
    for (const [untold, points] of this.#several) {
      if (!isFinal && !points.every(({ timeline, ticket }) => timeline.hasReached(ticket))) continue;
      this.#several.delete(untold);
      due.push(untold);
    }
    return due;
  }
}

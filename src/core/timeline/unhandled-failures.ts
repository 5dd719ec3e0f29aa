// Failures that no promise has reported yet. Each waits here until everything of its stream has finished that was submitted when it was noticed: until
// then a promise may report it.
// Thread: owner.
import type { Point, Timeline } from './timeline.js';

export interface UnhandledFailure {
  /** It is handled: a promise has reported it. */
  readonly isHandled: boolean;
  /** Reports it to `device.errors$`, or as a warning. */
  report(): void;
  /** Called when a promise has reported it, or after `report`. */
  readonly end?: () => void;
}

interface Waiting {
  readonly ticket: number;
  readonly failure: UnhandledFailure;
}

export class UnhandledFailures {
  /** By stream, in the order of their tickets. */
  readonly #lines: Map<Timeline, Waiting[]> = new Map();
  /** The failures that wait for several streams. */
  readonly #several: Map<UnhandledFailure, readonly Point[]> = new Map();

  get isEmpty(): boolean {
    return this.#lines.size === 0 && this.#several.size === 0;
  }

  /** The failure waits until the stream has finished what it was given so far. */
  add(timeline: Timeline, failure: UnhandledFailure): void {
    const waiting = { ticket: timeline.last, failure };
    const line = this.#lines.get(timeline);
    if (line === undefined) this.#lines.set(timeline, [waiting]);
    else line.push(waiting);
  }

  /** The failure waits until all these points are reached. */
  addFor(points: readonly Point[], failure: UnhandledFailure): void {
    this.#several.set(failure, points);
  }

  /**
   * Removes the failures that need wait no longer, and returns those that no promise has reported, at most `count`. `hasSettled`: whether
   * the promises up to a point are settled.
   */
  take(count: number, hasSettled: (timeline: Timeline, ticket: number) => boolean): readonly UnhandledFailure[] {
    const due: UnhandledFailure[] = [];
    const leave = (failure: UnhandledFailure): void => {
      if (failure.isHandled) failure.end?.();
      else due.push(failure);
    };
    for (const [timeline, line] of this.#lines) {
      let taken = 0;
      for (let next = line[0]; next !== undefined && due.length < count && hasSettled(timeline, next.ticket); next = line[taken]) {
        leave(next.failure);
        taken++;
      }
      if (taken === line.length) this.#lines.delete(timeline);
      else line.splice(0, taken);
    }
    for (const [failure, points] of this.#several) {
      if (due.length === count) break;
      if (!points.every(({ timeline, ticket }) => hasSettled(timeline, ticket))) continue;
      this.#several.delete(failure);
      leave(failure);
    }
    return due;
  }
}

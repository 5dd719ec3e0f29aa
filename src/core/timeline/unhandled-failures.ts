// Failures that no promise has reported yet. Each waits here until everything has finished that its stream, and the streams that wait for it, had
// been given in the turn in which it was noticed: until then a promise may report it, or what derives from it.
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
  readonly failure: UnhandledFailure;
  /** The first ticket that failed. */
  readonly first: number;
  /** What it waits for; undefined until the first look, which is in a later turn. */
  points: readonly Point[] | undefined;
}

/** How far the streams of this thread are. */
export interface Look {
  /** Whether the promises up to a point are settled. */
  hasSettled(timeline: Timeline, ticket: number): boolean;
  /** Where the stream ends, and the streams that come after the ticket. */
  endsAfter(timeline: Timeline, ticket: number): readonly Point[];
}

export class UnhandledFailures {
  /** By stream, in the order of their tickets. */
  readonly #lines: Map<Timeline, Waiting[]> = new Map();
  /** The failures that wait for several streams. */
  readonly #several: Map<UnhandledFailure, readonly Point[]> = new Map();

  get isEmpty(): boolean {
    return this.#lines.size === 0 && this.#several.size === 0;
  }

  /** Tickets of the stream failed, from `first` on. */
  add(timeline: Timeline, first: number, failure: UnhandledFailure): void {
    const waiting = { failure, first, points: undefined };
    const line = this.#lines.get(timeline);
    if (line === undefined) this.#lines.set(timeline, [waiting]);
    else line.push(waiting);
  }

  /** The failure waits until all these points are reached. */
  addFor(points: readonly Point[], failure: UnhandledFailure): void {
    this.#several.set(failure, points);
  }

  /** Removes the failures that need wait no longer, and returns those that no promise has reported, at most `count`. */
  take(count: number, { hasSettled, endsAfter }: Look): readonly UnhandledFailure[] {
    const due: UnhandledFailure[] = [];
    const leave = (failure: UnhandledFailure): void => {
      if (failure.isHandled) failure.end?.();
      else due.push(failure);
    };
    const haveSettled = (points: readonly Point[]): boolean => points.every(({ timeline, ticket }) => hasSettled(timeline, ticket));
    for (const [timeline, line] of this.#lines) {
      const fresh = line.slice(line.findLastIndex(({ points }) => points !== undefined) + 1);
      const first = fresh.reduce((least, waiting) => Math.min(least, waiting.first), Infinity);
      const points = fresh.length === 0 ? [] : endsAfter(timeline, first);
      for (const waiting of fresh) waiting.points = points;
      let taken = 0;
      while (taken < line.length && due.length < count && haveSettled(line[taken]!.points!)) leave(line[taken++]!.failure);
      if (taken === line.length) this.#lines.delete(timeline);
      else line.splice(0, taken);
    }
    for (const [failure, points] of this.#several) {
      if (due.length === count) break;
      if (!haveSettled(points)) continue;
      this.#several.delete(failure);
      leave(failure);
    }
    return due;
  }
}

// The latest points of several streams, at most one of each, the one put last in front. One stream is the common case and
// needs no list.
// Thread: owner.
import type { Point, Timeline } from './timeline.js';

const NONE: readonly Point[] = [];

export class Latest {
  /** Put last; undefined: empty. */
  timeline: Timeline | undefined = undefined;
  ticket: number = 0;
  /** Those of other streams. Never changed in place, so that copies share it. */
  rest: readonly Point[] = NONE;

  /** Has no other stream than this? */
  isOnly(timeline: Timeline): boolean {
    return (this.timeline === timeline || this.timeline === undefined) && this.rest.length === 0;
  }

  put(timeline: Timeline, ticket: number): void {
    if (this.timeline !== timeline && this.timeline !== undefined) {
      const former: Point = { timeline: this.timeline, ticket: this.ticket };
      this.rest = [former, ...this.rest.filter((point) => point.timeline !== timeline)];
    }
    this.timeline = timeline;
    this.ticket = ticket;
  }

  clear(): void {
    this.timeline = undefined;
    this.rest = NONE;
  }

  /** Drops the points that are none of those. */
  keep(isNeeded: (point: Point) => boolean): void {
    const needed = [...this].filter(isNeeded);
    const first = needed[0];
    this.timeline = first?.timeline;
    this.ticket = first?.ticket ?? 0;
    this.rest = needed.length > 1 ? needed.slice(1) : NONE;
  }

  copy(): Latest {
    const copy = new Latest();
    copy.timeline = this.timeline;
    copy.ticket = this.ticket;
    copy.rest = this.rest;
    return copy;
  }

  /** The same points, in any order? */
  equals(other: Latest): boolean {
    if (this.rest.length !== other.rest.length) return false;
    if (this.rest.length === 0) return this.timeline === other.timeline && (this.timeline === undefined || this.ticket === other.ticket);
    return [...this].every((point) => other.#has(point));
  }

  *[Symbol.iterator](): Iterator<Point> {
    if (this.timeline !== undefined) yield { timeline: this.timeline, ticket: this.ticket };
    yield* this.rest;
  }

  #has({ timeline, ticket }: Point): boolean {
    if (this.timeline === timeline) return this.ticket === ticket;
    return this.rest.some((point) => point.timeline === timeline && point.ticket === ticket);
  }
}

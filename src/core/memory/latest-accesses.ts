// The latest uses by several streams, at most one of each, the one put last in front. One stream is the common case and
// needs no list.
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';
import type { Access } from './access-info.js';

/** A use of memory, by its point. */
export interface Use {
  readonly timeline: Timeline;
  readonly ticket: number;
  readonly access: Access;
}

const NONE: readonly Use[] = [];

export class Latest {
  /** Put last; undefined: empty. */
  timeline: Timeline | undefined = undefined;
  ticket: number = 0;
  access: Access | undefined = undefined;
  /** Those of other streams. Never changed in place, so that copies share it. */
  rest: readonly Use[] = NONE;

  /** Has no other stream than this? */
  isOnly(timeline: Timeline): boolean {
    return (this.timeline === timeline || this.timeline === undefined) && this.rest.length === 0;
  }

  put(timeline: Timeline, ticket: number, access: Access): void {
    if (this.timeline === timeline) {
      this.ticket = ticket;
      if (this.access !== access) this.access = access;
      return;
    }
    if (this.timeline !== undefined) {
      const former: Use = { timeline: this.timeline, ticket: this.ticket, access: this.access as Access };
      this.rest = [former, ...this.rest.filter((point) => point.timeline !== timeline)];
    }
    this.timeline = timeline;
    this.ticket = ticket;
    this.access = access;
  }

  clear(): void {
    if (this.timeline === undefined) return;
    this.timeline = undefined;
    this.access = undefined;
    this.rest = NONE;
  }

  /** Drops the points that are none of those. */
  keep(isNeeded: (use: Use) => boolean): void {
    const needed = [...this].filter(isNeeded);
    const first = needed[0];
    this.timeline = first?.timeline;
    this.ticket = first?.ticket ?? 0;
    this.access = first?.access;
    this.rest = needed.length > 1 ? needed.slice(1) : NONE;
  }

  copy(): Latest {
    const copy = new Latest();
    copy.timeline = this.timeline;
    copy.ticket = this.ticket;
    copy.access = this.access;
    copy.rest = this.rest;
    return copy;
  }

  /** The same points, in any order? */
  equals(other: Latest): boolean {
    if (this.rest.length !== other.rest.length) return false;
    if (this.rest.length === 0) return this.timeline === other.timeline && (this.timeline === undefined || this.ticket === other.ticket);
    return [...this].every((point) => other.#has(point));
  }

  *[Symbol.iterator](): Iterator<Use> {
    if (this.timeline !== undefined) yield { timeline: this.timeline, ticket: this.ticket, access: this.access as Access };
    yield* this.rest;
  }

  #has({ timeline, ticket }: Use): boolean {
    if (this.timeline === timeline) return this.ticket === ticket;
    return this.rest.some((point) => point.timeline === timeline && point.ticket === ticket);
  }
}

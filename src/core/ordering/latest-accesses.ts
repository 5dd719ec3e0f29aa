// The latest accesses by several streams, at most one of each stream, the newest first. With one stream, the usual case, there is no
// list.
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';
import type { AccessInfo } from './access-info.js';

/** An access to memory by one record, which the point names. */
export interface Access {
  readonly timeline: Timeline;
  readonly ticket: number;
  readonly info: AccessInfo;
}

const NONE: readonly Access[] = [];

export class LatestAccesses {
  /** The stream of the newest access; undefined: there is no access. */
  timeline: Timeline | undefined = undefined;
  ticket: number = 0;
  info: AccessInfo | undefined = undefined;
  /** The accesses by other streams. The list is replaced and never changed, so copies share it. */
  rest: readonly Access[] = NONE;

  /** Is there no access by another stream than this? */
  isOnly(timeline: Timeline): boolean {
    return (this.timeline === timeline || this.timeline === undefined) && this.rest.length === 0;
  }

  /** The ticket of the stream's access; 0 if there is none. */
  lastOf(timeline: Timeline): number {
    if (this.timeline === timeline) return this.ticket;
    return this.rest.find((access) => access.timeline === timeline)?.ticket ?? 0;
  }

  put(timeline: Timeline, ticket: number, info: AccessInfo): void {
    if (this.timeline === timeline) {
      this.ticket = ticket;
      if (this.info !== info) this.info = info;
      return;
    }
    if (this.timeline !== undefined) {
      const former: Access = { timeline: this.timeline, ticket: this.ticket, info: this.info as AccessInfo };
      this.rest = [former, ...this.rest.filter((access) => access.timeline !== timeline)];
    }
    this.timeline = timeline;
    this.ticket = ticket;
    this.info = info;
  }

  clear(): void {
    if (this.timeline === undefined) return;
    this.timeline = undefined;
    this.info = undefined;
    this.rest = NONE;
  }

  /** Drops the accesses for which `isNeeded` returns false. */
  keep(isNeeded: (access: Access) => boolean): void {
    const needed = [...this].filter(isNeeded);
    const first = needed[0];
    this.timeline = first?.timeline;
    this.ticket = first?.ticket ?? 0;
    this.info = first?.info;
    this.rest = needed.length > 1 ? needed.slice(1) : NONE;
  }

  copy(): LatestAccesses {
    const copy = new LatestAccesses();
    copy.timeline = this.timeline;
    copy.ticket = this.ticket;
    copy.info = this.info;
    copy.rest = this.rest;
    return copy;
  }

  /** Are these the same points, in any order? */
  equals(other: LatestAccesses): boolean {
    if (this.rest.length !== other.rest.length) return false;
    if (this.rest.length === 0) return this.timeline === other.timeline && (this.timeline === undefined || this.ticket === other.ticket);
    return [...this].every((access) => other.#has(access));
  }

  *[Symbol.iterator](): Iterator<Access> {
    if (this.timeline !== undefined) yield { timeline: this.timeline, ticket: this.ticket, info: this.info as AccessInfo };
    yield* this.rest;
  }

  #has({ timeline, ticket }: Access): boolean {
    if (this.timeline === timeline) return this.ticket === ticket;
    return this.rest.some((access) => access.timeline === timeline && access.ticket === ticket);
  }
}

// Handles of kernels that were given up. Records of any stream may still name them, so each is used again only after
// everything that was submitted by then has finished.
// Thread: owner.
import type { Point, Timeline } from '../timeline/timeline.js';
import type { HandleTable } from './handles.js';

export class SpentHandles {
  readonly #handles: HandleTable;
  readonly #timelines: Iterable<Timeline>;
  #spent: { readonly handle: number; readonly until: readonly Point[] }[] = [];

  /** `timelines`: the open streams of the device. */
  constructor(handles: HandleTable, timelines: Iterable<Timeline>) {
    this.#handles = handles;
    this.#timelines = timelines;
  }

  take(): number {
    this.#spent = this.#spent.filter(({ handle, until }) => {
      const isNamed = until.some(({ timeline, ticket }) => !timeline.hasReached(ticket));
      if (!isNamed) this.#handles.giveBackNow(handle);
      return isNamed;
    });
    return this.#handles.take();
  }

  /** No record names it from now on. */
  giveUp(handle: number): void {
    const until = Array.from(this.#timelines, (timeline) => ({ timeline, ticket: timeline.last }));
    this.#spent.push({ handle, until: until.filter(({ timeline, ticket }) => !timeline.hasReached(ticket)) });
  }
}

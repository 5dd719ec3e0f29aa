// Handles of kernels whose build failed and was given up. Submitted records may still name such a handle, so its index is used
// again only after every record submitted before has finished.
// Thread: owner.
import type { Point, Timeline } from '../timeline/timeline.js';
import type { HandleTable } from './handles.js';

export class RetiredHandles {
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

  /** Call it when no later record will name the handle. */
  giveUp(handle: number): void {
    const until = Array.from(this.#timelines, (timeline) => ({ timeline, ticket: timeline.last }));
    this.#spent.push({ handle, until: until.filter(({ timeline, ticket }) => !timeline.hasReached(ticket)) });
  }
}

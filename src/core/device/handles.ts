// The handles by which records name objects of a device: an index and a generation. The owner chooses them, so creating an object needs no
// answer.
//
// An index is used again, with the next generation, only after the record that frees it has completed. Streams run independently, so
// the record that makes the new object could otherwise run before the one that frees the old object.
// Thread: owner.
import { HANDLE_INDEX_BITS } from '../../protocol/protocol.gen.js';
import { Notifier } from '../base/notifier.js';
import { LimitError } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';

const CHUNK = 1024;
const MAX_INDEX = 2 ** HANDLE_INDEX_BITS;
const MAX_GENERATION = 2 ** (32 - HANDLE_INDEX_BITS) - 1;

interface Freed {
  readonly handle: number;
  readonly timeline: Timeline;
  readonly ticket: number;
}

/** Resolves when the stream has reached the ticket. Adds a function to `withdrawals` that ends the wait. */
export type Reach = (timeline: Timeline, ticket: number, withdrawals: (() => void)[]) => Promise<void>;

export class HandleTable {
  readonly #reserve: (count: number) => number;
  readonly #reach: Reach;
  #next = 0;
  #end = 0;
  readonly #reusable: number[] = [];
  /** In the order of their frees; reused from the front. */
  #freed: Freed[] = [];
  #freedHead = 0;
  readonly #given: Notifier = new Notifier();
  #isOver = false;

  /** `reserve` gives the first of a run of unused indices. */
  constructor(reserve: (count: number) => number, reach: Reach) {
    this.#reserve = reserve;
    this.#reach = reach;
  }

  take(): number {
    this.#reclaim();
    const again = this.#reusable.pop();
    if (again !== undefined) return again;
    if (this.#next === this.#end) {
      this.#next = this.#reserve(CHUNK);
      this.#end = this.#next + CHUNK;
    }
    if (this.#next >= MAX_INDEX) {
      const message = `The device has as many objects as its limit (${MAX_INDEX}). Dispose arrays or events first.`;
      throw new LimitError('ERR_MILLRACE_LIMIT', message, MAX_INDEX, () => this.#room());
    }
    return (this.#next++ | (1 << HANDLE_INDEX_BITS)) >>> 0;
  }

  /** The record that frees the handle is `ticket`. */
  giveBack(handle: number, timeline: Timeline, ticket: number): void {
    this.#freed.push({ handle, timeline, ticket });
    this.#given.notify();
  }

  /** The handle names nothing any more, and no submitted record names it. */
  giveBackNow(handle: number): void {
    const index = handle & (MAX_INDEX - 1);
    const generation = (handle >>> HANDLE_INDEX_BITS) % MAX_GENERATION;
    this.#reusable.push((index | ((generation + 1) << HANDLE_INDEX_BITS)) >>> 0);
    this.#given.notify();
  }

  /** The device is gone: code that waits for a handle tries again, and gets the error of the device. */
  end(): void {
    this.#isOver = true;
    this.#given.notify();
  }

  /** Resolves when there is a handle to take. */
  async #room(): Promise<void> {
    for (this.#reclaim(); this.#reusable.length === 0 && !this.#isOver; this.#reclaim()) {
      const oldest = this.#freed[this.#freedHead];
      const given = this.#given.notified();
      const withdrawals: (() => void)[] = [];
      try {
        await (oldest === undefined ? given : Promise.race([given, this.#reach(oldest.timeline, oldest.ticket, withdrawals)]));
      } finally {
        for (const withdraw of withdrawals) withdraw();
      }
    }
  }

  #reclaim(): void {
    let head = this.#freed[this.#freedHead];
    while (head !== undefined && head.timeline.hasReached(head.ticket)) {
      this.giveBackNow(head.handle);
      head = this.#freed[++this.#freedHead];
    }
    if (this.#freedHead > CHUNK || (head === undefined && this.#freedHead > 0)) {
      this.#freed = this.#freed.slice(this.#freedHead);
      this.#freedHead = 0;
    }
  }
}

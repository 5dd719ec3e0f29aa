// The timeline slots of a device, one for each stream. The slot of a stream whose creation was refused serves the next stream. A caller
// that found no slot can wait until one may be free. Graphs with grid barriers take slots, too.
// Thread: owner.
import { Notifier } from '../base/notifier.js';
import type { Timeline } from '../timeline/timeline.js';

interface UsedSlot {
  readonly slot: number;
  readonly timeline: Timeline;
  readonly ticket: number;
}

export class StreamSlots {
  readonly #reserve: () => number;
  readonly #error: (freed: () => Promise<void>) => Error;
  /** The slots of streams whose creation was refused. */
  readonly #spare: number[] = [];
  /** The slots of graphs that were closed while launches may have been queued. */
  #used: UsedSlot[] = [];
  readonly #freed: Notifier = new Notifier();

  /** `reserve` gives an unused slot, or -1. `error`: what a call throws if there is none; `freed` resolves when a stream was closed. */
  constructor(reserve: () => number, error: (freed: () => Promise<void>) => Error) {
    this.#reserve = reserve;
    this.#error = error;
  }

  /** Throws if there is no slot. */
  take(): number {
    if (this.#used.length > 0) this.#reclaim();
    const slot = this.#spare.pop() ?? this.#reserve();
    if (slot < 0) throw this.#error(() => this.#freed.notified());
    return slot;
  }

  /** Returns a slot that no record was submitted to. */
  giveBack(slot: number): void {
    this.#spare.push(slot);
  }

  /** Returns a slot whose last use ends when the stream reaches the ticket. */
  giveBackAfter(slot: number, timeline: Timeline, ticket: number): void {
    this.#used.push({ slot, timeline, ticket });
  }

  /** A stream was closed, or the device is gone. */
  tell(): void {
    this.#freed.notify();
  }

  #reclaim(): void {
    const isFree = ({ timeline, ticket }: UsedSlot): boolean => timeline.hasReached(ticket);
    this.#spare.push(...this.#used.filter(isFree).map(({ slot }) => slot));
    this.#used = this.#used.filter((used) => !isFree(used));
  }
}

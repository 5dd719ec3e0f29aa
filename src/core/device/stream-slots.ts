// The places of a device for streams: a creation that was refused keeps its place for the next one, and whoever found
// none hears when one may be free.
// Thread: owner.
import { Bell } from '../base/notifier.js';

export class StreamSlots {
  readonly #reserve: () => number;
  /** Reserved for streams whose creation was refused. */
  readonly #spare: number[] = [];
  readonly #freed: Bell = new Bell();

  /** `reserve` gives an unused slot, or -1. */
  constructor(reserve: () => number) {
    this.#reserve = reserve;
  }

  /** A slot, or -1. */
  take(): number {
    return this.#spare.pop() ?? this.#reserve();
  }

  /** No record was submitted to it. */
  giveBack(slot: number): void {
    this.#spare.push(slot);
  }

  /** Resolves when a stream was closed. */
  freed(): Promise<void> {
    return this.#freed.heard();
  }

  /** A stream was closed, or all of them are gone. */
  tell(): void {
    this.#freed.ring();
  }
}

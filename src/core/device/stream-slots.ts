// The timeline slots of a device, one for each stream. The slot of a stream whose creation was refused serves the next stream. A caller
// that found no slot can wait until one may be free.
// Thread: owner.
import { Notifier } from '../base/notifier.js';

export class StreamSlots {
  readonly #reserve: () => number;
  /** The slots of streams whose creation was refused. */
  readonly #spare: number[] = [];
  readonly #freed: Notifier = new Notifier();

  /** `reserve` gives an unused slot, or -1. */
  constructor(reserve: () => number) {
    this.#reserve = reserve;
  }

  /** A slot, or -1. */
  take(): number {
    return this.#spare.pop() ?? this.#reserve();
  }

  /** Returns a slot that no record was submitted to. */
  giveBack(slot: number): void {
    this.#spare.push(slot);
  }

  /** Resolves when a stream was closed. */
  freed(): Promise<void> {
    return this.#freed.notified();
  }

  /** A stream was closed, or the device is gone. */
  tell(): void {
    this.#freed.notify();
  }
}

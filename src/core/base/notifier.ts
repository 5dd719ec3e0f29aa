// Wakes all callers that wait for a resource when one of it may be free; each then tries again.
// Thread: owner.

export class Bell {
  #waiting: (() => void)[] = [];

  /** Resolves at the next `ring`. */
  heard(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  ring(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

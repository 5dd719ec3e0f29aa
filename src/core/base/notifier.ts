// For those who found none left: all of them hear at once when one may be free, and look again.
// Thread: owner.

export class Bell {
  #waiting: (() => void)[] = [];

  /** Resolves when it rings next. */
  heard(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  ring(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

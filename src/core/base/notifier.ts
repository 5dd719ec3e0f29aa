// Wakes all callers that wait for a resource when one of it may be free; each then tries again.
// Thread: owner.

export class Notifier {
  #waiting: (() => void)[] = [];

  /** Resolves at the next `notify`. */
  notified(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  notify(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

// Aborts an attempt of an item. Most stages never ask for the AbortSignal, which costs more than the rest of a turn, so it is made when one does.
// Thread: owner.

export class LaneAbort {
  #controller: AbortController | undefined = undefined;
  #reason: unknown = undefined;
  readonly #calls: Set<{ readonly call: () => void }> = new Set();
  isAborted: boolean = false;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.isAborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason?: unknown): void {
    if (this.isAborted) return;
    this.isAborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    for (const entry of this.#calls) {
      this.#calls.delete(entry);
      entry.call();
    }
  }

  /** Calls `call` once when the attempt is aborted, unless it was before. `call` must not throw. Returns a function that removes it. */
  onAbort(call: () => void): () => void {
    const entry = { call };
    this.#calls.add(entry);
    return () => void this.#calls.delete(entry);
  }
}

// Operations of a stream that have more to tell than the log holds: copies, host functions, operations with timestamps, and waits that
// needed no record. They are kept until they are over, so that a new observer of the stream finds them. A launch is not among them and
// costs nothing here.
// Thread: owner.
import type { OperationInfo } from '../base/snapshots.js';

/** An Operation, as far as this layer knows it. */
export interface KeptOperation extends OperationInfo {
  /** Has it finished, its host function or the copy of its bytes to the host included? */
  readonly isOver: boolean;
}

export interface Kept {
  readonly ticket: number;
  readonly operation: KeptOperation;
}

/** The list is copied to drop its front when at least this many entries there are over. */
const SPENT = 1024;

export class KeptOperations {
  /** In the order of submission, by which the tickets never fall; from `head` on. */
  #all: Kept[] = [];
  #head = 0;

  /** Adds an operation of the newest ticket, unless it is kept already. */
  add(ticket: number, operation: KeptOperation): void {
    if (this.#all.at(-1)?.operation === operation) return;
    this.dropOver();
    this.#all.push({ ticket, operation });
  }

  /** The first operation that is not over. */
  get first(): Kept | undefined {
    this.dropOver();
    return this.#all[this.#head];
  }

  /** The operations from the first that is not over on. */
  list(): readonly Kept[] {
    this.dropOver();
    return this.#all.slice(this.#head);
  }

  /** Drops operations that are over, from the front on. */
  dropOver(): void {
    while (this.#all[this.#head]?.operation.isOver === true) this.#head++;
    if (this.#head === this.#all.length) this.clear();
    else if (this.#head > SPENT && this.#head * 2 > this.#all.length) {
      this.#all = this.#all.slice(this.#head);
      this.#head = 0;
    }
  }

  clear(): void {
    if (this.#all.length > 0) this.#all = [];
    this.#head = 0;
  }
}

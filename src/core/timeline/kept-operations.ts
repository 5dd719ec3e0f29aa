// Operations of a stream that are more than the log knows of them: copies, host functions, operations with timestamps, and
// waits that needed no record. They are kept until they are over, so that those who begin to watch the stream find them.
// Launches are not among them, so a launch costs nothing here.
// Thread: owner.
import type { OperationInfo } from '../base/snapshots.js';

/** What is kept: an Operation, whose class the timeline does not know. */
export interface KeptOperation extends OperationInfo {
  /** Has it finished, its host function or the copy of its bytes to the host included? */
  readonly isOver: boolean;
}

export interface Kept {
  readonly ticket: number;
  readonly operation: KeptOperation;
}

/** Places at the front of the list that are given back at once. */
const SPENT = 1024;

export class KeptOperations {
  /** In the order of submission, by which the tickets never fall; from `head` on. */
  #all: Kept[] = [];
  #head = 0;

  /** An operation of the newest ticket, perhaps one that is kept already. */
  add(ticket: number, operation: KeptOperation): void {
    if (this.#all.at(-1)?.operation === operation) return;
    this.dropOver();
    this.#all.push({ ticket, operation });
  }

  /** The first that is not over. */
  get first(): Kept | undefined {
    this.dropOver();
    return this.#all[this.#head];
  }

  /** From the first that is not over on. */
  list(): readonly Kept[] {
    this.dropOver();
    return this.#all.slice(this.#head);
  }

  /** Lets go of what is over, from the front on. */
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

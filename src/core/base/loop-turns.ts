// How much the library does in one turn of the event loop, so that timers and sockets wait for at most a few milliseconds.
// Thread: each owner has its own count.
import { setImmediate } from './timers.js';

/** Waits that are over when they are asked for, and resolve in one turn: each costs 2 to 4 us with its promises. */
export const WAITS_PER_TURN = 32;
/** Promises settled in one turn: each costs 1 to 3 us with the reactions in the library. */
export const SETTLED_PER_TURN = 256;
/** Operations reported in one turn: each costs 2 to 10 us. */
export const TOLD_PER_TURN = 64;
/** Promises rejected with failures in one turn: each costs 20 us with its error. */
export const REJECTED_PER_TURN = 32;
/** Failures read from devices in one turn: each costs 5 us. */
export const READ_PER_TURN = 64;
/** Failures that no promise has reported, reported in one turn: each costs 15 us with its error. */
export const REPORTED_PER_TURN = 32;

/** What is left of a number of things that one turn may do. */
export class Allowance {
  readonly #limit: number;
  #left: number;

  constructor(limit: number) {
    this.#limit = limit;
    this.#left = limit;
  }

  get left(): number {
    return this.#left;
  }

  spend(count: number): void {
    if (this.#left === this.#limit) setImmediate(() => void (this.#left = this.#limit));
    this.#left -= count;
  }
}

/** Failures that the present turn may still read. */
export const reads: Allowance = new Allowance(READ_PER_TURN);
/** Promises that the present turn may still reject with failures. */
export const rejections: Allowance = new Allowance(REJECTED_PER_TURN);
/** Failures that the present turn may still report. */
export const reports: Allowance = new Allowance(REPORTED_PER_TURN);

let left = WAITS_PER_TURN;
let turn: Promise<void> | undefined;

/**
 * A later turn of the event loop for a wait that is over when it is asked for; undefined if it may resolve in this turn. A loop of such
 * awaits would otherwise run in microtasks alone, and no timer would fire. Waits resolve in the order of the calls.
 */
export function turnOfWait(): Promise<void> | undefined {
  if (left === 0) {
    left = WAITS_PER_TURN;
    const own = (turn ?? Promise.resolve()).then(() => new Promise<void>((resolve) => setImmediate(resolve)));
    turn = own;
    void own.then(() => {
      if (turn === own) turn = undefined;
    });
  }
  left--;
  return turn;
}

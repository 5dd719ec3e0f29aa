// How much the library does in one turn of the event loop, so that timers and sockets wait for at most a few milliseconds.
// Thread: each owner has its own count.
import { setImmediate } from './timers.js';

/** Waits that are over when they are asked for, and resolve in one turn: each costs 2 to 4 us with its promises. */
export const WAITS_PER_TURN = 64;
/** Promises settled in one turn: each costs 1 to 3 us with the reactions in the library. */
export const SETTLED_PER_TURN = 256;
/** Operations reported, and errors made, in one turn: each costs 2 to 10 us. */
export const TOLD_PER_TURN = 64;
/** Failures read from devices in one turn: each costs 5 us. */
export const READ_PER_TURN = 128;

let reads = READ_PER_TURN;

/** How many failures the present turn may still read. */
export function readsLeft(): number {
  return reads;
}

export function spendReads(count: number): void {
  if (reads === READ_PER_TURN) setImmediate(() => void (reads = READ_PER_TURN));
  reads -= count;
}

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

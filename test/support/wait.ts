// Small helpers for asynchronous tests. Time is an upper bound only: nothing here sleeps to let work finish.
import { setTimeout as delay } from 'node:timers/promises';
import { collectGarbage } from '../../src/workers/collect-garbage.js';

export { collectGarbage };

/** Turns the event loop once. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Resolves as soon as `check` is true; fails after `withinMs`. */
export async function eventually(what: string, check: () => boolean, withinMs = 10_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!check()) {
    if (performance.now() > end) throw new Error(`Not within ${withinMs} ms: ${what}.`);
    await turn();
  }
}

/** Keeps this thread busy, without a turn of its loop, until `check` is true or the time is over. */
export function busyUntil(check: () => boolean, atMostMs: number): boolean {
  const end = performance.now() + atMostMs;
  while (performance.now() < end) if (check()) return true;
  return check();
}

/** Has the promise settled by now, without waiting for it? */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  const first = await Promise.race([promise.then(String, String), turn().then(() => pending)]);
  return first !== pending;
}

/** The error that a call throws; fails when it returns. */
export function thrownBy(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    if (error instanceof Error) return error;
    throw new Error('Something else than an Error.', { cause: error });
  }
  throw new Error('The call returned.');
}

/** The error that a promise rejects with; fails when it resolves. */
export async function rejectionOf(promise: PromiseLike<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new Error('Something else than an Error.', { cause: error });
  }
  throw new Error('The promise resolved.');
}

/** Collects garbage until it shows what is looked for, or the rounds are over: the caller looks once more. */
export async function collectUntil(isOver: () => boolean, rounds = 200): Promise<void> {
  for (let n = 0; n < rounds && !isOver(); n++) {
    // What was looked at is kept until the turn ends, and finalizers have turns of their own.
    await delay(2);
    collectGarbage();
  }
}

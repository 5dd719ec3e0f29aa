// Promises of anybody's: what has a `then`, as `await` goes by.

/** Throws what reading `then` throws. */
export function isPromiseLike<T>(value: unknown): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === 'function';
}

/** A promise of the value, or of what it is a promise of. Never throws: Promise.resolve does for promises with a getter that throws. */
export function promiseOf(value: unknown): Promise<unknown> {
  return new Promise((resolve) => resolve(value));
}

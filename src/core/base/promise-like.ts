// Promises of any implementation: objects with a `then`, as `await` accepts them.

/** Throws what reading `then` throws. */
export function isPromiseLike<T>(value: unknown): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === 'function';
}

/** A promise that follows the value. Never throws, unlike Promise.resolve, which throws for a promise whose getter throws. */
export function promiseOf(value: unknown): Promise<unknown> {
  return new Promise((resolve) => resolve(value));
}

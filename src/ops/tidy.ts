// tidy(): the arrays between the steps of a calculation are disposed with it.
import { types } from 'node:util';
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { DeviceArray } from '../core/api/array.js';

/** What the innermost call of `tidy` has made. Functions of a tidy are synchronous, so one variable of the thread is enough. */
let made: DeviceArray[] | undefined;

/** Every array that an operation makes for its caller passes here. */
export function noted(array: DeviceArray): DeviceArray {
  made?.push(array);
  return array;
}

/**
 * Calls `fn` and disposes the arrays that operations made in it, except those that `fn` returns: an array, or a list or an object with
 * arrays. `tf.tidy`; in NumPy and CuPy reference counts do this. `fn` must make its calls before it returns. It may return the promise of
 * a `read` or an `item`, but not be async. If it throws, all are disposed. Throws ArgumentError unless `fn` is a function, and for one that is async.
 * @example const y = tidy(() => add(multiply(x, x), 8)); // the product is disposed
 * @example const middle = await tidy(() => mean(multiply(x, x)).item());
 */
export function tidy<T>(fn: () => T): T {
  if (arguments.length > 1) refuseSurplus('tidy', arguments, 1);
  if (typeof fn !== 'function') throw badArgument('fn', fn, `The function given to tidy (${show(fn)}) is not a function.`);
  if (types.isAsyncFunction(fn))
    throw badArgument(
      'fn',
      fn,
      'The function given to tidy is async: what it makes behind an `await` would not be disposed, and what it returns would.',
    );
  const outer = made;
  const own: DeviceArray[] = (made = []);
  let kept: Set<unknown> = new Set();
  try {
    const result = fn();
    // A view keeps what it is a view of.
    kept = new Set(arraysIn(result).map(({ storage }) => storage));
    return result;
  } finally {
    made = outer;
    for (const array of own) {
      if (kept.has(array.storage)) outer?.push(array);
      else array[Symbol.dispose]();
    }
  }
}

function arraysIn(result: unknown): DeviceArray[] {
  if (result instanceof DeviceArray) return [result];
  if (Array.isArray(result)) return result.flatMap(arraysIn);
  if (typeof result !== 'object' || result === null || Object.getPrototypeOf(result) !== Object.prototype) return [];
  return Object.values(result).flatMap(arraysIn);
}

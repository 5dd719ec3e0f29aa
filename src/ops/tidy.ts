// tidy(): the arrays between the steps of a calculation are disposed with it.
import { types } from 'node:util';
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { making, MadeArrays } from '../core/api/made-arrays.js';
import { arraysIn } from '../core/api/scope.js';

/**
 * Calls `fn` and disposes the arrays that were made in it, except those that `fn` returns: an array, or a list or an object with
 * arrays. `tf.tidy`; in NumPy and CuPy reference counts do this. `fn` must make its calls before it returns. It may return the promise of
 * a `read` or an `item`, but not be async: `device.scope(fn)` takes an async function. If it throws, all are disposed. Throws ArgumentError unless
 * `fn` is a function, and for one that is async.
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
      'The function given to tidy is async: what it makes behind an `await` would not be disposed, and what it returns would. device.scope(fn) takes an async function.',
    );
  const made = new MadeArrays('a call of tidy', 'what its function returns is kept');
  try {
    const result = making(made, fn);
    made.keep(arraysIn(result));
    return result;
  } finally {
    made.end();
  }
}

// The names of options. An unknown option throws: without this, `timeout` instead of `timeoutMs` would silently do nothing.
import { badArgument, show } from './arguments.js';
import { didYouMean } from './nearest-name.js';

/** A longer name is no misspelt option. */
const MOST_CHARS = 40;

/** Throws ArgumentError for options that are no object, for an AbortSignal in their place, and for an unknown option. */
export function checkOptionNames(opts: unknown, known: readonly string[], argument: string = 'opts'): void {
  if (typeof opts !== 'object' || opts === null || Array.isArray(opts)) {
    // NumPy's and PyTorch's second argument.
    const meant = typeof opts === 'string' ? 'dtype' : 'shape';
    const cure = opts !== null && opts !== undefined && known.includes(meant) ? `: pass { ${meant}: ${show(opts)} }` : '';
    throw badArgument(argument, opts, `The options (${show(opts)}) are not an object${cure}.`);
  }
  const unknown = Object.keys(opts).find((name) => !known.includes(name));
  const isSignal = typeof (opts as { readonly aborted?: unknown }).aborted === 'boolean';
  if (unknown === undefined && !isSignal) return;
  const options = known.length === 1 ? `the only option is ${known[0]}` : `the options are ${known.join(', ')}`;
  // A stream or an array in place of the options: their own properties would be named as options.
  const isOther = unknown !== undefined && ('uncloneable' in opts || ![Object.prototype, null].includes(Object.getPrototypeOf(opts)));
  if (isOther) throw badArgument(argument, opts, `The options (${show(opts)}) are not an object with options; ${options}.`);
  if (unknown !== undefined)
    throw badArgument(
      argument,
      opts,
      `There is no option ${show(unknown)}${unknown.length > MOST_CHARS ? '' : didYouMean(unknown, known)}; ${options}.`,
    );
  const cure = known.includes('signal') ? 'pass { signal }' : options;
  throw badArgument(argument, opts, `The options are an AbortSignal: ${cure}.`);
}

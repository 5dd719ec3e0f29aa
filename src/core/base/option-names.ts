// The names of options. An unknown option throws: without this, `timeout` instead of `timeoutMs` would silently do nothing.
import { badArgument, show } from './arguments.js';

/** Throws ArgumentError for options that are no object, for an AbortSignal in their place, and for an unknown option. */
export function checkOptionNames(opts: unknown, known: readonly string[], argument: string = 'opts'): void {
  if (typeof opts !== 'object' || opts === null) {
    throw badArgument(argument, opts, `The options (${show(opts)}) are not an object.`);
  }
  const unknown = Object.keys(opts).find((name) => !known.includes(name));
  const options = known.length === 1 ? `the only option is ${known[0]}` : `the options are ${known.join(', ')}`;
  if (unknown !== undefined) throw badArgument(argument, opts, `There is no option ${show(unknown)}; ${options}.`);
  if (typeof (opts as { readonly aborted?: unknown }).aborted !== 'boolean') return;
  const cure = known.includes('signal') ? 'pass { signal }' : options;
  throw badArgument(argument, opts, `The options are an AbortSignal: ${cure}.`);
}

// Errors for required options that a call lacks.
import { badArgument, show } from '../core/base/arguments.js';
import type { ArgumentError } from '../core/base/errors.js';

/** The error for an option that is missing. `what`: its meaning and the values that it takes. `example`: code with it. */
export function missing(option: string, what: string, example: string): ArgumentError {
  return badArgument(option, undefined, `The option ${option} is missing: ${what}. Example: ${example}.`);
}

/** Throws ArgumentError if the option is missing. */
export function checkGiven(option: string, value: unknown, what: string, example: string): void {
  if (value === undefined) throw missing(option, what, example);
}

/** Throws ArgumentError for a call whose options are missing, and for one with its stage in their place. */
export function checkOptionsGiven(opts: unknown, call: string, example: string): void {
  if (opts !== undefined && typeof opts !== 'function') return;
  const what = opts === undefined ? 'are missing' : 'are a function: the options come before the stage';
  throw badArgument('opts', opts, `The options of ${call} (${show(opts)}) ${what}. Example: ${example}.`);
}

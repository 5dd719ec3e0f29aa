// The names of options. An unknown option throws.
import { badArgument, show } from '../core/base/arguments.js';

/** The options of services: a request has an answer or an error and is never skipped, so there is no `onSkip`. */
export const SERVICE_OPTIONS: readonly string[] = ['depth', 'streams', 'onError', 'stageTimeoutMs', 'maxQueue'];
export const OVERLAP_OPTIONS: readonly string[] = [...SERVICE_OPTIONS, 'onSkip', 'ordered', 'signal', 'overflow'];

/** Throws ArgumentError for an unknown option: without this, `concurrency` instead of `depth` would silently do nothing. */
export function checkOptionNames(opts: unknown, known: readonly string[]): void {
  if (typeof opts !== 'object' || opts === null) throw badArgument('opts', opts, `The options (${show(opts)}) are not an object.`);
  const unknown = Object.keys(opts).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw badArgument('opts', opts, `There is no option ${show(unknown)}; the options are ${known.join(', ')}.`);
}

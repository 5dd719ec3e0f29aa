// Checks of arguments. Each error is a whole sentence with the value, then the limit.
import { ArgumentError } from './errors.js';
import { show } from './show.js';

export { show } from './show.js';

export function badArgument(argument: string, value: unknown, message: string, limit?: unknown): ArgumentError {
  return new ArgumentError('ERR_MILLRACE_ARGUMENT', message, limit === undefined ? { argument, value } : { argument, value, limit });
}

/** The error for an argument behind the last one that a call takes. */
export function surplusArgument(call: string, surplus: unknown, remedy: string): ArgumentError {
  return badArgument('surplus', surplus, `${call} has an argument more than it takes (${show(surplus)}): ${remedy}`);
}

/** Throws ArgumentError for an argument behind the last one that a call takes. It would be dropped, and with it what the caller wants. */
export function refuseSurplus(
  call: string,
  given: ArrayLike<unknown>,
  most: number,
  remedy: string = `it takes ${most === 0 ? 'none' : `${most} at most`}.`,
): void {
  const surplus = Array.from(given).find((argument, at) => at >= most && argument !== undefined);
  if (surplus !== undefined) throw surplusArgument(call, surplus, remedy);
}

/** The error for an object of one device that was passed to another device. */
export function wrongDevice(argument: string, value: unknown, message: string): ArgumentError {
  return new ArgumentError('ERR_MILLRACE_DEVICE_MISMATCH', message, { argument, value });
}

/** "belongs to device ...", for an object of device `name` that was passed to a stream of device `own`. */
export function belongsTo(name: string, own: string): string {
  if (name !== own) return `belongs to device ${name}, the stream to ${own}`;
  return `belongs to an earlier opening of device ${name}, which has ended: create it again on the open device`;
}

/** The entries of a list, each read once; a hole of a sparse array is undefined. `most`: read no more than this. */
export function entriesOf(list: readonly unknown[], most: number = list.length): unknown[] {
  return Array.from({ length: Math.min(list.length, most) }, (_, at) => list[at]);
}

/** A whole number from `low` to `high`. */
export function checkInteger(argument: string, value: unknown, low: number, high: number = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== 'number' || !Number.isInteger(value))
    throw badArgument(argument, value, `The ${argument} (${show(value)}) is not a whole number.`);
  if (value < low) throw badArgument(argument, value, `The ${argument} (${value}) is below the minimum (${low}).`, low);
  if (value > high) throw badArgument(argument, value, `The ${argument} (${value}) exceeds the limit (${high}).`, high);
  return value;
}

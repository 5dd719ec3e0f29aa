// The limit of one typed array, which bounds the host side of a copy, of a read and of a pinned array.
import { constants } from 'node:buffer';
import { badArgument } from './arguments.js';

/** Bytes of the longest Uint8Array: 4 GiB in Node 20, more than any machine's memory in later versions. */
export const MAX_HOST_BYTES: number = constants.MAX_LENGTH;

/** Throws ArgumentError if one typed array cannot hold the bytes. `what` names them in the message, as in 'bytes to read'. */
export function checkHostBytes(argument: string, what: string, byteLength: number): void {
  if (byteLength > MAX_HOST_BYTES) throw badArgument(argument, byteLength, tooManyBytes(what, byteLength), MAX_HOST_BYTES);
}

export function tooManyBytes(what: string, byteLength: number): string {
  return `The ${what} (${byteLength}) exceed the longest typed array of this version of Node.js (${MAX_HOST_BYTES}): divide them into parts.`;
}

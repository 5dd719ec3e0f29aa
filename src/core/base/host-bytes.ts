// How much host memory one typed array can show, which bounds what a copy, a read or a pinned array can have on the host.
import { constants } from 'node:buffer';
import { badArgument } from './arguments.js';

/** Bytes of the longest Uint8Array of this Node: 4 GiB in Node 20, more than there is memory in later ones. */
export const MAX_HOST_BYTES: number = constants.MAX_LENGTH;

/** Throws ArgumentError for more. `what`: 'bytes to read'. */
export function checkHostBytes(argument: string, what: string, byteLength: number): void {
  if (byteLength > MAX_HOST_BYTES) throw badArgument(argument, byteLength, tooManyBytes(what, byteLength), MAX_HOST_BYTES);
}

export function tooManyBytes(what: string, byteLength: number): string {
  return `The ${what} (${byteLength}) exceed what one typed array of bytes can have in this Node (${MAX_HOST_BYTES}): take them in parts.`;
}

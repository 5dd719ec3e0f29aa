// The buffers for bytes on their way to and from a device.
//
// Growable SharedArrayBuffers are page-aligned (plain ones start 16 bytes into a page), keep their address when they grow, and
// use no memory until it is accessed. Node 20 has them, but the TypeScript library for our target does not declare them.

export interface GrowableSharedBuffer extends SharedArrayBuffer {
  readonly maxByteLength: number;
  grow(byteLength: number): void;
}

const Growable = SharedArrayBuffer as unknown as new (byteLength: number, opts: { readonly maxByteLength: number }) => GrowableSharedBuffer;

export function growableSharedBuffer(byteLength: number, maxByteLength: number): GrowableSharedBuffer {
  return new Growable(byteLength, { maxByteLength });
}

/** Filling fewer bytes with zeros costs less than the call that does not. */
const LEAST_UNFILLED = 64 * 1024;

/** A new buffer for bytes that will all be written: large ones are not filled with zeros first. Throws RangeError. */
export function unfilledBytes(byteLength: number): Uint8Array<ArrayBuffer> {
  if (byteLength < LEAST_UNFILLED) return new Uint8Array(byteLength);
  return new Uint8Array(Buffer.allocUnsafeSlow(byteLength).buffer);
}

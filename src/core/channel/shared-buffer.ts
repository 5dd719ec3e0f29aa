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

// Growable SharedArrayBuffers, which start on a page (plain ones start 16 bytes into one), keep their address when they
// grow and take no memory until touched. Node 20 has them; the library types we compile against do not.

export interface GrowableSharedBuffer extends SharedArrayBuffer {
  readonly maxByteLength: number;
  grow(byteLength: number): void;
}

const Growable = SharedArrayBuffer as unknown as new (byteLength: number, opts: { readonly maxByteLength: number }) => GrowableSharedBuffer;

export function growableSharedBuffer(byteLength: number, maxByteLength: number): GrowableSharedBuffer {
  return new Growable(byteLength, { maxByteLength });
}

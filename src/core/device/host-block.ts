// A range of host memory that records can name.

/** Page-locked memory, or ordinary memory for one copy to or from the device. */
export interface HostBlock {
  readonly buffer: ArrayBufferLike;
  /** Where it starts in `buffer`. */
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly handle: number;
  /** Where it starts in what `handle` names, in bytes. */
  readonly handleOffset: number;
  /** The size of its range of the arena or of a slab; 0 for a buffer of its own. */
  readonly cutBytes: number;
  readonly chunk: Chunk | undefined;
  /** For a pinned array: the size of `buffer`, which serves a later pinned array of as many pages. */
  readonly pinnedBytes?: number | undefined;
  /** For a large block: the size of `buffer`, which serves a later one. */
  readonly largeBytes?: number | undefined;
}

/** A part of the arena that was registered with the device in one call. */
export interface Chunk {
  readonly handle: number;
  /** The offset in the arena. */
  readonly start: number;
}

/** The block with another size. Written out, because each copy of an ordinary array makes one, and a spread takes longer. */
export function resized(block: HostBlock, byteLength: number): HostBlock {
  const { buffer, byteOffset, handle, handleOffset, cutBytes, chunk, pinnedBytes, largeBytes } = block;
  return { buffer, byteOffset, byteLength, handle, handleOffset, cutBytes, chunk, pinnedBytes, largeBytes };
}

export const PAGE = 4096;

export function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

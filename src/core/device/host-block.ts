// A piece of memory of the host that records can name.

/** Page-locked memory, or memory that is on its way to or from the device. */
export interface HostBlock {
  readonly buffer: ArrayBufferLike;
  /** Where it starts in `buffer`. */
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly handle: number;
  /** Where it starts in what `handle` names. */
  readonly handleOffset: number;
  /** Cut from the arena or a slab: its size there, or 0 for a buffer of its own. */
  readonly cutBytes: number;
  readonly chunk: Chunk | undefined;
  /** Of a pinned array: the size of `buffer`, which serves the next pinned array of as many pages. */
  readonly pinnedBytes?: number;
}

/** A part of the arena that was registered with the device at once. */
export interface Chunk {
  readonly handle: number;
  /** In the arena. */
  readonly start: number;
}

export const PAGE = 4096;

export function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

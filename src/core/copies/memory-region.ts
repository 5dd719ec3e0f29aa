// Elements in memory that a device can access, as copies and fills name them in records.
// Thread: owner.
import type { Encoder } from '../../protocol/encoder.js';
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { contiguousStrides } from '../elements/strides.js';
import type { Storage } from '../memory/storage.js';

export interface Region {
  readonly storage: Storage;
  /** The offset of the first element, in bytes of the storage. */
  readonly offset: number;
  /** The range of bytes of the storage that contains the elements. */
  readonly start: number;
  readonly end: number;
  /** In elements, one for each axis of the copy's shape; undefined if the elements are contiguous. */
  readonly strides: readonly number[] | undefined;
}

/** A region of consecutive bytes. */
export function flatRegion(storage: Storage, offset: number, byteLength: number): Region {
  return { storage, offset, start: offset, end: offset + byteLength, strides: undefined };
}

export function isOnDevice({ storage }: Region): boolean {
  return storage.space === MemorySpace.DEVICE;
}

/** Elements of one dtype, in the shape that both ends of a copy have. */
export interface Elements {
  readonly shape: readonly number[];
  readonly byteSize: number;
  readonly byteLength: number;
}

/** Writes the axes of a strided record and returns their number. A fill has no source. */
export function writeAxes(encoder: Encoder, { shape, byteSize }: Elements, dst: Region, src: Region | undefined): number {
  const flat = contiguousStrides(shape);
  const [to, from] = [dst.strides ?? flat, src === undefined ? undefined : (src.strides ?? flat)];
  // Encode a single element as one axis of extent 1.
  if (shape.length === 0) encoder.stridedAxis(0, 1, 0, 0);
  for (const [axis, extent] of shape.entries()) {
    encoder.stridedAxis(axis, extent, (to[axis] as number) * byteSize, (from?.[axis] ?? 0) * byteSize);
  }
  return Math.max(shape.length, 1);
}

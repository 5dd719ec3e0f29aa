// Kinds of arrays, as kernels tell them apart: all arrays of a device with one element type and as many dimensions have the same ArrayKind
// object. A parameter that has taken an array of a kind takes every array of it, so later launches compare one reference instead of the
// device, the element type, the number of dimensions, the layout and the length.
import type { DType } from '../elements/dtype.js';

export interface ArrayKind {
  readonly dtype: DType;
  readonly rank: number;
}

/** Of no array. */
export const NO_KIND: ArrayKind = { dtype: 'f32', rank: -1 };

/** The kinds of one device. */
export class ArrayKinds {
  /** By the number of dimensions. */
  readonly #kinds: Map<DType, ArrayKind>[] = [];

  of(dtype: DType, rank: number): ArrayKind {
    const kinds = (this.#kinds[rank] ??= new Map());
    let kind = kinds.get(dtype);
    if (kind === undefined) kinds.set(dtype, (kind = { dtype, rank }));
    return kind;
  }
}

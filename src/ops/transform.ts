// What a Fourier transform is, for the kernels and the libraries that compute it.
import type { RealType } from './fourier-passes.js';

/** Transforms of contiguous arrays of `outer` x lengths x `inner` elements, over all the lengths. */
export interface Transform {
  /** `complex`: complex numbers to complex ones. `real`: reals to the first half of their spectrum. `hermitian`: such a half to reals. */
  readonly kind: 'complex' | 'real' | 'hermitian';
  readonly isInverse: boolean;
  readonly outer: number;
  /** The lengths of the transforms, the last one that of the halves. */
  readonly lengths: readonly number[];
  /** The extents of the operand along these axes: shorter ones are padded with zeros, longer ones are cropped. */
  readonly given: readonly number[];
  readonly inner: number;
  /** By which the results are multiplied. */
  readonly scale: number;
  /** The type that it is computed in. The arrays may be of other real types. */
  readonly type: RealType;
}

/** The elements along the last axis of half a spectrum. */
export const halfOf = (length: number): number => Math.floor(length / 2) + 1;

// Kernels in SIMD form and in scalar form.
import { expect } from 'vitest';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import type { Kernel } from '../../../src/core/kernels/kernel.js';
import { writtenOf } from '../../support/written.js';
import { type Images, imagesOfFile } from './images.js';

/** Vector sizes in bytes, with the processor's mask registers if it has them, and without. */
export const WIDTHS: readonly string[] = ['64', '32', '16'];

export const simdImages = (): Images => imagesOfFile({ MILLRACE_SIMD: 'always' });

/** The kernel's SIMD form for this vector size. */
export function withSimd(made: Kernel, width: string): BuildSpec {
  const { simdSource, ...spec } = writtenOf(made, 'always');
  expect(simdSource).toBeDefined();
  return { ...spec, simdSource: `#define MR_VECTOR_BYTES ${width}\n${simdSource!}` };
}

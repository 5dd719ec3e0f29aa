// Kernels in SIMD form and in scalar form, as images that run without a device.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { CpuCompiler } from '../../../src/toolchain/compilers/cpu-compiler.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import type { Kernel } from '../../../src/core/kernels/kernel.js';
import { writtenOf } from '../../support/written.js';
import { QUICK } from '../../support/quick-compiler.js';
import { ImageRunner } from './run-image.js';

/** Vector sizes in bytes, with the processor's mask registers if it has them, and without. */
export const WIDTHS: readonly string[] = ['64', '32', '16'];

export class SimdImages {
  readonly runner: ImageRunner = new ImageRunner();
  readonly #compiler: CpuCompiler;
  #count = 0;

  private constructor(compiler: CpuCompiler) {
    this.#compiler = compiler;
  }

  static async open(): Promise<SimdImages> {
    return new SimdImages(await CpuCompiler.open({ ...process.env, ...QUICK, MILLRACE_SIMD: 'always' }));
  }

  /** A file, as the loader wants it. */
  async built(spec: BuildSpec): Promise<string> {
    const path = join(this.runner.directory, `image-${this.#count++}.so`);
    writeFileSync(path, await this.#compiler.compile(spec));
    return path;
  }

  close(): void {
    this.runner.close();
  }
}

/** The kernel's SIMD form for this vector size. */
export function withSimd(made: Kernel, width: string): BuildSpec {
  const { simdSource, ...spec } = writtenOf(made, 'always');
  expect(simdSource).toBeDefined();
  return { ...spec, simdSource: `#define MR_VECTOR_BYTES ${width}\n${simdSource!}` };
}

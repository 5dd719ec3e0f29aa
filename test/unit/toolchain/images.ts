// Images that the tests of a file compile and run without a device.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { CpuCompiler, type KernelForm } from '../../../src/toolchain/compilers/cpu-compiler.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { ImageRunner } from './run-image.js';

/** From the first test of a file to its last. */
export interface Images {
  readonly run: ImageRunner['run'];
  readonly runAll: ImageRunner['runAll'];
  /** A file, as the loader wants it. */
  readonly built: (spec: BuildSpec, kernels?: readonly string[], form?: KernelForm) => Promise<string>;
}

/** `env`: variables for the compiler. */
export function imagesOfFile(env: NodeJS.ProcessEnv = {}): Images {
  let runner: ImageRunner | undefined;
  let compiler: CpuCompiler | undefined;
  let count = 0;
  beforeAll(async () => {
    runner = new ImageRunner();
    compiler = await CpuCompiler.open({ ...process.env, ...env });
  }, 60_000);
  afterAll(() => runner?.close());
  return {
    run: (...launch) => runner!.run(...launch),
    runAll: (runs) => runner!.runAll(runs),
    built: async (spec, kernels, form) => {
      const path = join(runner!.directory, `image-${count++}.so`);
      writeFileSync(path, await compiler!.compile(spec, kernels, form));
      return path;
    },
  };
}

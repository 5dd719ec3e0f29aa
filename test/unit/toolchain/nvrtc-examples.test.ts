// NVRTC compiles the .cu files of examples/cuda, with the headers of this package, in this process and without a GPU.
import { pathToFileURL } from 'node:url';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { f32, f64, i32, u32, u8 } from '../../../src/core/elements/dtype.js';
import { input, inout, output } from '../../../src/core/kernels/kernel.js';
import { MODULE } from '../../../src/core/kernels/module.js';
import { cudaModule } from '../../../src/cuda-module.js';
import { NvrtcCompiler } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { RTC, RTC_MISSING } from '../../support/rtc.js';

const urlOf = (name: string): URL => pathToFileURL(path.resolve(import.meta.dirname, '../../../examples/cuda', `${name}.cu`));

async function expectCubin(build: unknown): Promise<void> {
  const image = await new NvrtcCompiler(RTC!, 'sm_90').compile(build as BuildSpec);
  expect(Buffer.from(image).subarray(0, 4).toString('latin1')).toBe('\x7fELF');
}

describe.skipIf(RTC === undefined)(`NVRTC${RTC === undefined ? `, skipped: ${RTC_MISSING}` : ''}`, () => {
  test.each(['heat', 'transformer'])('the module of %s.cu', { timeout: 60_000 }, (name) =>
    expectCubin(cudaModule(urlOf(name))[MODULE].build),
  );

  test.each([
    ['reduce<float, Sum, 256>', f32, f32],
    ['reduce<int, ArgMax, 128>', i32, u8],
    ['reduce<double, Min, 512>', f64, f64],
  ] as const)('%s of reduce.cu', { timeout: 60_000 }, (name, x, value) => {
    const params = { x: input(x), n: i32, partials: output(value), finished: inout(u32), result: output(value) };
    return expectCubin(cudaKernel(name, params, urlOf('reduce')).build);
  });
});

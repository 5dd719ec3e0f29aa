// Source that launches kernels, built for CUDA: relocatable code, linked with the device runtime.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { KernelBuilder, type BuildTarget } from '../../../src/toolchain/images/builder.js';
import type { Nvrtc } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { CompileError, type MillraceError, UnavailableError } from '../../../src/core/base/errors.js';
import { specOf } from './run-image.js';

const scratch = mkdtempSync(join(tmpdir(), 'millrace-device-runtime-'));
const directory = join(scratch, 'cache');
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The error that it is rejected with. */
async function rejected(promise: Promise<unknown>): Promise<MillraceError> {
  return promise.then(
    () => Promise.reject(new Error('It was not rejected.')),
    (error: unknown) => error as MillraceError,
  );
}

const H100: BuildTarget & { backend: 'cuda' } = { backend: 'cuda', computeCapability: [9, 0] };

const LAUNCHING = '__global__ void b() {}\nextern "C" __global__ void a() { b<<<1, 1>>>(); }';

test('source that launches is compiled as relocatable code and linked with the device runtime next to the compiler', async () => {
  const toolkit = join(scratch, 'toolkit/lib64');
  mkdirSync(toolkit, { recursive: true });
  writeFileSync(join(toolkit, 'libcudadevrt.a'), '');
  const linked: unknown[] = [];
  const seen: string[] = [];
  const nvrtc: Nvrtc = {
    version: [13, 0],
    path: join(toolkit, 'libnvrtc.so.13'),
    async compile({ options }) {
      seen.push(...options);
      return { image: Buffer.from('parts'), symbols: [], log: '' };
    },
    async link(cubin, library, architecture) {
      linked.push([Buffer.from(cubin).toString(), library, architecture]);
      return { image: Buffer.from('whole'), log: '' };
    },
  };
  const builder = new KernelBuilder({ ...H100, nvrtc }, { MILLRACE_CACHE_DIR: directory });
  const built = await builder.build(specOf(LAUNCHING, 'a', { isLaunching: true }));
  expect(Buffer.from(built.image).toString()).toBe('whole');
  expect(seen).toContain('--relocatable-device-code=true');
  expect(linked).toEqual([['parts', join(toolkit, 'libcudadevrt.a'), 'sm_90']]);
  const refusing = { ...nvrtc, link: async () => ({ log: "error   : Undefined reference to 'c' in 'kernel.cubin'" }) };
  const other = new KernelBuilder({ ...H100, computeCapability: [8, 0], nvrtc: refusing }, { MILLRACE_CACHE_DIR: directory });
  const error = await rejected(other.build(specOf(LAUNCHING, 'a', { isLaunching: true })));
  expect(error).toBeInstanceOf(CompileError);
  expect(error.message).toContain("Undefined reference to 'c'");
});

test('a missing device runtime is an UnavailableError with the searched locations', async () => {
  const nvrtc: Nvrtc = {
    version: [13, 0],
    path: '/nowhere/lib/libnvrtc.so.13',
    compile: () => Promise.reject(new Error('It was looked for before.')),
    link: () => Promise.reject(new Error('It was looked for before.')),
  };
  const builder = new KernelBuilder({ ...H100, nvrtc }, { MILLRACE_CACHE: 'off', MILLRACE_CUDADEVRT: '/nowhere/libcudadevrt.a' });
  const error = await rejected(builder.build(specOf(LAUNCHING, 'a', { isLaunching: true })));
  expect(error).toBeInstanceOf(UnavailableError);
  expect(error.message).toContain('K701: The device runtime that MILLRACE_CUDADEVRT names does not exist: /nowhere/libcudadevrt.a.');
  expect((error as UnavailableError).help.join(' ')).toContain('nvidia-cuda-runtime');
});

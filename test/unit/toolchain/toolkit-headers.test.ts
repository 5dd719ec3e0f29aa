// The search for CUDA's headers, in folders laid out like toolkits and Python packages.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { NvrtcCompiler } from '../../../src/toolchain/compilers/cuda-compiler.js';
import { includesHeaders, toolkitHeaders } from '../../../src/toolchain/compilers/toolkit-headers.js';
import { specOf } from './run-image.js';

const root = mkdtempSync(join(tmpdir(), 'millrace-headers-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function made(include: string): string {
  mkdirSync(join(root, include), { recursive: true });
  writeFileSync(join(root, include, 'cooperative_groups.h'), '');
  return join(root, include);
}

test.each([
  ['a/lib64/libnvrtc.so.13', 'a/include'],
  ['b/targets/x86_64-linux/lib/libnvrtc.so.12', 'b/targets/x86_64-linux/include'],
  ['c/nvidia/cuda_nvrtc/lib/libnvrtc.so.12', 'c/nvidia/cuda_runtime/include'],
  ['d/nvidia/cu13/lib/libnvrtc.so.13', 'd/nvidia/cu13/include'],
])('headers of %s are in %s', (library, include) => {
  const folder = made(include);
  expect(toolkitHeaders(join(root, library), {})).toEqual([folder]);
  mkdirSync(join(folder, 'cccl'));
  expect(toolkitHeaders(join(root, library), {})).toEqual([folder, join(folder, 'cccl')]);
});

test('else they are those of the toolkit that the environment names', () => {
  const folder = made('e/include');
  expect(toolkitHeaders(join(root, 'nowhere/lib/libnvrtc.so'), { CUDA_HOME: join(root, 'e') })).toEqual([folder]);
  expect(toolkitHeaders('libnvrtc.so.12', { CUDA_PATH: join(root, 'e') })).toEqual([folder]);
});

test('only sources that include cooperative groups need them', async () => {
  expect(includesHeaders('#include <cooperative_groups.h>')).toBe(true);
  expect(includesHeaders('int x;\n  # include <cooperative_groups/reduce.h>')).toBe(true);
  expect(includesHeaders('#include <cstdint>\n// <cooperative_groups.h>')).toBe(false);
  const folder = made('f/include');
  const seen: (readonly string[])[] = [];
  const compile = async (_source: string, _name: string, options: readonly string[]) => {
    seen.push(options);
    return { image: new Uint8Array(1), log: '' };
  };
  const link = (): Promise<never> => Promise.reject(new Error('There is nothing to link.'));
  const compiler = new NvrtcCompiler({ version: [12, 8], path: join(root, 'f/lib64/libnvrtc.so'), compile, link }, [9, 0]);
  await compiler.compile(specOf('#include <cooperative_groups.h>', 'k', { options: ['-Imine'] }));
  await compiler.compile(specOf('__global__ void k() {}', 'k'));
  expect(seen.map((options) => options.filter((option) => option.startsWith('-I')))).toEqual([['-Imine', `-I${folder}`], []]);
});

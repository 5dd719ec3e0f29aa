// The search for CUDA's headers, in folders laid out like toolkits and Python packages.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { NvrtcCompiler, type NvrtcProgram } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { toolkitHeaders } from '../../../src/toolchain/compilers/toolkit-headers.js';
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

test('only sources that include headers which the library does not have get them', async () => {
  const folder = made('f/include');
  const seen: (readonly string[])[] = [];
  const compile = async ({ options }: NvrtcProgram) => {
    seen.push(options);
    return { image: new Uint8Array(1), symbols: [], log: '' };
  };
  const link = (): Promise<never> => Promise.reject(new Error('There is nothing to link.'));
  const compiler = new NvrtcCompiler({ version: [12, 8], path: join(root, 'f/lib64/libnvrtc.so'), compile, link }, 'sm_90');
  const folders = async (source: string): Promise<readonly string[]> => {
    await compiler.compile(specOf(`${source}\nextern "C" __global__ void k() {}`, 'k', { options: ['-Imine'] }));
    return seen.at(-1)!.filter((option) => option.startsWith('-I'));
  };
  expect(await folders('#include <cooperative_groups.h>')).toEqual(['-Imine', `-I${folder}`]);
  expect(await folders('int x;\n  # include <cuda_fp16.h>')).toEqual(['-Imine', `-I${folder}`]);
  expect(await folders('#include "mine.h"')).toEqual(['-Imine', `-I${folder}`]);
  expect(await folders('#include <cstdint>\n#include <sys/time.h>\n// #include <cooperative_groups.h>')).toEqual(['-Imine']);
});

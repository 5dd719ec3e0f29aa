// The symbols that NVRTC chooses reach the device with the image, also through the cache; nvcc gets C names.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { UnavailableError } from '../../../src/core/base/errors.js';
import { cpuSymbol, plainName, splitSymbols, withSymbols } from '../../../src/toolchain/base/symbols.js';
import type { Nvrtc } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';

const folder = mkdtempSync(join(tmpdir(), 'millrace-symbols-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const SOURCE = `namespace a { static __global__ void step() {} __global__ void other() {} }
template <int N> __global__ void many() {}`;
const H100 = { backend: 'cuda', computeCapability: [9, 0] } as const;

function buildOf(name: string): BuildSpec {
  return cudaKernel(name, {}, SOURCE).build as BuildSpec;
}

test('a table follows an image and comes off again', () => {
  const image = Uint8Array.from({ length: 100 }, (_, i) => i);
  const stored = withSymbols(image, { 'a::step': '_ZN1a4stepEv' });
  const split = splitSymbols(stored);
  expect([...split.image]).toEqual([...image]);
  expect(split.symbols).toEqual({ 'a::step': '_ZN1a4stepEv' });
  for (const plain of [image, new Uint8Array(), Uint8Array.of(255, 255, 255, 255)])
    expect(splitSymbols(plain)).toEqual({ image: plain, symbols: {} });
  expect(cpuSymbol('a::fold')).toBe('a_fold');
  expect(cpuSymbol('a::fold<float, 2>')).toMatch(/^a_fold_float_2_[0-9a-f]{8}$/);
  expect(new Set(['f<1>', 'f<-1>', 'f<T>', 'f<T*>', 'f<T&>'].map(cpuSymbol)).size).toBe(5);
  expect(plainName('a::fold<b::T, 2>')).toBe('fold');
});

test('NVRTC gets the C++ name, and the builder gives its symbol, built and from the cache', async () => {
  const asked: (readonly string[])[] = [];
  const nvrtc: Nvrtc = {
    version: [13, 0],
    path: '/none',
    compile: async ({ kernels }) => {
      asked.push(kernels);
      return { image: Buffer.from('cubin'), symbols: kernels.map((name) => `_Z${name}`), log: '' };
    },
    link: () => Promise.reject(new Error('There is nothing to link.')),
  };
  for (const fromCache of [false, true]) {
    const builder = new KernelBuilder({ ...H100, nvrtc }, { MILLRACE_CACHE_DIR: folder });
    for (const name of ['a::step', 'many<3>']) {
      const built = await builder.build(buildOf(name));
      expect(built.fromCache).toBe(fromCache);
      expect(Buffer.from(built.image).toString()).toBe('cubin');
      expect(built.symbolOf(name)).toBe(`_Z${name}`);
    }
  }
  expect(asked).toEqual([['a::step'], ['many<3>']]);
});

test('nvcc gets a C name for the kernel, and builds no template by name', async () => {
  const compiler = join(folder, 'nvcc');
  // Writes its input as the image.
  const script = `#!/bin/sh\ncase "$1" in --version) echo 'release 13.0, V13.0.1'; exit;; esac
while [ $# -gt 0 ]; do case "$1" in -o) out=$2;; *.cu) in=$1;; esac; shift; done\ncp "$in" "$out"\n`;
  writeFileSync(compiler, script, { mode: 0o755 });
  const builder = new KernelBuilder(H100, { MILLRACE_CACHE: 'off', MILLRACE_NVCC: compiler });
  const { image, symbolOf } = await builder.build(buildOf('a::step'));
  expect(Buffer.from(image).toString()).toContain('namespace a { extern "C"        __global__ void step() {} __global__ void other() {} }');
  expect(symbolOf('a::step')).toBe('step');
  await expect(builder.build(buildOf('many<3>'))).rejects.toThrow(UnavailableError);
});

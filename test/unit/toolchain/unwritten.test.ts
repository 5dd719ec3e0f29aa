// Builds of TypeScript kernels, whose sources are emitted only when no image is cached.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import type { Nvrtc } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { UnavailableError } from '../../../src/core/base/errors.js';
import type { Build } from '../../../src/core/channel/build-spec.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { writtenOf } from '../../support/written.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-unwritten-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const cpu = (lanes?: string): KernelBuilder =>
  new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: directory, MILLRACE_SIMD: lanes });

const made = kernel('halve', { x: inout(f32) }, ({ x }, { i }) => {
  if (x[i]! > 0) x[i] = x[i]! / 2;
});
/** A kernel that cannot be emitted. */
const empty = { ...made.build, form: {} } as Build;

test('a build that finds its image emits no source, on either device', async () => {
  await expect(cpu().build(empty)).rejects.toThrow();
  expect((await cpu().build(made.build)).fromCache).toBe(false);
  expect((await cpu().build(empty)).fromCache).toBe(true);

  const sources: string[] = [];
  const nvrtc: Nvrtc = {
    version: [13, 0],
    path: '/lib/libnvrtc.so',
    async compile({ source }) {
      sources.push(source);
      return { image: Buffer.from('cubin'), symbols: [], log: '' };
    },
    link: () => Promise.reject(new Error('There is nothing to link.')),
  };
  const cuda = (): KernelBuilder =>
    new KernelBuilder({ backend: 'cuda', computeCapability: [9, 0], nvrtc }, { MILLRACE_CACHE_DIR: directory });
  expect((await cuda().build(made.build)).fromCache).toBe(false);
  expect((await cuda().build(empty)).fromCache).toBe(true);
  expect(sources).toEqual([made.source]);
});

test('SIMD forms, other forms and given sources have different images', async () => {
  const images: string[] = [];
  for (const [builder, build] of [
    [cpu(), made.build],
    [cpu('off'), made.build],
    [cpu('always'), made.build],
    [cpu(), writtenOf(made, 'off')],
  ] as const) {
    const { image, fromCache } = await builder.build(build);
    expect(fromCache).toBe(false);
    images.push(Buffer.from(image).toString());
  }
  expect(new Set(images).size).toBe(images.length);
});

test("the compiler's version is read before the first build", async () => {
  const log = join(directory, 'asked');
  const script = join(directory, 'asking');
  writeFileSync(script, `#!/bin/sh\necho "$1" >> ${log}\nexec c++ "$@"\n`);
  chmodSync(script, 0o755);
  const builder = new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: directory, MILLRACE_CXX: script });
  await builder.prepare();
  expect(readFileSync(log, 'utf8')).toBe('--version\n');
  await builder.build(made.build);
  expect(
    readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line === '--version'),
  ).toHaveLength(1);
});

test('a machine without a compiler is prepared as far as possible, and the first build reports the lack', async () => {
  const builder = new KernelBuilder({ backend: 'cpu' }, { MILLRACE_CACHE_DIR: directory, PATH: '/nonexistent' });
  await expect(builder.prepare()).rejects.toThrow(UnavailableError);
  await expect(builder.build(made.build)).rejects.toThrow(UnavailableError);
});

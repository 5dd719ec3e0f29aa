// What a device that finds races does with images: their keys in the cache, and the lines and variables of a race.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { raceError } from '../../../src/core/timeline/race-errors.js';
import { plainNameOf, threadVariables } from '../../../src/toolchain/base/elf-symbols.js';
import { raceSource } from '../../../src/toolchain/compilers/race-source.js';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';

const folder = mkdtempSync(join(tmpdir(), 'millrace-races-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const build = cudaKernel(
  'tiled',
  {},
  `__shared__ double outer[4];
extern "C" __global__ void tiled() {
  __shared__ int tile[32], rest[8];
  tile[threadIdx.x] = rest[threadIdx.x & 7] + outer[0];
  outer[threadIdx.x & 3] = tile[0];
}`,
).build as BuildSpec;

function builderWith(findsRaces: boolean): KernelBuilder {
  return new KernelBuilder({ backend: 'cpu', findsRaces }, { ...process.env, MILLRACE_CACHE_DIR: folder });
}

test('images that find races and others are kept apart in the cache', async () => {
  const files: string[] = [];
  for (const fromCache of [false, true]) {
    for (const findsRaces of [true, false]) {
      const built = await builderWith(findsRaces).build(build);
      expect(built.fromCache).toBe(fromCache);
      files.push(Buffer.from(built.image).toString());
    }
  }
  const [racing, plain] = files;
  expect(files).toEqual([racing, plain, racing, plain]);
  expect(racing).not.toBe(plain);
  expect(readFileSync(racing!).includes('mr_finds_races')).toBe(true);
  expect(readFileSync(plain!).includes('mr_finds_races')).toBe(false);
});

test('the shared variables of an image have the names of the source, and their sizes', async () => {
  const { image } = await builderWith(true).build(build);
  const found = threadVariables(readFileSync(Buffer.from(image).toString()));
  const bytes = new Map(found.map((one) => [one.name, one.bytes]));
  expect([bytes.get('tile'), bytes.get('rest'), bytes.get('outer')]).toEqual([128, 32, 32]);
});

test.each([
  ['_ZZ6kernelPfE4tile', 'tile'],
  ['_ZZ6kernelPfE4tile_0', 'tile'],
  ['_ZZN5space6kernelEPfiE10sharedRows', 'sharedRows'],
  ['_ZZ6kernelILi256EfEvPT0_S1_E4tile', 'tile'],
  ['_ZN5spaceL4poolE', 'pool'],
  ['_ZL4tile', 'tile'],
  ['plain.12', 'plain'],
])('the symbol %s is the variable %s', (symbol, name) => expect(plainNameOf(symbol)).toBe(name));

test('without a tool that knows lines, or without the image, a race has a reason instead', async () => {
  const { image } = await builderWith(true).build(build);
  const file = Buffer.from(image).toString();
  const tile = threadVariables(readFileSync(file)).find(({ name }) => name === 'tile')!;
  const { PATH } = process.env;
  process.env['PATH'] = folder;
  try {
    const found = await raceSource(file, () => build, { instructions: [4096, 4200], byte: tile.offset + 5 });
    expect(found.variable).toEqual({ name: 'tile', byte: 5 });
    expect(found.lines).toEqual([undefined, undefined]);
    expect(found.reason).toBe('none of addr2line, llvm-addr2line, llvm-symbolizer runs');
  } finally {
    process.env['PATH'] = PATH;
  }
  const gone = await raceSource(join(folder, 'gone.so'), () => build, { instructions: [1, 2], byte: 3 });
  expect(gone).toMatchObject({ lines: [undefined, undefined], variable: undefined });
  expect(gone.reason).not.toBe(undefined);
});

test('the message has the threads, the kind, and why lines are not known', async () => {
  const fault = {
    parameter: 0xffff_fffd,
    dimension: 8,
    index: 20,
    limit: 1,
    block: [2, 0, 0],
    // Thread (5, 1, 0) read, then code of every thread changed the byte by an atomic function.
    thread: [5 | (1 << 10), 0xffff_ffff, 0 | (3 << 2)],
    places: [1, 2],
  } as const;
  const locate = () => Promise.resolve({ lines: [undefined, undefined] as const, reason: 'nothing runs', variable: undefined });
  const error = await raceError(fault, { name: 'k', locate }, 'on stream s of device cpu:0', {});
  expect(error.message).toBe(
    'Kernel k on stream s of device cpu:0 has a race in block (2, 0, 0), write after read: every thread atomically writes byte 20 of its shared ' +
      'variables, which thread (5, 1, 0) read, and nothing orders the two. The lines are not known: nothing runs.',
  );
  const ended = await raceError(fault, { name: 'k', locate: () => Promise.reject(new Error('closed')) }, 'on s', {});
  expect(ended.message).toContain('The lines are not known: the device has ended.');
});

// Included headers may change although the source does not, so such an image is never reused.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { isSelfContained } from '../../../src/toolchain/cuda-parser/included-file-checks.js';
import { ImageRunner, specOf } from './run-image.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-headers-'));
let runner: ImageRunner;

beforeAll(() => {
  runner = new ImageRunner();
});
afterAll(() => {
  runner.close();
  rmSync(directory, { recursive: true, force: true });
});

const cpu = (): KernelBuilder => new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: join(directory, 'cache') });

test('source that includes headers is rebuilt, because they may have changed', async () => {
  const header = join(directory, 'step.h');
  const source = '#include "step.h"\nextern "C" __global__ void add(int* y) { y[0] += STEP; }';
  const builder = cpu();
  const y = new Int32Array(1);
  for (const step of [1, 20]) {
    writeFileSync(header, `#define STEP ${step}\n`);
    const { image } = await builder.build(specOf(source, 'add', { options: [`-I${directory}`] }));
    runner.run(image, 'add', { grid: [1, 1, 1], block: [1, 1, 1] }, [y]);
  }
  expect(y[0]).toBe(21);
});

test.each([
  ['by its path', (path: string) => `#include <${path}>`],
  ['by a macro', (path: string) => `#define HEADER "${path}"\n#include HEADER`],
  ['behind a comment', (path: string) => `#include/* its step */"${path}"`],
  ['behind a comment before it', (path: string) => `/* its step */ #include "${path}"`],
  ['at the end of a comment', (path: string) => `/*\n*/#include "${path}"`],
  ['over two lines', (path: string) => `#inc\\\nlude "${path}"`],
  ['as the next', (path: string) => `#include_next <${path}>`],
  ['as an import', (path: string) => `#import "${path}"`],
  ['if it is there', (path: string) => `#if __has_include("${path}")\n#define STEP 1\n#else\n#define STEP 2\n#endif`],
])('so is one that names them %s', async (_how, include) => {
  const header = join(directory, 'path.h');
  const source = `${include(header)}\nextern "C" __global__ void add(int* y) { y[0] += STEP; }`;
  for (const step of [1, 20]) {
    writeFileSync(header, `#define STEP ${step}\n`);
    expect((await cpu().build(specOf(source, 'add'))).fromCache).toBe(false);
  }
});

test("so is one whose compiler has folders of its own, and one with a header that is no system's", async () => {
  const folder = join(directory, 'folder');
  mkdirSync(folder);
  const source = '#include <step_of_mine.h>\nextern "C" __global__ void add(int* y) { y[0] += STEP; }';
  const env = { ...process.env, MILLRACE_CACHE_DIR: join(directory, 'cache'), MILLRACE_CXX: `g++ -I${folder}` };
  const y = new Int32Array(1);
  for (const step of [1, 20]) {
    writeFileSync(join(folder, 'step_of_mine.h'), `#define STEP ${step}\n`);
    const { image } = await new KernelBuilder({ backend: 'cpu' }, env).build(specOf(source, 'add'));
    runner.run(image, 'add', { grid: [1, 1, 1], block: [1, 1, 1] }, [y]);
  }
  expect(y[0]).toBe(21);
  expect(isSelfContained(specOf('#include <zlib.h>', 'add'), false)).toBe(false);
});

test.each([
  '#include <cmath>\n#include <stdint.h>\n # include <cuda_runtime.h>\n#include <cooperative_groups/reduce.h>',
  '// to include "others.h" would make it another\nextern "C" __global__ void k() { printf("include"); }',
  '#include <cub/block/block_reduce.cuh> // as it is',
])("a text with no headers but systems' is built once: %s", (source) => {
  expect(isSelfContained(specOf(source, 'k'), false)).toBe(true);
});

// What a text includes may change while the text does not: its image is no one else's.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KernelBuilder } from '../../../src/build/images/builder.js';
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

test('a text that includes headers is built anew, for they may have changed', async () => {
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
])('so is one that names them %s', async (_how, include) => {
  const header = join(directory, 'path.h');
  const source = `${include(header)}\nextern "C" __global__ void add(int* y) { y[0] += STEP; }`;
  for (const step of [1, 20]) {
    writeFileSync(header, `#define STEP ${step}\n`);
    expect((await cpu().build(specOf(source, 'add'))).fromCache).toBe(false);
  }
});

// Included headers may change although the source does not, so such an image is never reused.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { isSelfContained } from '../../../src/toolchain/images/included-file-checks.js';
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
])('so is one that names them %s', (_how, include) => {
  const source = `${include(join(directory, 'path.h'))}\nextern "C" __global__ void add(int* y) { y[0] += STEP; }`;
  expect(isSelfContained(specOf(source, 'add'), false)).toBe(false);
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

test('only regular files are read, at the call and at the build', async () => {
  const path = (name: string): string => join(directory, name);
  execFileSync('mkfifo', [path('pipe.h')]);
  symlinkSync('loop.h', path('loop.h'));
  mkdirSync(path('folder.h'));
  const socket = createServer().listen(path('socket.h'));
  await once(socket, 'listening');
  const builder = cpu();
  const reasons: readonly (readonly [file: string, reason: string])[] = [
    [path('pipe.h'), 'is a pipe, not a file'],
    [path('loop.h'), 'is a symbolic link to itself'],
    [path('folder.h'), 'is a directory, not a file'],
    [path('socket.h'), 'is a socket, not a file'],
    ['/dev/zero', 'is a device, not a file'],
    ['/proc/kmsg', 'is in the file system /proc, which has no regular files'],
  ];
  try {
    for (const [file, reason] of reasons) {
      expect(() => cudaKernel('k', {}, pathToFileURL(file))).toThrow(`cannot be read: it ${reason}.`);
      const { build } = cudaKernel('k', {}, `#include "${file}"\n__global__ void k() {}`);
      await expect(builder.build(build as BuildSpec), file).rejects.toThrow(`includes '${file}', which ${reason}.`);
    }
  } finally {
    socket.close();
  }
});

test('a header that is not there is named, unless only host code needs it', async () => {
  const builder = cpu();
  const KERNEL = 'extern "C" __global__ void k(float* y) { y[0] = 1; }';
  const built = (text: string): Promise<unknown> => builder.build(specOf(`#include <absent/library.h>\n${text}`, 'k'));
  await built(`absent::Tensor forward(absent::Tensor x);\n${KERNEL}`);
  const needed = [
    '#if ABSENT_VERSION > 2\n#endif\n',
    '#ifdef USE_ABSENT\n#endif\n',
    '#if HAS(X)\n#else\n#error none\n#endif\n',
    '__device__ absent::Number n;\n',
  ];
  for (const text of needed) await expect(built(text + KERNEL), text).rejects.toThrow('absent/library.h: No such file');
});

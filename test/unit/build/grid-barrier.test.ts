// The barrier of the grid as the emitted text has it for CUDA, run by one thread of the system for each thread of the grid:
// a block is a copy of the image, and the place where blocks meet is what the copies have in common.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SHIM_DIRECTORY } from '../../../src/build/base/identity.js';
import { rewriteForCpu } from '../../../src/build/threads/rewrite.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { i32 } from '../../../src/core/elements/dtype.js';
import { inout, input, output } from '../../../src/core/kernels/kernel.js';
import { MAX_STREAMS } from '../../../src/protocol/protocol.gen.js';
import { ImageRunner, i32 as int } from './run-image.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const NVCC = '/usr/local/cuda/bin/nvcc';
const NO_LIMIT = 2 ** 31 - 1;
const TURNS = 7;
const directory = mkdtempSync(join(tmpdir(), 'millrace-grid-'));
let runner: ImageRunner;
beforeAll(() => {
  runner = new ImageRunner();
});
afterAll(() => {
  runner.close();
  rmSync(directory, { recursive: true, force: true });
});

// Who is left counts itself once a turn, and sees behind the barrier how many were.
const leaving = kernel(
  'leaving',
  { until: input(i32), counts: inout(i32), seen: output(i32) },
  ({ until, counts, seen }, { i, atomicAdd, gridSync }) => {
    let last = 0;
    for (let turn = 0; turn < counts.length; turn++) {
      if (until[i]! <= turn) {
        seen[i] = last;
        return;
      }
      atomicAdd(counts, turn, 1);
      gridSync();
      last = counts[turn]!;
    }
    seen[i] = last;
  },
  { bounds: 'unchecked' },
);

function built(): string {
  const place = `static __device__ MrGrid mr_grids[${MAX_STREAMS}];`;
  expect(leaving.source).toContain(place);
  const text = leaving.source.replace(place, '__attribute__((visibility("default"))) extern MrGrid mr_grids[];');
  const source = join(directory, 'leaving.cpp');
  writeFileSync(source, `#include "cuda_on_threads.h"\n${rewriteForCpu(text).text}\nMR_KERNEL(${leaving.build.entry})\n`);
  const barriers = join(directory, 'barriers.o');
  const path = join(directory, 'leaving.so');
  const includes = ['-I', HERE, '-I', SHIM_DIRECTORY, '-I', join(SHIM_DIRECTORY, 'include')];
  execFileSync('g++', ['-std=c++20', '-O1', '-fPIC', '-c', join(HERE, 'cuda_on_threads.cpp'), '-o', barriers]);
  const flags = ['-std=c++20', '-O1', '-w', '-fPIC', '-shared', '-pthread', '-fvisibility=hidden'];
  execFileSync('g++', [...flags, ...includes, source, barriers, '-o', path]);
  return path;
}

test('threads and blocks meet, whoever has left', { timeout: 120_000 }, () => {
  const path = built();
  const [blocks, width] = [5, 6];
  for (const [title, endOf] of [
    ['all stay', () => 99],
    ['all leave at once', () => 3],
    ['blocks leave', (block) => (block * 2) % 9],
    ['the first thread leaves', (_block, thread) => (thread === 0 ? 0 : 99)],
    ['the first block leaves', (block) => (block === 0 ? 0 : 99)],
    ['all at different times', (block, thread) => (block * 5 + thread * 3) % 10],
  ] as readonly [string, (block: number, thread: number) => number][]) {
    for (const extent of [NO_LIMIT, blocks * width - 4]) {
      const until = Int32Array.from({ length: blocks * width }, (_, i) => endOf(Math.floor(i / width), i % width));
      const counts = new Int32Array(TURNS);
      const seen = new Int32Array(until.length);
      const args = [
        until,
        int(until.length),
        counts,
        int(TURNS),
        seen,
        int(seen.length),
        int(extent),
        int(NO_LIMIT),
        int(NO_LIMIT),
        int(77),
      ];
      runner.run(path, leaving.build.entry, { grid: [blocks, 1, 1], block: [width, 1, 1], threads: 0 }, args);
      const within = until.subarray(0, Math.min(extent, until.length));
      const expected = Array.from({ length: TURNS }, (_, turn) => within.filter((end) => end > turn).length);
      expect([...counts], title).toEqual(expected);
      expect([...seen.subarray(0, within.length)], title).toEqual(
        [...within].map((end) => (end === 0 ? 0 : expected[Math.min(end, TURNS) - 1]!)),
      );
    }
  }
});

test('nvcc takes the text', (context) => {
  if (!existsSync(NVCC)) context.skip(`${NVCC} is absent.`);
  const path = join(directory, 'leaving.cu');
  writeFileSync(path, leaving.source);
  execFileSync(NVCC, ['--ptx', '-arch=sm_90', '-o', join(directory, 'leaving.ptx'), path]);
}, 60_000);

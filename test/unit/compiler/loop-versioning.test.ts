// Which loops get an unchecked version on CUDA, and that nvcc compiles both. test/conformance/kernels/checked-loops.test.ts (chapter 4) tests their
// results and reports.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { checkWithNvcc, hasNvcc } from '../../support/nvcc.js';
import { f32, func, i32, inout, input, kernel, output, u32, u8, type Kernel } from '../../../src/index.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-loop-versioning-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const rows = kernel('rows', { x: input(f32, 2), out: output(f32) }, ({ x, out }, { i }) => {
  let sum = 0;
  for (let k = 0; k < x.shape[0]; k++) sum += x[k]![0]! + x[k]![2]!;
  out[i] = sum;
});
const uncheckedRows = kernel(
  'unchecked_rows',
  { x: input(f32, 2), out: output(f32) },
  ({ x, out }, { i }) => {
    let sum = 0;
    for (let k = 0; k < x.shape[0]; k++) sum += x[k]![0]! + x[k]![2]!;
    out[i] = sum;
  },
  { bounds: 'unchecked' },
);
const crossing = kernel('crossing', { x: input(i32), n: i32, out: inout(i32) }, ({ x, n, out }, t) => {
  const bins = t.shared(i32, 64);
  let sum = t.i;
  bins[t.threadIdx.x & 63] = sum;
  t.syncthreads();
  for (let k = 0; k < n; k++) sum += x[t.i + k]! + bins[k & 63]!;
  t.syncthreads();
  out[t.i] = sum;
});
const square = func([f32], f32, (v) => v * v);
const closed = kernel(
  'closed',
  { x: input(f32), most: u32, y: inout(f32) },
  ({ x, most, y }, t) => {
    const all = t.sharedDynamic(f32);
    const mine = t.local(f32, 4);
    const turns = t.idiv(x.length, 2);
    t.syncthreads();
    for (let k = t.u32(0); k < most; k++) mine[t.i32(k) & 3] = x[t.i32(k)]! + t.square(all[t.threadIdx.x]!);
    for (let k = turns - 1; k >= 0; k -= 2) mine[k & 3]! += x[k]!;
    t.syncthreads();
    y[t.i] = mine[0]! + mine[3]!;
  },
  { functions: { square } },
);

describe('a second version', () => {
  test('without checks, of a loop over an array whose size the launch knows', () => {
    expect(rows.source).toContain('mr_is_within');
    expect(rows.source).toContain('static __device__ __noinline__ bool mr_checked_1(');
    expect(rows.source.match(/for \(int k_/g)).toHaveLength(4);
  });

  test('with the row width that constants suggest, also unchecked', () => {
    for (const { source } of [rows, uncheckedRows]) {
      expect(source).toMatch(/if \(x_n1 == 3\b/);
      expect(source).toContain('const int x_n1 = 3;');
    }
    expect(uncheckedRows.source).not.toContain('mr_range');
  });

  test('inline, if per-thread variables enter and leave', () => {
    expect(crossing.source).toContain('mr_is_within');
    expect(crossing.source).not.toContain('mr_checked_1');
  });

  test('not without a loop, nor for a loop over literal sizes', () => {
    const once = kernel('once', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
      y[i] = x[i]!;
    });
    const fixed = kernel('fixed', { y: output(i32) }, ({ y }, { i, local }) => {
      const mine = local(i32, 8);
      for (let k = 0; k < 8; k++) mine[k] = i + k;
      y[i] = mine[i & 7]!;
    });
    const wild = kernel('wild', { x: input(i32), y: output(i32) }, ({ x, y }, { i }) => {
      let at = 0;
      for (let k = 0; k < 8; k++) at = x[at]!;
      y[i] = at;
    });
    for (const { source } of [once, fixed, wild]) expect(source).not.toContain('struct mr_range');
  });

  test('of rows that a variable also indexes, with their actual width', () => {
    const mixed = kernel('mixed', { x: input(u8, 2), y: output(i32) }, ({ x, y }, { i }) => {
      let sum = 0;
      for (let k = 0; k < x.shape[0]; k++) sum += x[k]![0]! + x[k]![i & 3]!;
      y[i] = sum;
    });
    expect(mixed.source).not.toMatch(/const int x_n1 =/);
  });
});

test.skipIf(!hasNvcc)('nvcc compiles them (skipped where there is no nvcc)', { timeout: 120_000 }, () => {
  const kernels: readonly Kernel[] = [rows, uncheckedRows, crossing, closed];
  checkWithNvcc(kernels.map(({ source }) => source));
});

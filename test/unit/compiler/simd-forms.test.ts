// The SIMD form of kernels: block fusion, and the element width.
import { describe, expect, test } from 'vitest';
import type { Kernel } from '../../../src/core/kernels/kernel.js';
import { bool, f32, func, i16, i32, i8, inout, input, kernel, output, u16, u32, u8 } from '../../../src/index.js';
import { writtenOf } from '../../support/written.js';

const PARAMS = {
  a: input(u8),
  b: input(i8),
  c: input(u16),
  d: input(i16),
  e: input(i32),
  f: input(f32),
  g: input(bool),
  o: output(u8),
  p: output(i16),
  q: output(i32),
  r: output(u32),
  t: u8,
  n: i32,
};
const PICTURES = { s: input(f32, 2), d: output(f32, 2) };
type Body = Parameters<typeof kernel<typeof PARAMS>>[2];

function simdTextOf(body: Body, bounds: 'checked' | 'unchecked' = 'unchecked'): string {
  return writtenOf(kernel('form', PARAMS, body, { bounds }) as unknown as Kernel, 'always').simdSource!;
}
const isFused = (source: string): boolean => source.includes('mr_blocks mr_run');
const bytesOf = (source: string): number => Number(/#define MR_NARROW_LANES (\d)/.exec(source)?.[1] ?? 4);

describe('blocks run together', () => {
  test('if threads use only their global index', () => {
    expect(isFused(simdTextOf(({ a, o }, { i }) => void (o[i] = a[i]! > 3 ? 1 : 0)))).toBe(true);
    expect(isFused(simdTextOf(({ q }, { i, blockDim, gridDim }) => void (q[i] = blockDim.x * gridDim.x)))).toBe(true);
  });

  test.each<[string, Body]>([
    ['a block asks which it is', ({ q }, { i, blockIdx }) => void (q[i] = blockIdx.x)],
    ['a thread asks which it is', ({ q }, { i, threadIdx }) => void (q[i] = threadIdx.x)],
    ['they count together', ({ q }, { i, atomicAdd }) => void (q[i] = atomicAdd(q, 0, 1))],
    ['what one wrote is told to others', ({ q }, { i, threadfence }) => (threadfence(), void (q[i] = 1))],
    [
      'what they load is loaded again',
      ({ a, q }, { i }) => {
        let sum = 0;
        for (let k = 0; k < a.length; k++) sum += a[k]!;
        q[i] = sum;
      },
    ],
    [
      'memory is their own',
      ({ q }, { i, local }) => {
        const own = local(i32, 2);
        own[i & 1] = 3;
        q[i] = own[0]!;
      },
    ],
    ['they assert', ({ q }, { i, assert }) => (assert(i < 99), void (q[i] = 1))],
  ])('not where %s', (_why, body) => {
    expect(isFused(simdTextOf(body))).toBe(false);
  });

  test('not if ranges cannot tell whether a thread leaves an array', () => {
    const body: Body = ({ e, q }, { i }) => void (q[e[i]!] = i);
    expect(isFused(simdTextOf(body))).toBe(true);
    expect(isFused(simdTextOf(body, 'checked'))).toBe(false);
    expect(simdTextOf(({ e, q }, { i }) => void (q[i] = e[i]! > 3 ? 1 : 0), 'checked')).toContain('MR_ONE_BY_ONE_UNLESS(mr_is_fast_1)');
  });
});

test('blocks are not fused if neighbours read different rows', () => {
  const made = (body: Parameters<typeof kernel<typeof PICTURES>>[2]): string =>
    writtenOf(kernel('rows', PICTURES, body, { bounds: 'unchecked' }), 'always').simdSource!;
  expect(isFused(made(({ s, d }, { i, j }) => void (d[i]![j] = s[i]![j + 1]!)))).toBe(true);
  expect(isFused(made(({ s, d }, { i, j }) => void (d[i]![j] = s[i]![3 * j]!)))).toBe(true);
  expect(isFused(made(({ s, d }, { i, j }) => void (d[i]![j] = s[j]![i]!)))).toBe(false);
  expect(isFused(made(({ s, d }, { i, j }) => void (d[j]![i] = s[i]![j]!)))).toBe(false);
  expect(isFused(made(({ s, d }, { i, j }) => void (d[i]![j] = s[i]![j * s.shape[0]]!)))).toBe(false);
});

test('straight-line kernels have a SIMD form if blocks run together, or if they call functions with lanes of their own', () => {
  const auto = (made: object): boolean => writtenOf(made, 'auto').simdSource !== undefined;
  expect(auto(kernel('floats', { f: inout(f32) }, ({ f }, { i }) => void (f[i] = f[i]! * 2)))).toBe(true);
  expect(auto(kernel('apart', { f: inout(f32) }, ({ f }, { i, blockIdx }) => void (f[i] = blockIdx.x)))).toBe(false);
  expect(auto(kernel('waves', { f: inout(f32) }, ({ f }, { i, blockIdx }) => void (f[i] = Math.sin(blockIdx.x + i))))).toBe(true);
  expect(auto(kernel('bytes', { a: inout(u8) }, ({ a }, { i }) => void (a[i] = a[i]! * 2)))).toBe(true);
  expect(auto(kernel('rows', PICTURES, ({ s, d }, { i, j }) => void (d[i]![j] = s[i]![j]! * 2)))).toBe(true);
  expect(auto(kernel('columns', PICTURES, ({ s, d }, { i, j }) => void (d[i]![j] = s[j]![i]!)))).toBe(false);
});

describe('lanes', () => {
  test.each<[number, string, Body]>([
    [1, 'bytes', ({ a, o }, { i }) => void (o[i] = a[i]! > 3 ? 1 : 0)],
    [1, 'low bits of bytes', ({ a, b, o }, { i }) => void (o[i] = a[i]! + b[i]! - 7)],
    [1, 'masks alone', ({ g, o }, { i }) => void (o[i] = g[i]! && i > 5 ? 1 : 0)],
    [2, 'numbers below zero', ({ b, o }, { i }) => void (o[i] = b[i]! > -3 ? 1 : 0)],
    [2, 'products', ({ a, o }, { i }) => void (o[i] = a[i]! * a[i]!)],
    [2, 'shifts', ({ a, o }, { i }) => void (o[i] = a[i]! >> 1)],
    [2, 'shorts', ({ a, p }, { i }) => void (p[i] = a[i]!)],
    [2, 'low bits of shorts', ({ c, p }, { i }) => void (p[i] = c[i]! + 3)],
    [4, 'shorts without a sign, beside others', ({ c, o }, { i }) => void (o[i] = c[i]! > 40_000 ? 1 : 0)],
    [4, 'a square that is divided', ({ a, o }, { i }) => void (o[i] = (a[i]! * a[i]!) >> 8)],
    [4, 'words that are loaded', ({ e, o }, { i }) => void (o[i] = e[i]! & 1)],
    [4, 'words that are stored', ({ a, q }, { i }) => void (q[i] = a[i]!)],
    [4, 'floats', ({ f, o }, { i }) => void (o[i] = f[i]! > 0 ? 1 : 0)],
    [4, 'an index that is a value', ({ p }, { i }) => void (p[i] = i >> 2)],
    [2, 'an index of which low bits are wanted', ({ p }, { i }) => void (p[i] = i * 3 + 1)],
    [4, 'sums that shorts would have to stop', ({ a, o }, { i }) => void (o[i] = a[i]! * 100 + a[i]! * 100 > 30_000 ? 1 : 0)],
    [4, 'sums of shorts without a sign', ({ c, o }, { i }) => void (o[i] = (c[i]! >>> 0) + (c[i]! >>> 0) > 1000 ? 1 : 0)],
    [1, 'sums without a sign', ({ a, o }, { i }) => void (o[i] = (a[i]! >>> 0) + (a[i]! >>> 0) > 100 ? 1 : 0)],
    [
      4,
      'sums that may wrap in 32 bits',
      ({ a, o }, { i }) => {
        let sum = a[i]! >>> 0;
        sum = sum + sum;
        o[i] = sum === 0 ? 1 : 2;
      },
    ],
    [4, 'an index that is loaded', ({ a, o }, { i }) => void (o[i] = a[a[i]!]!)],
  ])('of %i bytes for %s', (bytes, _what, body) => {
    expect(bytesOf(simdTextOf(body))).toBe(bytes);
  });

  test('have four bytes with helpers, which are emitted for four', () => {
    const made = kernel('helped', { a: input(u8), o: output(u8) }, ({ a, o }, { i, half }) => void (o[i] = half(a[i]!)), {
      functions: { half: func([i32], i32, (v) => v >> 1) },
    }) as unknown as Kernel;
    expect(bytesOf(writtenOf(made, 'always').simdSource!)).toBe(4);
  });

  test('keep their width in blocks that run one by one', () => {
    expect(bytesOf(simdTextOf(({ a, o }, { threadIdx }) => void (o[threadIdx.x] = a[threadIdx.x]! > 3 ? 1 : 0)))).toBe(4);
  });

  test('saturate compared sums, and compare an index as a scalar', () => {
    const source = simdTextOf(({ a, o }, { i }) => void (o[i] = 3 === a[i]! + a[i]! || 7 < i ? 1 : 0));
    expect(source).toMatch(/mr_eq\(mr_i32_of\(3\), mr_sum_to_most\(\w+, \w+\)\)/);
    expect(source).toContain('mr_next_gt(mr_i, 7)');
    expect(source).not.toContain('mr_ramp');
  });

  test('wrap like unsigned numbers, and clamp uniform values', () => {
    const source = simdTextOf(({ a, b, o, n }, { i }) => void (o[i] = b[i]! < n ? a[i]! * 999 : 1));
    expect(source).toMatch(/= \(mr_i32\)\(\(mr_u32\)\w+ \* \(mr_u32\)mr_i32_of\(999\)\);/);
    expect(source).toContain('mr_i32_of(mr_bounded(n_, -129, 128))');
  });
});

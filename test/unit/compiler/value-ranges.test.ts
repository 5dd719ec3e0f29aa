// Ranges of integer values (src/compiler/analysis/value-ranges.ts): exactly the smallest range that the operands allow.
import { expect, test } from 'vitest';
import { ValueRanges } from '../../../src/compiler/analysis/value-ranges.js';
import { expressionsOf, statementsIn } from '../../../src/compiler/ir/walk.js';
import { bool, f32, i16, i32, i8, input, output, u16, u32, u8 } from '../../../src/index.js';
import { irOfText } from '../../support/oracle/typed-form.js';

const PARAMS = {
  a: input(u8),
  b: input(i8),
  c: input(u16),
  d: input(i16),
  e: input(i32),
  f: input(f32),
  g: input(bool),
  o: output(i32),
  p: output(u32),
  t: u8,
  n: i32,
  m: u32,
};
const I32 = [-(2 ** 31), 2 ** 31 - 1] as const;
const U32 = [0, 2 ** 32 - 1] as const;

/** The ranges of the values stored in `o` and `p`, in source order. */
function rangesOf(body: string): unknown[] {
  const text = `({ a, b, c, d, e, f, g, o, p, t, n, m }, { i, idiv, min, max, clamp, popcount, i32, u32, blockDim }) => {\n${body}\n}`;
  const ir = irOfText(text, PARAMS, {}, {});
  const ranges = new ValueRanges(ir);
  const stores = [...statementsIn(ir.body)].filter((stmt) => stmt.kind === 'store');
  return stores.map((stmt) => {
    const range = ranges.of(expressionsOf(stmt).at(-1)!);
    return range && [range.low, range.high];
  });
}
const ofInt = (expr: string): unknown => rangesOf(`o[i] = ${expr};`)[0];
const ofUnsigned = (expr: string): unknown => rangesOf(`p[i] = ${expr};`)[0];

test('loads and arguments have the range of their type', () => {
  expect(ofInt('a[i]')).toEqual([0, 255]);
  expect(ofInt('b[i]')).toEqual([-128, 127]);
  expect(ofInt('c[i]')).toEqual([0, 65_535]);
  expect(ofInt('d[i]')).toEqual([-32_768, 32_767]);
  expect(ofInt('e[i]')).toEqual(I32);
  expect(ofInt('t')).toEqual([0, 255]);
  expect(ofInt('n')).toEqual(I32);
  expect(ofInt('-7')).toEqual([-7, -7]);
  for (const count of ['i', 'a.length', 'blockDim.x']) expect(ofInt(count)).toEqual([0, 2 ** 31 - 1]);
  expect(ofUnsigned('m')).toEqual(U32);
  expect(ofInt('i32(g[i])')).toEqual([0, 1]);
  expect(ofInt('i32(f[i])')).toEqual(I32);
});

test.each([
  ['a[i] + a[i]', 0, 510],
  ['a[i] + b[i] + 1', -127, 383],
  ['a[i] - t', -255, 255],
  ['b[i] * b[i]', -16_256, 16_384],
  ['a[i] * -3', -765, 0],
  ['-b[i]', -127, 128],
  ['~a[i]', -256, -1],
  ['a[i] & 15', 0, 15],
  ['e[i] & 15', 0, 15],
  ['b[i] & a[i]', 0, 255],
  ['a[i] | 256', 0, 511],
  ['a[i] ^ (a[i] & 7)', 0, 255],
  ['a[i] << 3', 0, 2040],
  ['b[i] >> 2', -32, 31],
  ['e[i] >> 24', -128, 127],
  ['a[i] % 10', 0, 9],
  ['b[i] % 10', -9, 9],
  ['b[i] % 200', -128, 127],
  ['idiv(b[i], 3)', -42, 42],
  ['idiv(a[i] + 3, 2)', 1, 129],
  ['min(a[i], 7)', 0, 7],
  ['max(b[i], 7)', 7, 127],
  ['clamp(e[i], -2, 300)', -2, 300],
  ['clamp(a[i], 5, 300)', 5, 255],
  ['Math.abs(b[i])', 0, 128],
  ['Math.abs(a[i] - 3)', 0, 252],
  ['i > 3 ? a[i] : b[i]', -128, 255],
  ['i32(u32(a[i]) + u32(300))', 300, 555],
])('%s: %i to %i', (expr, low, high) => {
  expect(ofInt(expr)).toEqual([low, high]);
});

test('a value that may wrap has the full range', () => {
  expect(ofInt('n + 1')).toEqual(I32);
  expect(ofInt('i * 2')).toEqual(I32);
  expect(ofInt('i << 1')).toEqual(I32);
  expect(ofInt('b[i] | 1')).toEqual(I32);
  expect(ofInt('a[i] << b[i]')).toEqual(I32);
  expect(ofInt('idiv(a[i], b[i])')).toEqual(I32);
  expect(ofInt('a[i] % b[i]')).toEqual(I32);
  expect(ofUnsigned('u32(a[i]) - u32(1)')).toEqual(U32);
  expect(ofUnsigned('u32(b[i])')).toEqual(U32);
  expect(ofUnsigned('~u32(a[i])')).toEqual([2 ** 32 - 256, 2 ** 32 - 1]);
  expect(ofUnsigned('-u32(a[i])')).toEqual(U32);
  expect(ofInt('popcount(m)')).toEqual(I32);
  // To the last number that fits.
  expect(ofInt(`a[i] + ${2 ** 31 - 256}`)).toEqual([2 ** 31 - 256, 2 ** 31 - 1]);
  expect(ofInt(`a[i] + ${2 ** 31 - 255}`)).toEqual(I32);
});

test("a variable's range covers every assigned value", () => {
  expect(rangesOf('let v = a[i]; if (i > 3) v = b[i]; o[i] = v;')).toEqual([[-128, 255]]);
  expect(rangesOf('const v = a[i] + 1; const w = v * 2; o[i] = v; o[i] = w;')).toEqual([
    [1, 256],
    [2, 512],
  ]);
  expect(rangesOf('let v = i32(3); o[i] = v; v = v & 1; o[i] = v;')).toEqual([
    [0, 3],
    [0, 3],
  ]);
});

test('only a variable that grows in a loop has the full range', () => {
  expect(rangesOf('let v = i32(0); for (let k = 0; k < n; k++) v += a[k]; o[i] = v;')).toEqual([I32]);
  expect(rangesOf('let v = i32(0); for (let k = 0; k < n; k++) v = (v + a[k]) & 1023; o[i] = v;')).toEqual([[0, 1023]]);
  expect(rangesOf('let v = i32(5); for (let k = 0; k < n; k++) v = max(v, a[k]); o[i] = v;')).toEqual([[5, 255]]);
});

test("an arrow's parameter has the argument's range", () => {
  expect(rangesOf('const twice = (x) => x + x; o[i] = twice(a[i]); o[i] = twice(b[i]);')).toEqual([
    [0, 510],
    [-256, 254],
  ]);
});

test('only 32-bit integers have a range', () => {
  const ir = irOfText('({ f, o }, { i }) => { o[i] = i32(f[i] * 2); }', PARAMS, {}, {});
  const [stmt] = ir.body;
  const cast = expressionsOf(stmt!).at(-1)!;
  expect(cast.kind === 'cast' && new ValueRanges(ir).of(cast.operand)).toBeUndefined();
});

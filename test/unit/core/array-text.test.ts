// The text of arrays is NumPy's, digit by digit: numpy-texts.json has what NumPy printed (test/support/numpy-texts.py).
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type ArrayStyle, elementsOf, nestedOf, shownOf, textOf } from '../../../src/core/elements/array-text.js';
import { type DType, DTYPES, type HostArray } from '../../../src/core/elements/dtype.js';
import { floatText } from '../../../src/core/elements/float-text.js';
import { halfNumber } from '../../../src/core/elements/half-bits.js';

type Case = readonly [dtype: DType, shape: readonly number[], style: Partial<ArrayStyle>, data: string | null, text: string];
const { cases, hashes } = JSON.parse(readFileSync(new URL('numpy-texts.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Case[];
  readonly hashes: Readonly<Record<'f16' | 'f32' | 'f64', string>>;
};
const STYLE: ArrayStyle = { precision: 8, threshold: 1000, edgeItems: 3, lineWidth: 75, suppress: false };

/** The elements from 0 on, unless the case has others. */
function hostOf(dtype: DType, shape: readonly number[], data: string | null): HostArray {
  const { make, byteSize } = DTYPES[dtype];
  if (data !== null) return new make(new Uint8Array(Buffer.from(data, 'base64')).buffer);
  const length = shape.reduce((product, extent) => product * extent, 1);
  return (new make(new ArrayBuffer(length * byteSize)) as Float32Array).map((_, n) => n);
}

const printed = (dtype: DType, shape: readonly number[], host: HostArray, style: ArrayStyle = STYLE): string =>
  textOf(dtype, shape, shownOf(dtype, shape, host, style), style);

test('arrays of every shape and element type, numbers of every size, and every style', () => {
  expect(cases.length).toBeGreaterThan(350);
  const texts = cases.map(([dtype, shape, style, data]) => printed(dtype, shape, hostOf(dtype, shape, data), { ...STYLE, ...style }));
  expect(texts).toEqual(cases.map(([, , , , text]) => text));
});

test('all numbers of 16 bits, and the powers of two, have the fewest digits', () => {
  const hashOf = (texts: readonly string[]): string => createHash('sha256').update(texts.join('\n')).digest('hex');
  const powers = (low: number, high: number): number[] => Array.from({ length: high - low + 1 }, (_, n) => 2 ** (low + n));
  expect(hashOf(Array.from({ length: 65536 }, (_, bits) => floatText('f16', halfNumber(bits))))).toBe(hashes.f16);
  expect(hashOf(powers(-149, 127).map((value) => floatText('f32', value)))).toBe(hashes.f32);
  expect(hashOf(powers(-1074, 1023).map((value) => floatText('f64', value)))).toBe(hashes.f64);
});

test('bf16, which NumPy lacks, is printed like f16', () => {
  const bits = Uint16Array.of(0x3dcd, 0x3f80, 0xbf00, 0x4049, 0x7fc0, 0xff80, 0x8000);
  expect(printed('bf16', [7], bits)).toBe('[ 0.1   1.   -0.5   3.14   nan  -inf -0.  ]');
  expect(printed('bf16', [], Uint16Array.of(0x4780))).toBe('6.55e+04');
});

test('nested lists have the shape, and JavaScript values', () => {
  expect(nestedOf('f32', [2, 3], Float32Array.of(1, 2, 3, 4, 5, 6))).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  expect(nestedOf('i64', [1, 1, 2], BigInt64Array.of(1n, -2n))).toEqual([[[1n, -2n]]]);
  expect(nestedOf('bool', [2], Uint8Array.of(0, 1))).toEqual([false, true]);
  expect(nestedOf('f16', [], Uint16Array.of(0x3c00))).toBe(1);
  expect([nestedOf('u8', [0, 3], new Uint8Array()), nestedOf('u8', [2, 0], new Uint8Array())]).toEqual([[], [[], []]]);
  expect(elementsOf('bf16', Uint16Array.of(0x3f80))).toEqual([1]);
});

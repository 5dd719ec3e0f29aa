// Lists of numbers become the same elements as each number by itself, and a list with another value is refused with its place.
import { expect, test } from 'vitest';
import { DTYPES, type DType } from '../../../src/core/elements/dtype.js';
import { hostElement } from '../../../src/core/elements/scalar-bits.js';
import { storeNumbers } from '../../../src/core/elements/store-numbers.js';
import { thrownBy } from '../../support/wait.js';
import { fixture } from './fake-channel.js';

const NUMBERS: Readonly<Record<string, readonly number[]>> = {
  integers: [0, -0, 1, -1, 127, -128, 255, 32767, -32768, 65535, 2 ** 31 - 1, -(2 ** 31), 2 ** 32 - 1, 2 ** 32, -(2 ** 32) - 1],
  'large integers': [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 53, -(2 ** 53)],
  fractions: [0.5, 1 / 3, 1e300, 5e-324, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
};

const storedOne = (dtype: DType, value: unknown): number | bigint | undefined => {
  const host = new DTYPES[dtype].make(new ArrayBuffer(8), 0, 1);
  try {
    host[0] = hostElement(dtype, value, 'value') as never;
    return host[0];
  } catch {
    return undefined;
  }
};

test.each(Object.keys(DTYPES) as DType[])('%s: a list is stored if each of its numbers is, and as they are', (dtype) => {
  for (const value of Object.values(NUMBERS).flat()) {
    const one = storedOne(dtype, value);
    const host = new DTYPES[dtype].make(new ArrayBuffer(16), 0, 2);
    expect(storeNumbers(host, dtype, [1, value]), String(value)).toBe(one !== undefined);
    if (one !== undefined) expect([...host], String(value)).toEqual([storedOne(dtype, 1), one]);
  }
  for (const value of [true, '1', null, undefined, [1], {}]) expect(storeNumbers(new Float64Array(2), dtype, [1, value])).toBe(false);
});

test('from names the place of the value that the dtype cannot hold', () => {
  const { device } = fixture();
  const at = (list: unknown, dtype: DType): string => thrownBy(() => device.from(list as number[], { dtype })).message;
  expect(at([1, 2, 300], 'u8')).toContain('element 2 (300) exceeds the limit (255)');
  expect(at(Array(2), 'f16')).toContain('element 0 (undefined) is not a number');
  expect(at([1, '2'], 'f32')).toContain("element 1 ('2') is not a number");
  expect(at([0.5], 'i64')).toContain('element 0 (0.5) is not a whole number');
});

// Singly rounded products and sums in the oracle of the random kernels.
import { expect, test } from 'vitest';
import { F32, F64, fused } from '../../support/oracle/rounding.js';

const INFINITE = Number.POSITIVE_INFINITY;

test.each<[number, number, number, number]>([
  [2, 3, 4, 10],
  [1e300, -1e300, INFINITE, INFINITE],
  [1e300, 1e300, -INFINITE, -INFINITE],
  [1e200, 1e200, -1e308, INFINITE],
  [INFINITE, 1, -INFINITE, Number.NaN],
  [INFINITE, 0, 1, Number.NaN],
  [1, 1, Number.NaN, Number.NaN],
  [-0, 1, -0, -0],
  [-0, 1, 0, 0],
  [1 + 2 ** -52, 1 - 2 ** -53, -1, 2 ** -53 - 2 ** -105],
])('fma(%d, %d, %d) is %d', (a, b, c, expected) => {
  expect(fused(a, b, c, F64)).toBe(expected);
});

test('the oracle rounds to the format', () => {
  expect(fused(1, 1, 2 ** -30, F32)).toBe(1);
  expect(fused(2 ** 127, 2, 0, F32)).toBe(INFINITE);
});

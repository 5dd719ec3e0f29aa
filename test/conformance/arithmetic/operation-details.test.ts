// Chapter 11: comparisons and roundings at the limits of types, and arguments of a wrong kind.
import { describe, expect } from 'vitest';
import { ArgumentError } from 'millrace';
import * as ops from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { IS_LONG } from '../../support/long.js';
import { callOf } from '../../support/operation-cases.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

defineChapter((target) => {
  describe('11 operations on arrays: limits of types', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1103', 'signed and unsigned integers are compared exactly', async () => {
      const { device } = chapter;
      using signed = device.from(BigInt64Array.of(-1n, 2n ** 62n, 2n ** 62n + 1n, 0n));
      using unsigned = device.from(BigUint64Array.of(2n ** 64n - 1n, 2n ** 62n + 1n, 2n ** 62n + 1n, 0n));
      using small = device.from(Int8Array.of(-1, 1, 2, 0));
      const wanted = {
        equal: [0, 0, 1, 1],
        notEqual: [1, 1, 0, 0],
        less: [1, 1, 0, 0],
        lessEqual: [1, 1, 1, 1],
        greater: [0, 0, 0, 0],
        greaterEqual: [0, 0, 1, 1],
      } as const;
      const turned = {
        ...wanted,
        less: wanted.greater,
        greater: wanted.less,
        lessEqual: wanted.greaterEqual,
        greaterEqual: wanted.lessEqual,
      };
      // The short form has each comparison in one order, which takes turns.
      for (const [n, name] of (Object.keys(wanted) as (keyof typeof wanted)[]).entries()) {
        if (IS_LONG || n % 2 === 0) {
          using there = callOf(name)(signed, unsigned);
          expect([name, ...(await there.read())]).toEqual([name, ...wanted[name]]);
        }
        if (IS_LONG || n % 2 === 1) {
          using back = callOf(name)(unsigned, signed);
          expect([name, ...(await back.read())]).toEqual([name, ...turned[name]]);
        }
      }
      using less = ops.less(small, unsigned);
      expect([...(await less.read())]).toEqual([1, 1, 1, 0]);
    });

    rule('S1106', 'f64 is rounded once to 16 bits', async () => {
      const { device } = chapter;
      // Beside the middle of two numbers, by less than an f32 shows; then halves, the smallest numbers and the largest.
      const host = Float64Array.of(
        1 + 2 ** -11 + 2 ** -40,
        1 + 3 * 2 ** -11 - 2 ** -40,
        -1 - 2 ** -11 - 2 ** -40,
        1 + 2 ** -11,
        2 ** -25 + 2 ** -60,
        1e300,
        -0,
        Number.NaN,
      );
      using x = device.from(host);
      using half = ops.astype(x, 'f16');
      using back = ops.astype(half, 'f64');
      expect([...(await back.read())]).toEqual([1 + 2 ** -10, 1 + 2 ** -10, -1 - 2 ** -10, 1, 2 ** -24, Infinity, -0, Number.NaN]);
      using brain = ops.astype(ops.astype(device.from(Float64Array.of(1 + 2 ** -8 + 2 ** -40, 1 + 2 ** -8)), 'bf16'), 'f64');
      expect([...(await brain.read())]).toEqual([1 + 2 ** -7, 1]);
    });

    rule('S1106', 'wide integers are rounded once to 16 bits', async () => {
      const { device } = chapter;
      // Beside the middle of two numbers of 8 bits, by less than an f64 of this size shows; then the middle itself.
      const middle = 2n ** 62n + 2n ** 54n;
      using x = device.from(BigInt64Array.of(middle + 1n, middle - 1n, -middle - 1n, 1n - middle, middle, 2n ** 54n + 1n, -7n));
      using brain = ops.astype(ops.astype(x, 'bf16'), 'f64');
      const [low, high] = [2 ** 62, 2 ** 62 + 2 ** 55];
      expect([...(await brain.read())]).toEqual([high, low, -high, -low, low, 2 ** 54, -7]);
      using u = device.from(BigUint64Array.of(2n ** 63n + 2n ** 55n + 1n, 2n ** 63n + 2n ** 55n, 2n ** 64n - 1n));
      using wide = ops.astype(ops.astype(u, 'bf16'), 'f64');
      expect([...(await wide.read())]).toEqual([2 ** 63 + 2 ** 56, 2 ** 63, 2 ** 64]);
    });

    rule('S1105', 'arguments of a wrong kind are refused with the remedy', () => {
      const { device } = chapter;
      using x = device.zeros(2);
      expect(() => ops.elementwise('a + 1' as never)).toThrow(ArgumentError);
      expect(() => ops.elementwise(undefined as never)).toThrow(/not a function.*elementwise\(\(a, b\)/);
      expect(() => ops.sum(x, { keepDims: 1 as never })).toThrow(/keepDims \(1\) is neither true nor false/);
      // @ts-expect-error Two numbers are no operation on arrays.
      expect(() => ops.add(1, 2)).toThrow(ArgumentError);
    });
  });
});

// Chapter 11: what operations on arrays refuse, with the value, the limit and the remedy, by the names that the caller wrote.
import { describe, expect } from 'vitest';
import { ArgumentError, type Device, type DeviceArray } from 'millrace';
import * as ops from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf, type RuleNumber } from '../../support/rule.js';

type Any = (...args: readonly unknown[]) => unknown;
/** The operations without their types, which refuse most of these calls. */
const any = ops as unknown as Readonly<Record<string, Any>>;
const numbers = ops.generator(1) as unknown as Readonly<Record<string, Any>>;

/** Arrays by their shapes and types. */
function arraysOn(device: Device): Readonly<Record<string, DeviceArray>> & Disposable {
  const made = {
    x: device.zeros([2, 3]),
    v: device.zeros(4),
    s: device.zeros([]),
    n: device.zeros(3, 'i32'),
    small: device.zeros([2, 3], 'i8'),
    none: device.zeros([2, 0]),
    z: device.zeros([3, 2]),
    flags: device.zeros(2, 'bool'),
    deep: device.zeros([1, 1, 1, 1, 1, 1, 1, 1]),
  } as const;
  return { ...made, [Symbol.dispose]: () => Object.values(made).forEach((one) => one[Symbol.dispose]()) } as never;
}

type Call = (arrays: Readonly<Record<string, DeviceArray>>, device: Device) => unknown;
const REFUSED: readonly (readonly [RuleNumber, Call, message: RegExp])[] = [
  ['S1112', ({ x }) => any['sort']!(x, { axis: 2 }), /axis \(2\).*2 dimensions \(-2 to 1\)/],
  ['S1112', ({ none }) => any['sort']!(none, { axis: 5 }), /axis \(5\)/],
  ['S1112', ({ s }) => any['argsort']!(s, { axis: 3 }), /axis \(3\)/],
  ['S1112', ({ x }) => any['sort']!(x, { descending: 1 }), /descending \(1\) is neither true nor false/],
  ['S1112', () => any['sort']!(3), /Operand 0 of sort \(3\) is no device array: device\.from/],
  ['S1112', ({ x }) => any['topk']!(x, 4), /k \(4\) exceeds the limit \(3\)/],
  ['S1112', ({ x }) => any['topk']!(x, 1, { dtype: 'f64' }), /no option 'dtype'/],
  ['S1112', ({ v }) => any['searchSorted']!(v, 3), /Operand 1 of searchSorted \(3\)/],
  ['S1112', ({ v, n }) => any['searchSorted']!(v, n), /astype\(\) them/],
  ['S1113', ({ none }) => any['cumsum']!(none, { axis: -3 }), /axis \(-3\)/],
  ['S1114', ({ x }) => any['concatenate']!(x), /concatenate\(\[a, b\]\)/],
  ['S1114', ({ s }) => any['concatenate']!([s, s]), /axis \(0\).*no dimensions/],
  ['S1114', ({ x }) => any['stack']!([x, 3]), /Operand 1 of stack \(3\)/],
  ['S1114', ({ deep }) => any['stack']!([deep, deep]), /stack has more dimensions \(9\).*\(8\)/],
  ['S1114', ({ x }) => any['split']!(x, '2'), /parts of split \('2'\)/],
  ['S1114', ({ x }) => any['split']!(x, 1, { out: x }), /no option 'out'/],
  ['S1114', ({ x }) => any['take']!(x, 1), /Operand 1 of take \(1\)/],
  ['S1114', ({ none, n }) => any['take']!(none, n, { axis: 1 }), /axis 1 of take \(f32\[2, 0\]\) has no elements/],
  ['S1121', ({ none, n }) => any['put']!(none, n, 1, { axis: 1 }), /axis 1 of put \(f32\[2, 0\]\) has no elements/],
  ['S1121', ({ small, n }) => any['put']!(small, n, 300), /300.*i8 \(-128 to 127\)/],
  ['S1115', ({ n }) => any['binCount']!(n, 2 ** 31), /binCount.*more elements \(2147483648\).*\(2147483647\)/],
  ['S1115', ({ x }) => any['histogram']!(x, 3, { range: [0, 1, 2] }), /range of histogram \(\[0, 1, 2\]\)/],
  ['S1115', ({ x }) => any['histogram']!(x, 3, { range: [-1e308, 1e308] }), /finite distance/],
  ['S1109', (_, device) => any['arange']!(1, 2, 3, 4, { device }), /numbers of arange \(4\) exceeds the limit \(3\)/],
  ['S1109', (_, device) => any['arange']!(0, 300, { device, dtype: 'i8' }), /up to 299.*i8 \(-128 to 127\)/],
  ['S1109', (_, device) => any['linspace']!(-1e308, 1e308, 3, { device }), /distance of linspace/],
  ['S1109', (_, device) => any['eye']!(2 ** 20, 2 ** 20, { device }), /eye.*more elements/],
  ['S1110', (_, device) => numbers['integers']!(0, 300, 2, { device, dtype: 'u8' }), /up to 299.*u8 \(0 to 255\)/],
  ['S1110', (_, device) => numbers['integers']!(-5, 5, 2, { device, dtype: 'u8' }), /up to -5.*u8/],
  ['S1110', (_, device) => numbers['normal']!(3, { device, deviation: -1 }), /deviation \(-1\) is below the minimum \(0\)/],
  ['S1110', (_, device) => numbers['uniform']!(3, { device, low: -1e308, high: 1e308 }), /Infinity/],
  ['S1111', ({ x }) => any['matmul']!(x, 2), /Operand 1 of matmul \(2\)/],
  ['S1111', ({ x }) => any['dot']!(x, x), /inner sizes of dot differ/],
  ['S1119', ({ z, v }) => any['magnitude']!(z, { out: v }), /result of magnitude/],
  ['S1119', ({ deep }) => any['complex']!(deep), /complex has more dimensions \(9\)/],
  ['S1119', ({ flags }) => any['complex']!(flags), /complex is not defined for elements of bool: astype\(\)/],
  ['S1119', ({ flags }) => any['complex']!(flags, 0.5), /complex is not defined for elements of bool: astype\(\)/],
  ['S1120', ({ small }) => any['convolve2d']!(small, small, { fillValue: 300 }), /300.*i8 \(-128 to 127\)/],
  ['S1118', (_, device) => any['fft']!(device.zeros(2)), /axis \(-1\).*no dimensions/],
  ['S1106', ({ x }) => any['astype']!(x), /dtype of astype \(undefined\) is missing/],
];

defineChapter((target) => {
  describe('11 operations on arrays: what is refused', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const [number, call, message] of REFUSED) {
      rule(number, `refuses ${String(call).replace(/^.*any\['(\w+)'\]!|^.*numbers\['(\w+)'\]!/, '$1$2')}`, () => {
        using arrays = arraysOn(chapter.device);
        let error: unknown;
        try {
          call(arrays, chapter.device);
        } catch (thrown) {
          error = thrown;
        }
        expect(error).toBeInstanceOf(ArgumentError);
        expect((error as Error).message).toMatch(message);
        // No name of a parameter of a kernel.
        expect((error as Error).message).not.toMatch(/\bx\d|of kernel/);
      });
    }

    rule('S1116', 'compact and unique name their options, and refuse numbers', async () => {
      using arrays = arraysOn(chapter.device);
      const { x } = arrays;
      await expect(any['compact']!(x, 1)).rejects.toThrow(/Operand 1 of compact \(1\)/);
      await expect(any['compact']!(x, x, { axis: 1 })).rejects.toThrow(
        /no option 'axis'; the options are stream, device, signal, timeoutMs/,
      );
      await expect(any['unique']!(x, { out: x })).rejects.toThrow(ArgumentError);
    });

    rule('S1104', 'sorts and counts give the type that the options name', async () => {
      const { device } = chapter;
      using x = device.from([3, 1, 2]);
      using sorted = ops.sort(x, { dtype: 'f64' });
      using order = ops.argsort(x, { dtype: 'u8' });
      using counts = device.zeros(3, 'i64');
      expect(ops.binCount(order, 3, { out: counts as never })).toBe(counts);
      expect([sorted.dtype, ...(await sorted.read())]).toEqual(['f64', 1, 2, 3]);
      expect([order.dtype, ...(await order.read())]).toEqual(['u8', 1, 2, 0]);
      expect([...(await counts.read())]).toEqual([1n, 1n, 1n]);
    });

    rule('S1111', 'products are computed in a wider type of the result', async () => {
      const { device } = chapter;
      using bytes = device.from(Int8Array.of(100, 100), { shape: [1, 2] });
      using product = ops.matmul(bytes, bytes.transpose(), { dtype: 'i32' });
      using sums = ops.convolve2d(bytes, bytes, { dtype: 'i32' });
      expect([...(await product.read()), ...(await sums.read())]).toEqual([20_000, 10_000, 20_000, 10_000]);
      using z = device.from(Int8Array.of(100, 50), { shape: [1, 2] });
      using square = ops.complexMultiply(z, z, { dtype: 'i32' });
      expect([...(await square.read())]).toEqual([7500, 10_000]);
    });

    rule('S1106', 'integers of 64 bits go into 32 bits without a look behind the array', async () => {
      const { device } = chapter;
      for (let length = 1; length <= 17; length++) {
        const host = BigInt64Array.from({ length }, (_, n) => BigInt(n) * 0x1_0000_0003n - 5n);
        using x = device.from(host);
        using words = ops.astype(x, 'i32');
        expect(await words.read()).toEqual(Int32Array.from(host, (value) => Number(BigInt.asIntN(32, value))));
      }
    });

    rule('S1106', 'results are rounded once to 16 bits', async () => {
      const { device } = chapter;
      // Beside the middle of two numbers of 11 bits, by less than an f32 shows.
      const beside = 1 + 2 ** -11 + 2 ** -40;
      const above = 1 + 2 ** -10;
      using x = device.from(Float64Array.of(beside), { shape: [1, 1] });
      using one = device.ones([1, 1], 'f64');
      using indices = device.zeros(1, 'i32');
      const half = { dtype: 'f16' } as const;
      for (const [n, made] of [
        ops.matmul(x, one, half),
        ops.matmul(x.view(0), one.view(0), half),
        ops.convolve2d(x, one, half),
        ops.irfft(ops.complex(x.view(0)), { length: 1, ...half }),
        ops.arange(beside, 2, 1, { device, ...half }),
        ops.linspace(beside, 2, 1, { device, ...half }),
        ops.put(device.zeros([1, 1], 'f16'), indices, x),
        ops.put(device.zeros([1, 1], 'f16'), indices, beside),
      ].entries()) {
        using result: DeviceArray = made;
        using back = ops.astype(result, 'f64');
        expect([n, ...(await back.read())]).toEqual([n, above]);
      }
      using words = device.from(Int32Array.of(0x101_0001, -0x101_0001));
      using back = ops.astype(ops.astype(words, 'bf16'), 'f64');
      expect([...(await back.read())]).toEqual([0x102_0000, -0x102_0000]);
    });

    rule('S1118', 'nothing, padded to a length, is zeros', async () => {
      using y = ops.rfft(chapter.device.zeros(0), { length: 4 });
      expect([y.shape, ...(await y.read())]).toEqual([[3, 2], 0, 0, 0, 0, 0, 0]);
    });

    rule('S1109', 'linspace ends with its limit, and goes down to integers', async () => {
      const { device } = chapter;
      using parts = ops.linspace(0, 1, 50, { device, dtype: 'f64' });
      using whole = ops.linspace(-1.5, 1, 3, { device, dtype: 'i32' });
      expect((await parts.read())[49]).toBe(1);
      expect([...(await whole.read())]).toEqual([-2, -1, 1]);
      using ones = ops.eye(2, { device, dtype: 'i32' });
      expect([...(await ones.read())]).toEqual([1, 0, 0, 1]);
    });

    rule('S1115', 'bins are between the limits that NumPy gives', async () => {
      // The quotient by the width of a bin would be 3 for both, and 2.9999999999999996.
      using x = chapter.device.from(Float64Array.of(0.3, 0.30000000000000004, 0.25));
      expect([...(await ops.histogram(x, 10, { range: [0, 1] }).read())]).toEqual([0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
      expect([...(await ops.histogram(x.view([2, 3]), 6, { range: [0.1, 0.4] }).read())]).toEqual([0, 0, 0, 1, 0, 0]);
    });
  });
});

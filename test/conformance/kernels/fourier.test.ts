// Chapter 11: complex numbers, Fourier transforms, convolutions, `put` and `dot`. The values of the tables are NumPy's (2.4).
import { describe, expect } from 'vitest';
import { ArgumentError, UpstreamError } from 'millrace';
import * as ops from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { IS_LONG } from '../../support/long.js';
import { randomFrom } from '../../support/random-text.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { pickedTexts } from '../../support/target.js';

/** The transform by its definition. */
function spectrumOf(values: readonly number[]): number[] {
  const count = values.length / 2;
  const [cosines, sines] = [Math.cos, Math.sin].map((of) => Float64Array.from({ length: count }, (_, n) => of((-2 * Math.PI * n) / count)));
  return Array.from({ length: count }, (_, k) => {
    let [re, im] = [0, 0];
    for (let j = 0; j < count; j++) {
      const [c, s] = [cosines![(j * k) % count]!, sines![(j * k) % count]!];
      re += values[2 * j]! * c - values[2 * j + 1]! * s;
      im += values[2 * j]! * s + values[2 * j + 1]! * c;
    }
    return [re, im];
  }).flat();
}

/** The distance of numbers from others, relative to these. */
function errorOf(own: ArrayLike<number>, wanted: readonly number[]): number {
  const sizeOf = (list: readonly number[]): number => Math.hypot(...list);
  return own.length === wanted.length ? sizeOf(wanted.map((value, n) => value - own[n]!)) / sizeOf(wanted) : Infinity;
}

const Z = [1, 2, 3, -1, 0.5, 0, -2, 4, 0, 1, 7, 0];
const X = [1, 4, 2, 8, 5, 7, 1];
const H = [1, 5, 2, -1, 0, 3, 4, 2];

defineChapter((target) => {
  describe('11 Fourier transforms', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1118', 'transforms have the values of NumPy', async () => {
      const { device } = chapter;
      using z = device.from(Z, { shape: [6, 2] });
      using x = device.from(X);
      using h = device.from(H, { shape: [4, 2] });
      using m = device.from([0, 1, 4, 9, 16, 25], { shape: [2, 3] });
      for (const [make, shape, wanted] of pickedTexts(target, [
        [() => ops.fft(z), [6, 2], [9.5, 6, 6.017949, 0.031089, -6.25, 9.897114, -6.5, 0, -6.25, 2.102886, 9.482051, -6.031089]],
        [() => ops.fft(z, { length: 4, norm: 'ortho' }), [4, 2], [1.25, 2.5, -2.25, -1.5, 0.25, -0.5, 2.75, 3.5]],
        [() => ops.ifft(ops.fft(z)), [6, 2], Z],
        [() => ops.rfft(x), [4, 2], [28, 0, -9.597835, 1.227494, -0.115957, -2.748708, -0.786208, -8.135592]],
        [
          () => ops.rfft(x, { length: 9, norm: 'forward' }),
          [5, 2],
          [3.111111, 0, -1.26276, -1.1021, 0.50086, 0.017037, 0.111111, 0, -0.404767, -0.901589],
        ],
        [() => ops.irfft(h), [6], [1.5, -0.744017, 1.654701, -1.166667, -0.654701, 0.410684]],
        [() => ops.irfft(h, { length: 7 }), [7], [1.857143, -1.390747, 1.825474, -0.389285, -0.863298, -0.36895, 0.329664]],
        [() => ops.rfft(m, { axis: [0, 1] }), [2, 2, 2], [55, 0, -14, 10.392305, -45, 0, 9, -5.196152]],
        [() => ops.rfft(m, { axis: [1, 0] }), [2, 3, 2], [55, 0, -14, 10.392305, -14, -10.392305, -45, 0, 9, -5.196152, 9, 5.196152]],
        [() => ops.irfft(ops.rfft(m, { axis: [1, 0] }), { axis: [1, 0], length: [3, 2] }), [2, 3], [0, 1, 4, 9, 16, 25]],
      ] as const)) {
        const made = make();
        expect([made.dtype, made.shape]).toEqual(['f32', shape]);
        expect(errorOf(await made.read(), wanted)).toBeLessThan(1e-6);
        made[Symbol.dispose]();
      }
    });

    // A chirp of two passes, and in f64 one pass, whose kernels are large; on a GPU, also one of all factors; in the long form, three passes, prime lengths, and two passes around a chirp.
    const LENGTHS = IS_LONG
      ? [1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 49, 97, 210, 1000, 1009, 2048, 2100, 4096, 5000]
      : target.name === 'cuda'
        ? [13, 210]
        : [13];
    rule(
      'S1118',
      'transforms of every length are those of the definition',
      async () => {
        const { device } = chapter;
        const random = randomFrom(5);
        // The sums of the definition are themselves off by some 1e-15.
        for (const [dtype, limit, backLimit, of] of [
          ['f32', 6e-7, 1e-6, Float32Array],
          ['f64', 4e-15, 1e-15, Float64Array],
        ] as const) {
          for (const length of dtype === 'f32' || IS_LONG ? LENGTHS : [30]) {
            const host = of.from(Array.from({ length: 2 * 2 * length }, () => random(2 ** 20) / 2 ** 20 - 0.5));
            using z = device.from(host, { shape: [2, length, 2] });
            using y = ops.fft(z);
            const wanted = [0, 1].flatMap((at) => spectrumOf([...host.subarray(2 * length * at, 2 * length * (at + 1))]));
            expect([dtype, length, errorOf(await y.read(), wanted) < limit]).toEqual([dtype, length, true]);
            // The inverse has the passes of the other, whose parts it swaps: the short form has it of f64, the random cases of chirps.
            if (dtype === 'f32' && !IS_LONG) continue;
            using back = ops.ifft(y);
            expect([dtype, length, errorOf(await back.read(), [...host]) < backLimit]).toEqual([dtype, length, true]);
          }
        }
      },
      { timeoutMs: IS_LONG ? 1_200_000 : 120_000 },
    );

    rule('S1118', 'along any axis, of any strides, into any array', async () => {
      const { device } = chapter;
      const random = randomFrom(6);
      const host = Float32Array.from({ length: 2 * 6 * 5 }, () => random(100) - 50);
      using z = device.from(host, { shape: [6, 5, 2] });
      using turned = ops.fft(z.transpose([1, 0, 2]), { axis: 0 });
      using plain = ops.fft(z);
      const column = (values: ArrayLike<number>, at: number): number[] => Array.from({ length: 10 }, (_, n) => values[10 * at + n]!);
      const [own, other] = await Promise.all([turned.transpose([1, 0, 2]).read(), plain.read()]);
      for (let at = 0; at < 6; at++) {
        expect(errorOf(column(own, at), spectrumOf(column(host, at)))).toBeLessThan(4e-7);
        expect(errorOf(column(other, at), spectrumOf(column(host, at)))).toBeLessThan(4e-7);
      }
      ops.fft(z, { out: z });
      expect([...(await z.read())]).toEqual([...other]);
      using empty = device.zeros([0, 5, 2]);
      using none = ops.fft(empty);
      expect([none.shape, none.length]).toEqual([[0, 5, 2], 0]);
    });

    rule('S1118', 'types and wrong arguments', () => {
      const { device } = chapter;
      using z = device.zeros([4, 2]);
      const typeOf = (dtype: 'f16' | 'bf16' | 'i8' | 'bool' | 'f64'): string => {
        using none = ops.fft(device.zeros([0, 4, 2], dtype));
        return none.dtype;
      };
      expect((['f16', 'bf16', 'i8', 'bool', 'f64'] as const).map(typeOf)).toEqual(['f32', 'f32', 'f64', 'f64', 'f64']);
      for (const call of [
        () => ops.fft(device.zeros(4)),
        () => ops.fft(device.zeros(2)),
        () => ops.fft(z, { axis: 1 }),
        () => ops.fft(z, { axis: [0, -1] }),
        () => ops.fft(z, { axis: [] }),
        () => ops.fft(z, { length: 0 }),
        () => ops.fft(z, { length: [2, 2] }),
        () => ops.fft(z, { norm: 'forwards' as never }),
        () => ops.fft(z, { n: 3 } as never),
        () => ops.irfft(device.zeros([1, 2])),
        () => ops.rfft(device.zeros(0)),
        () => ops.fft(z, { out: device.zeros([4, 2], 'i32') as never }),
      ]) {
        expect(call).toThrow(ArgumentError);
      }
    });

    rule('S1118', 'in a capture and on explicit streams, also as the first call of a length', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using z = device.from(
        Array.from({ length: 2 * 12 }, (_, n) => n % 5),
        { shape: [12, 2] },
      );
      using captured = device.zeros([12, 2]);
      const graph = stream.capture((s) => {
        ops.fft(z, { out: captured, stream: s });
      });
      stream.launch(graph);
      stream.launch(graph);
      const wanted = spectrumOf(Array.from({ length: 2 * 12 }, (_, n) => n % 5));
      expect(errorOf(await captured.read(), wanted)).toBeLessThan(4e-7);
      const [one, other] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      for (const each of [one, stream, other]) {
        using own = ops.fft(z, { stream: each });
        expect(errorOf(await own.read(), wanted)).toBeLessThan(4e-7);
      }
      await graph.close();
      for (const each of [stream, one, other]) await each.close();
    });

    rule('S1119', 'complex numbers are a last axis of two', async () => {
      const { device } = chapter;
      using re = device.from([3, 0, -1]);
      using im = device.from([4, 2, 0]);
      using z = ops.complex(re, im);
      expect([z.shape, ...(await z.read())]).toEqual([[3, 2], 3, 4, 0, 2, -1, 0]);
      // The other functions are in arithmetic/shaped-operations.test.ts.
      ops.complexMultiply(z, z, { out: z });
      expect([...(await z.read())]).toEqual([-7, 24, -4, 0, 1, -0]);
      expect(() => ops.real(re)).toThrow(/last axis of 2.*complex\(\)/);
      expect(() => ops.complexMultiply(z, re)).toThrow(ArgumentError);
      // A circular convolution.
      using product = ops.irfft(ops.complexMultiply(ops.rfft(device.from([1, 2, 3, 4])), ops.rfft(device.from([1, 0, 0, 1]))));
      expect(errorOf(await product.read(), [3, 5, 7, 5])).toBeLessThan(1e-6);
    });

    rule('S1120', 'convolutions have the values of SciPy', async () => {
      const { device } = chapter;
      using a = device.from(
        Int32Array.from({ length: 12 }, (_, n) => n + 1),
        { shape: [3, 4] },
      );
      using k = device.from(Int32Array.of(1, 2, 3, -4, 0, 1), { shape: [3, 2] });
      for (const [mode, boundary, fillValue, wanted] of [
        ['full', 'fill', 0, [1, 4, 7, 10, 8, 8, 18, 20, 22, 0, 24, 27, 30, 33, -4, 27, -1, -1, -1, -40, 0, 9, 10, 11, 12]],
        ['full', 'wrap', 0, [-4, 3, 6, 9, -4, 20, 27, 30, 33, 20, 20, 27, 30, 33, 20, -4, 3, 6, 9, -4, 20, 27, 30, 33, 20]],
        ['full', 'symm', 0, [7, 11, 14, 17, 16, 15, 19, 22, 25, 24, 23, 27, 30, 33, 32, 23, 27, 30, 33, 32, 15, 19, 22, 25, 24]],
        ['same', 'fill', 5, [3, 23, 25, 27, 19, 27, 30, 33, 27, 14, 14, 14]],
        ['same', 'wrap', 0, [20, 27, 30, 33, 20, 27, 30, 33, -4, 3, 6, 9]],
        ['valid', 'symm', 0, [27, 30, 33]],
      ] as const) {
        using c = ops.convolve2d(a, k, { mode, boundary, fillValue });
        expect([c.dtype, mode, boundary, ...(await c.read())]).toEqual(['i32', mode, boundary, ...wanted]);
      }
      // A kernel of several pieces, and more than one block.
      const [rows, columns, high, wide] = [40, 50, 19, 18];
      const image = Int32Array.from({ length: rows * columns }, (_, n) => (n * 7) % 11);
      const weights = Int32Array.from({ length: high * wide }, (_, n) => (n % 5) - 2);
      using large = device.from(image, { shape: [1, rows, columns] });
      using c = ops.convolve2d(large, device.from(weights, { shape: [high, wide] }), { mode: 'valid', boundary: 'fill' });
      const own = await c.read();
      const [outRows, outColumns] = [rows - high + 1, columns - wide + 1];
      const wanted = Int32Array.from({ length: outRows * outColumns }, (_, n) => {
        let sum = 0;
        for (let p = 0; p < high; p++) {
          for (let q = 0; q < wide; q++) {
            const [row, column] = [Math.trunc(n / outColumns) + high - 1 - p, (n % outColumns) + wide - 1 - q];
            sum += weights[p * wide + q]! * image[row * columns + column]!;
          }
        }
        return sum;
      });
      expect(Buffer.from(own.buffer).equals(Buffer.from(wanted.buffer))).toBe(true);
      for (const call of [
        () => ops.convolve2d(a, a, { mode: 'half' as never }),
        () => ops.convolve2d(a, a, { boundary: 'symmetric' as never }),
        () => ops.convolve2d(k, a, { mode: 'valid' }),
        () => ops.convolve2d(a, k, { fillValue: 0.5 }),
        () => ops.convolve2d(a, k.view(0)),
        () => ops.convolve2d(a, device.zeros([0, 2])),
      ]) {
        expect(call).toThrow(ArgumentError);
      }
    });

    rule('S1121', 'put writes to places by number, and the last of equal numbers wins', async () => {
      const { device } = chapter;
      using a = device.zeros([2, 5]);
      const numbers = Int32Array.of(4, 0, -1, 0);
      expect(ops.put(a, device.from(numbers), device.from([1, 2, 3, 4]), { axis: 1 })).toBe(a);
      expect([...(await a.read())]).toEqual([4, 0, 0, 0, 3, 4, 0, 0, 0, 3]);
      ops.put(a.transpose(), device.from(Int32Array.of(1)), 9);
      expect([...(await a.read())]).toEqual([4, 9, 0, 0, 3, 4, 9, 0, 0, 3]);
      // Many equal numbers, by NumPy's rule.
      const [length, count] = [50, 5000];
      const places = Int32Array.from({ length: count }, (_, n) => (n * n) % length);
      const wanted = new Int32Array(length).fill(-1);
      for (const [n, place] of places.entries()) wanted[place] = n;
      using b = device.full(length, -1, 'i32');
      ops.put(b, device.from(places), ops.arange(count, { device }));
      expect([...(await b.read())]).toEqual([...wanted]);
      // The values are the array's own.
      using c = device.from([1, 2, 3, 4]);
      ops.put(c, device.from(Int32Array.of(3, 2, 1, 0)), c);
      expect([...(await c.read())]).toEqual([4, 3, 2, 1]);
      ops.put(c, device.zeros(0, 'i32'), 1);
      expect([...(await c.read())]).toEqual([4, 3, 2, 1]);
      for (const call of [
        () => ops.put(b, device.from(places), 0.5),
        () => ops.put(b, a as never, 1),
        () => ops.put(b, device.from(places), device.zeros(3, 'i32')),
        () => ops.put(c, device.from(places), 1, { out: c } as never),
        () => ops.put(c, device.from(places), 1, { axis: 1 }),
      ]) {
        expect(call).toThrow(ArgumentError);
      }
    });

    rule('S1121', 'an index outside fails put and take', async () => {
      const { device } = chapter;
      for (const outside of [
        device.from(Int32Array.of(1, 4)),
        device.from(BigUint64Array.of(2n ** 32n)),
        device.from(BigUint64Array.of(2n ** 64n - 1n)),
      ]) {
        using a = device.zeros(4);
        ops.put(a, outside as never, 1);
        const failure: unknown = await a.read().catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(UpstreamError);
        expect(failure).toMatchObject({ cause: { code: 'ERR_MILLRACE_BOUNDS', limit: 4 } });
        await expect(ops.take(device.zeros(4), outside as never).read()).rejects.toMatchObject({
          cause: { code: 'ERR_MILLRACE_BOUNDS', limit: 4 },
        });
      }
    });

    rule('S1111', 'dot multiplies numbers, vectors and matrices as NumPy does', async () => {
      const { device } = chapter;
      using v = device.from([1, 2, 3]);
      expect(await ops.dot(v, v).item()).toBe(14);
      expect([...(await ops.dot(v, 2).read())]).toEqual([2, 4, 6]);
      using a = device.from([1, 2, 3, 4, 5, 6], { shape: [2, 3] });
      expect([...(await ops.dot(a, v).read())]).toEqual([14, 32]);
      using b = device.from(
        Array.from({ length: 2 * 3 * 2 }, (_, n) => n),
        { shape: [2, 3, 2] },
      );
      using c = ops.dot(a, b);
      // numpy.dot(a, b), of which a @ b has only the diagonal.
      expect([c.shape, ...(await c.read())]).toEqual([[2, 2, 2], 16, 22, 52, 58, 34, 49, 124, 139]);
      expect(() => ops.dot(a, a)).toThrow(ArgumentError);
    });
  });
});

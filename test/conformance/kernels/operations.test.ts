// Chapter 11: operations on arrays. What they compute is the subject of arithmetic/operations.test.ts.
import { firstValueFrom, from as observe, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import { ArgumentError, BoundsError, CompileError, type DeviceArray, f32, overlap, UpstreamError } from 'millrace';
import * as ops from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { stray } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { pickedTexts } from '../../support/target.js';
import { rejectionOf } from '../../support/wait.js';

const axpb = ops.elementwise((a: number, x: number, b: number) => a * x + b);

defineChapter((target) => {
  describe('11 operations on arrays', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1101', 'runs on the stream that is named, else on the current one, in order', async () => {
      const { device } = chapter;
      const [one, other] = [device.createStream(), device.createStream()];
      using x = one.from([1, 2, 3]);
      using y = ops.add(x, 1, { stream: other });
      using z = one.run(() => ops.multiply(y, x));
      expect(await z.read()).toEqual(Float32Array.of(2, 6, 12));
      await one.close();
      await other.close();
    });

    rule('S1101', 'a result of a failed operand is poisoned', async () => {
      const { device } = chapter;
      using x = device.zeros(4);
      const failure = rejectionOf(device.stream.launch(stray, 4, { x, by: 1 }).done);
      using y = ops.sum(ops.add(x, 1, { out: x }));
      await expect(y.read()).rejects.toThrow(UpstreamError);
      expect(await failure).toBeInstanceOf(BoundsError);
    });

    rule('S1101', 'in a pipeline, a lane runs it and owns its result', async () => {
      const { device } = chapter;
      const run = overlap(device, [1, 2, 3], { depth: 2 }, (n, lane) => ops.add(lane.full(2, n), 10, { stream: lane }).read());
      const results = await firstValueFrom(observe(run).pipe(toArray()));
      expect(results.map((one) => [...one])).toEqual([
        [11, 11],
        [12, 12],
        [13, 13],
      ]);
    });

    rule('S1102', 'operands of any strides broadcast', async () => {
      const { device } = chapter;
      using x = device.from([1, 2, 3, 4, 5, 6], { shape: [2, 3] });
      using column = device.from([10, 20, 30], { shape: [3, 1] });
      using y = ops.add(x.transpose(), column);
      expect([...(await y.read())]).toEqual([11, 14, 22, 25, 33, 36]);
      using z = ops.subtract(x.view([undefined, undefined, -1], 1), 1);
      expect([...(await z.read())]).toEqual([4, 1]);
    });

    rule('S1102', 'wrong operands are refused at the call', () => {
      const { device } = chapter;
      using x = device.zeros([2, 3]);
      using y = device.zeros(2);
      for (const call of [
        () => ops.add(x, y),
        () => ops.add(1, 2 as never),
        () => ops.add(x, 'one' as never),
        () => ops.add(x, undefined as never),
        () => (ops.add as (...args: unknown[]) => unknown)(x),
        () => ops.add(x, x, { stream: device as never }),
        () => (ops.add as (...args: unknown[]) => unknown)(x, x, { on: device.stream }),
        () => ops.add(x, 1, { stream: 'default' as never }),
        () => ops.astype(x, 'float32' as never),
      ]) {
        expect(call).toThrow(ArgumentError);
      }
    });

    rule('S1103', 'types are promoted as by NumPy', async () => {
      const { device } = chapter;
      using bytes = device.from(Uint8Array.of(250, 5));
      using signed = device.from(Int8Array.of(-1, 5));
      using half = device.from([0.5, 2], { dtype: 'f16' });
      using words = device.from(Int32Array.of(1, 2));
      const typeOf = (a: { readonly dtype: string } & Disposable): string => {
        a[Symbol.dispose]();
        return a.dtype;
      };
      expect(typeOf(ops.add(bytes, signed))).toBe('i16');
      expect(typeOf(ops.add(bytes, 5))).toBe('u8');
      expect(typeOf(ops.add(bytes, 0.5))).toBe('f64');
      expect(typeOf(ops.multiply(half, bytes))).toBe('f16');
      expect(typeOf(ops.divide(words, 2))).toBe('f64');
      expect(typeOf(ops.sum(bytes))).toBe('u64');
      expect(() => ops.add(bytes, 256)).toThrow(/256.*u8.*0 to 255/);
      using wrapped = ops.add(bytes, 10);
      expect([...(await wrapped.read())]).toEqual([4, 15]);
    });

    rule('S1103', 'numbers of every kind stand for operands', async () => {
      const { device } = chapter;
      using x = device.from([1, 2]);
      using words = device.from(Int32Array.of(1, 2));
      using wide = device.from(BigInt64Array.of(1n, 2n));
      using half = device.from([0.1, 2], { dtype: 'f16' });
      using yes = device.from(Uint8Array.of(0, 1), { dtype: 'bool' });
      using weights = device.from(Float32Array.of(0, Number.NaN));
      for (const [make, dtype, wanted] of pickedTexts(target, [
        [() => ops.add(x, true), 'f32', [2, 3]],
        [() => ops.add(x, 2n), 'f32', [3, 4]],
        [() => ops.add(words, true), 'i32', [2, 3]],
        [() => ops.add(2n, words), 'i32', [3, 4]],
        [() => ops.add(wide, 2), 'i64', [3n, 4n]],
        [() => ops.add(wide, true), 'i64', [2n, 3n]],
        [() => ops.add(yes, 1), 'i64', [1n, 2n]],
        [() => ops.add(words, Number.NaN), 'f64', [Number.NaN, Number.NaN]],
        [() => ops.equal(half, 0.1), 'bool', [1, 0]],
        [() => ops.logicalAnd(yes, 42), 'bool', [0, 1]],
        [() => ops.where(weights, 1000, 0), 'i64', [0n, 1000n]],
        [() => ops.where(yes, 0.5, 1), 'f64', [1, 0.5]],
        [() => ops.where(yes, true, false), 'bool', [0, 1]],
        [() => ops.where(2, x, 0), 'f32', [1, 2]],
        [() => ops.clip(words, 1.5, undefined), 'f64', [1.5, 2]],
        [() => ops.clip(x, 1.1, undefined, { dtype: 'f64' }), 'f64', [1.1, 2]],
        [() => ops.where(yes, x, 0.1, { dtype: 'f64' }), 'f64', [0.1, 2]],
      ] as const)) {
        const made: DeviceArray = make();
        expect([made.dtype, ...(await made.read())]).toEqual([dtype, ...wanted]);
        made[Symbol.dispose]();
      }
    });

    rule('S1104', 'out may be an operand, or overlap with one', async () => {
      const { device } = chapter;
      using x = device.from([1, 2, 3, 4]);
      expect(axpb(2, x, 1, { out: x })).toBe(x);
      ops.add(x.view([0, 3]), 0, { out: x.view([1, 4]) });
      expect([...(await x.read())]).toEqual([3, 3, 5, 7]);
      ops.add(x, x.view([undefined, undefined, -1]), { out: x });
      expect([...(await x.read())]).toEqual([10, 8, 8, 10]);
      using square = device.from([1, 2, 3, 4], { shape: [2, 2] });
      ops.add(square, square.transpose(), { out: square });
      expect([...(await square.read())]).toEqual([2, 5, 5, 8]);
      ops.sum(square, { axis: 0, out: square.view(1) });
      expect([...(await square.read())]).toEqual([2, 5, 7, 13]);
      expect(() => ops.add(x, 1, { out: square })).toThrow(ArgumentError);
      expect(() => ops.add(x, 1, { out: x, dtype: 'f64' as never })).toThrow(ArgumentError);
      using whole = device.zeros(4, 'i32');
      expect(() => ops.add(x, 0.5, { out: whole as never })).toThrow(/f32.*dtype: 'i32'/);
      expect(() => ops.mean(x, { out: whole.view(0) as never })).toThrow(ArgumentError);
      ops.add(x, 0.5, { out: whole, dtype: 'i32' });
      expect([...(await whole.read())]).toEqual([10, 8, 8, 10]);
    });

    rule('S1105', 'elementwise runs a function over arrays', async () => {
      const { device } = chapter;
      using x = device.from([1, 2, 3]);
      using y = axpb(2, x, 0.5);
      expect([y.dtype, ...(await y.read())]).toEqual(['f32', 2.5, 4.5, 6.5]);
      const collatz = ops.elementwise((start: number) => {
        let steps = 0;
        for (let n = start; n > 1; n = n % 2 === 0 ? Math.trunc(n / 2) : 3 * n + 1) steps++;
        return steps;
      });
      using starts = device.from(Int32Array.of(1, 6, 27));
      using steps = collatz(starts);
      expect([steps.dtype, ...(await steps.read())]).toEqual(['i32', 0, 8, 111]);
      using wide = device.from(BigInt64Array.of(1n));
      expect(() => axpb(2, x, wide)).toThrow(CompileError);
      expect(() => ops.elementwise((a: number) => a + process.pid)(x)).toThrow(CompileError);
    });

    rule('S1106', 'ready operations compute as NumPy does', async () => {
      const { device } = chapter;
      using a = device.from(Int32Array.of(7, -7, 8, 0));
      using b = device.from(Int32Array.of(2, 2, -3, 0));
      using quotients = ops.floorDivide(a, b);
      using rests = ops.remainder(a, b);
      using chosen = ops.where(ops.greater(a, 0), a, -1);
      expect([...(await quotients.read())]).toEqual([3, -4, -3, 0]);
      expect([...(await rests.read())]).toEqual([1, 1, -1, 0]);
      expect([...(await chosen.read())]).toEqual([7, -1, 8, -1]);
    });

    rule('S1106', 'each element of arrays too large for a thread each', async () => {
      const { device } = chapter;
      for (const length of [2 ** 18, 2 ** 18 + 1, 2 ** 18 + 257, 2 ** 18 + 1023]) {
        const values = Float32Array.from({ length }, (_, i) => i % 1000);
        using x = device.from(values);
        using y = axpb(2, x, 1);
        using z = ops.add(x, y);
        using again = ops.add(x, y);
        using rounded = ops.astype(y, 'f16');
        using half = ops.astype(rounded, 'f32');
        const wrong = async (one: DeviceArray, factor: number): Promise<number> =>
          (await one.read()).findIndex((value, i) => value !== factor * values[i]! + 1);
        expect(await Promise.all([wrong(y, 2), wrong(half, 2), wrong(z, 3), wrong(again, 3)])).toEqual([-1, -1, -1, -1]);
      }
    });

    rule('S1107', 'reductions fold any axes', async () => {
      const { device } = chapter;
      using x = device.from(
        Float32Array.from({ length: 24 }, (_, i) => i),
        { shape: [2, 3, 4] },
      );
      using columns = ops.sum(x.transpose([2, 0, 1]), { axis: [0, -1] });
      expect([...(await columns.read())]).toEqual([66, 210]);
      using kept = ops.max(x, { axis: 1, keepDims: true });
      expect([kept.shape, ...(await kept.read())]).toEqual([[2, 1, 4], 8, 9, 10, 11, 20, 21, 22, 23]);
      using long = device.ones([300, 1000]);
      expect(await ops.sum(long).item()).toBe(300_000);
      using nan = device.from([1, Number.NaN, 0]);
      expect([await ops.min(nan).item(), await ops.argmax(nan).item()]).toEqual([Number.NaN, 1]);
      expect(() => ops.max(device.zeros([0, 2]), { axis: 0 })).toThrow(ArgumentError);
      expect(() => ops.sum(x, { axis: 3 })).toThrow(/axis \(3\)/);
      expect(() => ops.sum(x, { axis: [0, -3] })).toThrow(ArgumentError);
    });

    rule('S1108', 'operations are captured', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.from([1, 2, 3]);
      using total = device.zeros([]);
      const graph = stream.capture({ a: f32 }, (s, { a }) => {
        using y = axpb(a, x, 1, { stream: s });
        ops.sum(y, { out: total, stream: s });
      });
      stream.launch(graph, { a: 2 });
      expect(await total.item()).toBe(15);
      stream.launch(graph, { a: 10 });
      expect(await total.item()).toBe(63);
      await graph.close();
      await stream.close();
    });

    rule('S1109', 'arrays of numbers in a row', async () => {
      const { device } = chapter;
      using whole = ops.arange(5, 0, -2, { device });
      expect([whole.dtype, ...(await whole.read())]).toEqual(['i32', 5, 3, 1]);
      using parts = ops.linspace(0, 1, 5, { device });
      expect([parts.dtype, ...(await parts.read())]).toEqual(['f32', 0, 0.25, 0.5, 0.75, 1]);
      using above = ops.eye(2, 3, { device, diagonal: 1, dtype: 'u8' });
      expect([...(await above.read())]).toEqual([0, 1, 0, 0, 0, 1]);
      expect(() => ops.arange(0, 5, 0, { device })).toThrow(ArgumentError);
      expect(() => ops.arange(Number.NaN, { device })).toThrow(ArgumentError);
    });

    rule('S1110', 'random numbers of a seed are the same everywhere', async () => {
      const { device } = chapter;
      const one = ops.generator(42);
      const other = ops.generator(42);
      const stream = device.createStream();
      using a = one.uniform([2, 3], { device });
      using b = other.uniform([2, 3], { stream });
      const first = [...(await a.read())];
      expect([...(await b.read())]).toEqual(first);
      // Words of cuRAND: the same numbers on both devices.
      expect(first.slice(0, 2)).toEqual([Math.fround(0.6129598617553711), Math.fround(0.4685865044593811)]);
      using later = one.uniform(6, { device });
      expect(new Set([...first, ...(await later.read())]).size).toBe(12);
      using dice = one.integers(1, 7, 1000, { device });
      expect([...new Set(await dice.read())].toSorted((x, y) => x - y)).toEqual([1, 2, 3, 4, 5, 6]);
      using order = one.permutation(1000, { device });
      expect([...(await order.read())].toSorted((x, y) => x - y)).toEqual(Array.from({ length: 1000 }, (_, at) => at));
      await stream.close();
    });

    rule('S1111', 'products of matrices', async () => {
      const { device } = chapter;
      const numbers = ops.generator(7);
      // The second is large enough for the larger tiles of a GPU.
      for (const [batch, rows, inner, columns] of [
        [2, 65, 33, 70],
        [32, 260, 33, 270],
      ] as const) {
        using a = numbers.integers(-9, 10, [batch, rows, inner], { device, dtype: 'f32' });
        using b = numbers.integers(-9, 10, [inner, columns], { device, dtype: 'f32' });
        using c = ops.matmul(a, b);
        using turned = ops.matmul(b.transpose(), a.transpose([0, 2, 1]));
        const [left, right, product, back] = await Promise.all([a.read(), b.read(), c.read(), turned.read()]);
        expect(c.shape).toEqual([batch, rows, columns]);
        let wrong = 0;
        for (let n = 0; n < batch; n++) {
          for (let i = 0; i < rows; i++) {
            for (let j = 0; j < columns; j++) {
              let sum = 0;
              for (let k = 0; k < inner; k++) sum += left[(n * rows + i) * inner + k]! * right[k * columns + j]!;
              if (product[(n * rows + i) * columns + j] !== sum || back[(n * columns + j) * rows + i] !== sum) wrong++;
            }
          }
        }
        expect(wrong).toBe(0);
      }
      using vector = device.from([1, 2, 3]);
      expect(await ops.matmul(vector, vector).item()).toBe(14);
      expect(() => ops.matmul(device.zeros([2, 33]), vector)).toThrow(ArgumentError);
    });

    rule('S1112', 'sorts along an axis, stable, NaN last', async () => {
      const { device } = chapter;
      const host = Float32Array.from({ length: 3 * 1300 }, (_, at) => (at % 97 === 5 ? Number.NaN : (at * 7919) % 101));
      using x = device.from(host, { shape: [1300, 3] });
      using sorted = ops.sort(x, { axis: 0, descending: true });
      using order = ops.argsort(x, { axis: 0, descending: true });
      const [values, places] = await Promise.all([sorted.read(), order.read()]);
      for (let column = 0; column < 3; column++) {
        const wanted = Array.from({ length: 1300 }, (_, at) => at).toSorted((p, q) => {
          const [u, v] = [host[p * 3 + column]!, host[q * 3 + column]!];
          return Number(Number.isNaN(u)) - Number(Number.isNaN(v)) || (v > u ? 1 : v < u ? -1 : 0) || p - q;
        });
        expect(
          wanted.every((from, to) => places[to * 3 + column] === from && Object.is(values[to * 3 + column], host[from * 3 + column])),
        ).toBe(true);
      }
      const best = ops.topk(device.from(Int32Array.of(4, 9, 1, 9)), 2);
      expect([...(await best.values.read()), ...(await best.indices.read())]).toEqual([9, 9, 1, 3]);
      using steps = device.from([1, 2, 2, 5]);
      using wanted = device.from([0, 2, 9]);
      expect([...(await ops.searchSorted(steps, wanted).read())]).toEqual([0, 1, 4]);
      expect([...(await ops.searchSorted(steps, wanted, { side: 'right' }).read())]).toEqual([0, 3, 4]);
    });

    rule('S1113', 'scans along an axis', async () => {
      const { device } = chapter;
      using x = device.ones([3, 5000]);
      using sums = ops.cumsum(x);
      expect((await sums.read()).every((value, at) => value === (at % 5000) + 1)).toBe(true);
      using columns = ops.cumprod(device.from(Uint8Array.of(1, 2, 3, 4), { shape: [2, 2] }), { axis: 0 });
      expect([columns.dtype, ...(await columns.read())]).toEqual(['u64', 1n, 2n, 3n, 8n]);
    });

    rule('S1114', 'puts arrays together and takes them apart', async () => {
      const { device } = chapter;
      using a = device.from(Int32Array.of(0, 1, 2, 3, 4, 5), { shape: [2, 3] });
      using both = ops.concatenate([a, a.view([undefined, undefined, -1])], { axis: 1 });
      expect([...(await both.read())]).toEqual([0, 1, 2, 3, 4, 5, 3, 4, 5, 0, 1, 2]);
      using stacked = ops.stack([a, a], { axis: -1 });
      expect([stacked.shape, ...(await stacked.read())]).toEqual([[2, 3, 2], 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
      using tiled = ops.tile(a, [2, 1, 2]);
      expect(tiled.shape).toEqual([2, 2, 6]);
      const parts = ops.split(a, 3, { axis: 1 });
      expect([...(await parts[2]!.read())]).toEqual([2, 5]);
      using chosen = ops.take(a, device.from(Int32Array.of(-1, 0)), { axis: 1 });
      expect([...(await chosen.read())]).toEqual([2, 0, 5, 3]);
      expect(() => ops.concatenate([a, a.view([0, 1])], { axis: 1 })).toThrow(ArgumentError);
      expect(() => ops.split(a, 4)).toThrow(ArgumentError);
      await expect(ops.take(a, device.from(Int32Array.of(2))).read()).rejects.toMatchObject({
        cause: { code: 'ERR_MILLRACE_BOUNDS', dimension: 1, index: 2, limit: 2 },
      });
    });

    rule('S1115', 'counts', async () => {
      const { device } = chapter;
      using x = device.from(Uint8Array.of(1, 2, 2, 9));
      expect([...(await ops.binCount(x, 4).read())]).toEqual([0, 1, 2, 0]);
      using y = device.from([0, 0.5, 0.99, 1, 2, Number.NaN]);
      expect([...(await ops.histogram(y, 4, { range: [0, 1] }).read())]).toEqual([1, 0, 1, 2]);
      expect(() => ops.histogram(y, 4, { range: [1, 1] })).toThrow(ArgumentError);
    });

    rule('S1116', 'results whose length depends on the elements', async () => {
      const { device } = chapter;
      using x = device.from([3, 1, Number.NaN, 3, 2, Number.NaN, 1]);
      expect([...(await (await ops.unique(x)).read())]).toEqual([1, 2, 3, Number.NaN]);
      expect([...(await (await ops.compact(x, ops.greater(x, 1))).read())]).toEqual([3, 3, 2]);
      expect((await ops.compact(x, ops.less(x, 0))).shape).toEqual([0]);
      await expect(ops.compact(x, device.zeros(3))).rejects.toThrow(ArgumentError);
    });

    rule('S1117', 'tidy disposes what lies between', async () => {
      const { device } = chapter;
      using x = device.from([1, 2, 3]);
      let between: Disposable & { readonly isDisposed: boolean } = x;
      using y = ops.tidy(() => ops.tidy(() => ops.add((between = ops.multiply(x, x)), 8)));
      expect([between.isDisposed, y.isDisposed, ...(await y.read())]).toEqual([true, false, 9, 12, 17]);
      expect(await ops.tidy(() => ops.mean((between = ops.multiply(x, 2))).item())).toBe(4);
      expect(between.isDisposed).toBe(true);
      expect(() =>
        ops.tidy(() => {
          between = ops.add(x, 1);
          throw new RangeError('own');
        }),
      ).toThrow(RangeError);
      expect(between.isDisposed).toBe(true);
      expect(x.isDisposed).toBe(false);
      expect(() => ops.tidy(async () => Promise.resolve(1))).toThrow(/is async/);
    });
  });
});

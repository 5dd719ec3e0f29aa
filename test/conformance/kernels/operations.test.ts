// Chapter 11: operations on arrays. What they compute is the subject of arithmetic/operations.test.ts.
import { firstValueFrom, from, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import { ArgumentError, BoundsError, CompileError, f32, inout, kernel, overlap, UpstreamError } from 'millrace';
import * as ops from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const outside = kernel('outside', { x: inout(f32) }, ({ x }, { i }) => {
  x[i + 1] = 1;
});
const axpb = ops.elementwise((a: number, x: number, b: number) => a * x + b);

defineChapter((target) => {
  describe('11 operations on arrays', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1101', 'runs on the stream that is named, else on the current one, in order', async () => {
      const { device } = chapter;
      const [one, other] = [device.createStream(), device.createStream()];
      using x = one.from([1, 2, 3]);
      using y = ops.add(x, 1, { on: other });
      using z = one.run(() => ops.multiply(y, x));
      expect(await z.read()).toEqual(Float32Array.of(2, 6, 12));
      await one.close();
      await other.close();
    });

    rule('S1101', 'a result of a failed operand is poisoned', async () => {
      const { device } = chapter;
      using x = device.zeros(4);
      const { done } = device.stream.launch(outside, 4, { x });
      using y = ops.sum(ops.add(x, 1, { out: x }));
      await expect(y.read()).rejects.toThrow(UpstreamError);
      await expect(done).rejects.toThrow(BoundsError);
    });

    rule('S1101', 'in a pipeline, a lane runs it and owns its result', async () => {
      const { device } = chapter;
      const run = overlap(device, [1, 2, 3], { depth: 2 }, (n, lane) => ops.add(lane.full(2, n), 10, { on: lane }).read());
      const results = await firstValueFrom(from(run).pipe(toArray()));
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
        () => ops.add(1, 2),
        () => ops.add(x, 'one' as never),
        () => ops.add(x, undefined as never),
        () => (ops.add as (...args: unknown[]) => unknown)(x),
        () => (ops.add as (...args: unknown[]) => unknown)(x, x, { stream: device.stream }),
        () => ops.add(x, 1, { on: 'default' as never }),
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
        using y = axpb(a, x, 1, { on: s });
        ops.sum(y, { out: total, on: s });
      });
      stream.launch(graph, { a: 2 });
      expect(await total.item()).toBe(15);
      stream.launch(graph, { a: 10 });
      expect(await total.item()).toBe(63);
      await graph.close();
      await stream.close();
    });
  });
});

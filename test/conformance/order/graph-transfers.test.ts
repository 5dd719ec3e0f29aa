// Chapter 10, fourteenth part: copies and fills of arrays and values that each launch gives.
import { describe, expect } from 'vitest';
import { ArgumentError, f32, f64, i32, inout, input, output, u16, u32, u8, UpstreamError, BoundsError, type CaptureError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, refusalOf, shiftKernel, weaveKernel, woven } from '../../support/graphs.js';
import { hold } from '../../support/latch.js';
import { mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('10 graphs: copies and fills of slots', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1031', 'each launch copies to and from the arrays that it gives, however many launches wait', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using source = device.pinned(4, 'u32');
      using result = device.pinned(4, 'u32');
      using start = device.full(4, 5, 'u32');
      const graph = stream.capture({ x: inout(u32), y: input(u32), back: output(u32), k: u32 }, (s, { x, y, back, k }) => {
        s.copy(x, source);
        s.launch(weaveKernel, { grid: 1, block: 4 }, { x: y, y: x, k });
        s.copy(back, x, { count: 4 });
        s.copy(result, y, { label: 'result' });
      });
      expect(graph.nodes.map(({ kind, label }) => [kind, label])).toEqual([
        ['copy', undefined],
        ['launch', 'weave'],
        ['copy', undefined],
        ['copy', 'result'],
      ]);
      source.data.set([1, 2, 3, 4]);
      const arrays = Array.from(
        { length: 6 },
        (_, n) => [device.zeros(4, 'u32'), device.full(4, n, 'u32'), device.zeros(4, 'u32')] as const,
      );
      {
        await using latch = await hold(target, stream, mixKernel);
        for (const [n, [x, y, back]] of arrays.entries()) stream.launch(graph, { x, y, back, k: n });
        latch.open();
      }
      for (const [n, [x, y, back]] of arrays.entries()) {
        const expected = [1, 2, 3, 4].map((value) => woven(n, value, n));
        expect([...(await x.read())]).toEqual(expected);
        expect([...(await back.read())]).toEqual(expected);
        expect([...(await y.read())]).toEqual([n, n, n, n]);
      }
      expect([...result.read()]).toEqual([5, 5, 5, 5]);
      expect([...(await start.read())]).toEqual([5, 5, 5, 5]);
      await graph.close();
      for (const group of arrays) for (const array of group) array[Symbol.dispose]();
      await stream.close();
    });

    for (const [name, type, low, high] of [
      ['u8', u8, 3, 200],
      ['u16', u16, 3, 60000],
      ['f32', f32, 0.5, -1e30],
      ['f64', f64, 0.1, -1e300],
    ] as const) {
      rule('S1031', `a fill of ${name} sets the whole array of each launch to the value of the launch`, async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using fixed = device.zeros(3, name);
        const graph = stream.capture({ x: output(type), value: type }, (s, { x, value }) => {
          s.fill(x, value);
          s.fill(fixed.subarray(1), value);
        });
        const lengths = [1, 4, 1000, 3_000_000, 7];
        const arrays = lengths.map((length) => device.zeros(length + 2, name));
        for (const [n, array] of arrays.entries())
          stream.launch(graph, { x: array.subarray(1, lengths[n]! + 1) as typeof array, value: n % 2 === 0 ? low : high } as never);
        for (const [n, array] of arrays.entries()) {
          const data = await array.read();
          const value = n % 2 === 0 ? low : high;
          const expected = name === 'f32' ? Math.fround(value) : value;
          expect([data[0], data[1], data[lengths[n]!], data[lengths[n]! + 1]]).toEqual([0, expected, expected, 0]);
          expect((data as Float64Array).subarray(1, -1).every((each) => each === expected)).toBe(true);
          array[Symbol.dispose]();
        }
        expect((await fixed.read())[0]).toBe(0);
        expect((await fixed.read())[2]).toBe(name === 'f32' ? Math.fround(low) : low);
        await graph.close();
        await stream.close();
      });
    }

    rule('S1031', 'offsets and counts are those of the call, and views of each launch count from their own start', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using a = device.zeros(8, 'i32');
      using b = device.from(Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
      using fixed = device.from(Int32Array.of(10, 20, 30, 40));
      const graph = stream.capture({ x: inout(i32), y: input(i32) }, (s, { x, y }) => {
        s.copy(x, y, { dstOffset: 1, srcOffset: 2, count: 2 });
        s.copy(x, fixed, { srcOffset: 3, dstOffset: 0, count: 1 });
      });
      stream.launch(graph, { x: a.subarray(2), y: b });
      expect([...(await a.read())]).toEqual([0, 0, 40, 3, 4, 0, 0, 0]);
      stream.launch(graph, { x: a, y: b.subarray(4) });
      expect([...(await a.read())]).toEqual([40, 7, 8, 3, 4, 0, 0, 0]);
      // In another graph, the values are those of the call that embeds it.
      const outer = stream.capture((s) => {
        s.fill(a, 1);
        s.launch(graph, { x: a, y: b });
      });
      stream.launch(outer);
      expect([...(await a.read())]).toEqual([40, 3, 4, 1, 1, 1, 1, 1]);
      await Promise.all([graph.close(), outer.close()]);
      await stream.close();
    });

    rule('S1031', 'large arrays are copied whole, and an update changes what is copied', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const length = 1_500_000;
      using one = device.full(length, 1, 'u32');
      using two = device.full(length, 2, 'u32');
      using x = device.zeros(length, 'u32');
      using y = device.zeros(length, 'u32');
      const graph = stream.capture({ x: output(u32) }, (s, slots) => void s.copy(slots.x, one));
      for (const array of [x, y, x]) stream.launch(graph, { x: array });
      graph.update((s, slots) => void s.copy(slots.x, two));
      stream.launch(graph, { x: y });
      for (const [array, value] of [
        [x, 1],
        [y, 2],
      ] as const) {
        const data = await array.read();
        expect(data.every((each) => each === value)).toBe(true);
      }
      await graph.close();
      await stream.close();
    });

    rule('S1031', 'a launch with an array of another length is an ArgumentError with both lengths, and nothing runs', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using pinned = device.pinned(4, 'u32');
      using fixed = device.zeros(2, 'u32');
      const arrays = [0, 2, 3, 4, 5].map((length) => device.full(length, 9, 'u32'));
      const exact = stream.capture({ x: output(u32) }, (s, { x }) => void s.copy(x, pinned), { label: 'exact' });
      const least = stream.capture({ x: input(u32) }, (s, { x }) => void s.copy(fixed, x, { srcOffset: 1, count: 2 }), { label: 'least' });
      const filled = stream.capture({ x: output(u32) }, (s, { x }) => void s.fill(x, 1), { label: 'filled' });
      const outcomes = (graph: typeof exact | typeof least): unknown[] =>
        arrays.map((x) => {
          try {
            (stream.launch as (graph: unknown, values: unknown) => unknown).call(stream, graph, { x });
            return 'ok';
          } catch (error) {
            expect(error).toBeInstanceOf(ArgumentError);
            const { argument, value, limit, message } = error as ArgumentError;
            expect([argument, value]).toEqual(['x', x.length]);
            expect(message).toContain(`Value x of graph ${graph.label} has ${x.length} elements`);
            return limit;
          }
        });
      expect(outcomes(exact)).toEqual([4, 4, 4, 'ok', 4]);
      expect(outcomes(least)).toEqual([3, 3, 'ok', 'ok', 'ok']);
      expect(outcomes(filled)).toEqual([1, 'ok', 'ok', 'ok', 'ok']);
      expect([...(await arrays[4]!.read())]).toEqual([1, 1, 1, 1, 1]);
      await Promise.all([exact.close(), least.close(), filled.close()]);
      for (const array of arrays) array[Symbol.dispose]();
      await stream.close();
    });

    rule('S1031', 'what does not fit is refused at the call', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'u32');
      using matrix = device.zeros([2, 2], 'u32');
      using pinned = device.pinned(4, 'u32');
      const errors: Error[] = [];
      const host: CaptureError[] = [];
      let stale: unknown;
      const graph = stream.capture({ a: input(u32), b: output(u32), c: inout(f32), k: u32, f: f32 }, (s, { a, b, c, k, f }) => {
        stale = a;
        for (const bad of [
          () => s.copy(a as never, x),
          () => s.copy(x, b as never),
          () => s.copy(x, c as never),
          () => s.copy(b, a),
          () => s.copy(b, matrix.transpose() as never),
          () => s.copy(b, x, { count: 5 }),
          () => s.copy(b, x, { srcOffset: 5 }),
          () => s.copy(b, x, { dstOffset: -1 }),
          () => s.copy(b, x, { transfer: true }),
          () => s.copy(b, 7 as never),
          () => s.copy(k as never, x),
          () => s.fill(a as never, 1),
          () => s.fill(c, k as never),
          () => s.fill(x, f as never),
          () => s.fill(x, a as never),
          () => s.fill(b, 1.5),
          () => s.fill(matrix.transpose() as never, k),
        ]) {
          const error = thrownBy(bad);
          expect(error, String(bad)).toBeInstanceOf(ArgumentError);
          errors.push(error);
        }
        host.push(refusalOf(() => s.copy(b, new Uint32Array(4) as never)));
        host.push(refusalOf(() => s.copy(new Uint32Array(4) as never, a as never)));
        s.copy(b, pinned);
        // No array has both lengths.
        expect(thrownBy(() => s.copy(b, x.subarray(1)))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => s.copy(b, x, { dstOffset: 2, count: 3 }))).toBeInstanceOf(ArgumentError);
      });
      expect(graph.nodes.length).toBe(1);
      expect(host.map(({ reason }) => reason)).toEqual(['unsupported-node', 'readback']);
      expect(thrownBy(() => stream.copy(x, stale as never))).toBeInstanceOf(ArgumentError);
      await graph.close();
      await stream.close();
    });

    rule('S1031', 'a copy or fill clears the poison of an array that it overwrites whole, and of no other', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      using pinned = device.pinned(4, 'i32');
      pinned.data.fill(3);
      const copied = stream.capture({ y: inout(i32) }, (s, slots) => {
        s.copy(slots.y, pinned);
        s.copy(z, slots.y);
      });
      const filled = stream.capture({ y: inout(i32), value: i32 }, (s, slots) => {
        s.fill(slots.y, slots.value);
        s.copy(z, slots.y, { count: 1 });
      });
      const poison = async (): Promise<void> => {
        expect(await rejectionOf(device.stream.launch(shiftKernel, 4, { x, y, by: 4 }).done)).toBeInstanceOf(BoundsError);
      };
      await poison();
      await stream.launch(copied, { y }).done;
      expect([...(await z.read())]).toEqual([3, 3, 3, 3]);
      await poison();
      await stream.launch(filled, { y, value: 6 }).done;
      expect([...(await y.read()), (await z.read())[0]]).toEqual([6, 6, 6, 6, 6]);
      await poison();
      expect(await rejectionOf(stream.launch(filled, { y: y.subarray(1), value: 6 }).done)).toBeInstanceOf(UpstreamError);
      expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
      device.stream.fill(z, 0);
      const read = stream.capture({ y: input(i32) }, (s, slots) => void s.copy(z, slots.y));
      expect(await rejectionOf(stream.launch(read, { y }).done)).toBeInstanceOf(UpstreamError);
      device.stream.fill(y, 1);
      device.stream.fill(z, 0);
      await stream.launch(read, { y }).done;
      expect([...(await z.read())]).toEqual([1, 1, 1, 1]);
      await Promise.all([copied.close(), filled.close(), read.close()]);
      await stream.close();
    });

    rule('S1031', 'launches are ordered with other streams by the arrays that they give, and an upload is possible', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.zeros(1, 'u32');
      using y = device.zeros(1, 'u32');
      using from = device.full(1, 8, 'u32');
      const graph = stream.capture({ x: output(u32) }, (s, slots) => void s.copy(slots.x, from));
      await graph.upload().done;
      {
        await using latch = await hold(target, other, mixKernel);
        other.fill(x, 1);
        stream.launch(graph, { x });
        latch.open();
      }
      other.copy(y, x);
      expect([(await x.read())[0], (await y.read())[0]]).toEqual([8, 8]);
      expect(thrownBy(() => stream.launch(graph, { x: from }))).toBeInstanceOf(ArgumentError);
      other.launch(mixKernel, ONE, { x, k: 0 });
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });
  });
});

// Chapter 10, first part: what a capture records, and what it leaves alone.
import { describe, expect } from 'vitest';
import { ArgumentError, StateError, type DeviceArray, type Operation, type Recorder } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, workOf } from '../../support/graphs.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel, unbuiltKernel } from '../../support/kernels.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, thrownBy, turn } from '../../support/wait.js';

defineChapter((target) => {
  describe('10 graphs: captures', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1001', 'the function is called once, during the call, with the stream, which is current meanwhile', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const outer = device.stream;
      using x = device.zeros(4, 'i32');
      let calls = 0;
      const graph = stream.capture((s) => {
        calls++;
        expect(s).toBe(stream);
        expect(device.stream).toBe(stream);
        device.stream.fill(x, 1);
        return 'ignored';
      });
      expect([calls, device.stream === outer, workOf(graph).length]).toEqual([1, true, 1]);
      await graph.launch().done;
      expect(calls).toBe(1);
      await graph.close();
      await stream.close();
    });

    rule('S1001', 'captured operations do not run at the capture, and run at each launch', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(1, 7, 'u32');
      const graph = stream.capture((s) => {
        for (let k = 0; k < 5; k++) s.launch(mixKernel, ONE, { x, k });
      });
      await device.synchronize();
      expect([...(await x.read())]).toEqual([7]);
      let expected = 7;
      for (let n = 0; n < 3; n++) {
        stream.launch(graph);
        expected = mixed(expected, 0, 5);
        expect((await x.read())[0]).toBe(expected);
      }
      await graph.close();
      await stream.close();
    });

    rule('S1001', 'launches, fills, copies of arrays, views and pinned arrays can be captured', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros([4, 4], 'u32');
      using y = device.zeros([4, 4], 'u32');
      using pinnedIn = device.pinned(4, 'u32');
      using pinnedOut = device.pinned(16, 'u32');
      pinnedIn.data.set([10, 20, 30, 40]);
      const graph = stream.capture((s) => {
        s.fill(x, 1);
        s.fill(x.view([undefined, undefined, 2], [undefined, undefined, -1]), 2);
        s.copy(x.view(1), pinnedIn);
        s.copy(y, x.transpose());
        s.launch(mixKernel, ONE, { x: y.reshape(16), k: 5 });
        s.copy(y.reshape(16), y.reshape(16), { srcOffset: 0, dstOffset: 12, count: 4 });
        s.copy(pinnedOut, y.reshape(16));
      });
      expect(workOf(graph).map(({ kind }) => kind)).toEqual(['fill', 'fill', 'copy', 'copy', 'launch', 'copy', 'copy']);
      await stream.launch(graph).done;
      const first = mixed(2, 5, 1);
      expect([...pinnedOut.data]).toEqual([first, 10, 2, 1, 2, 20, 2, 1, 2, 30, 2, 1, first, 10, 2, 1]);
      await graph.close();
      await stream.close();
    });

    rule('S1001', 'a capture waits for nothing, and its launch comes after what the stream was given before', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      await using latch = await hold(target, stream, mixKernel);
      stream.launch(mixKernel, ONE, { x, k: 1 });
      const graph = stream.capture((s) => void s.launch(mixKernel, ONE, { x, k: 2 }));
      const launched = stream.launch(graph);
      expect(latch.operation.isComplete).toBe(false);
      await witness(stream);
      expect(launched.isComplete).toBe(false);
      latch.open();
      expect((await x.read())[0]).toBe(mixed(0, 1, 2));
      await graph.close();
      await stream.close();
    });

    rule('S1001', 'a call with bad arguments is refused at the call, and the capture goes on without it', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'u32');
      const gone = device.zeros(4, 'u32');
      gone[Symbol.dispose]();
      await device.compile(mixKernel);
      const graph = stream.capture((s) => {
        expect(thrownBy(() => s.fill(x, 'seven' as never))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => s.fill(x, -1))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => s.launch(mixKernel, ONE, { x } as never))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => s.launch(mixKernel, { grid: 1, block: 1e9 }, { x, k: 1 }))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => s.copy(x, x))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => s.fill(gone, 1))).toBeInstanceOf(StateError);
        s.fill(x, 3);
      });
      expect(workOf(graph)).toHaveLength(1);
      await stream.launch(graph).done;
      expect([...(await x.read())]).toEqual([3, 3, 3, 3]);
      await graph.close();
      await stream.close();
    });

    rule('S1001', 'bad arguments of a capture are refused before the function is called', async () => {
      const stream = chapter.device.createStream();
      let calls = 0;
      const body = (): void => void calls++;
      for (const bad of [
        () => stream.capture(undefined as never),
        () => stream.capture({}, undefined as never),
        () => stream.capture({ a: 7 } as never, body),
        () => stream.capture({ a: 'f32' } as never, body),
        () => stream.capture([] as never, undefined as never),
        () => stream.capture(body, { stric: true } as never),
        () => stream.capture(body, { strict: 1 } as never),
        () => stream.capture(body, { label: 7 } as never),
        () => stream.capture(body, { mode: 'lax' } as never),
        () => stream.capture(body, 'label' as never),
      ]) {
        expect(thrownBy(bad), String(bad)).toBeInstanceOf(ArgumentError);
      }
      expect(calls).toBe(0);
      await stream.close();
      expect(thrownBy(() => stream.capture(body))).toBeInstanceOf(StateError);
      expect(calls).toBe(0);
    });

    rule('S1001', 'the default stream can be captured', async () => {
      const { device } = chapter;
      using x = device.zeros(4, 'i32');
      const graph = device.defaultStream.capture((s) => void s.fill(x, 4));
      expect([...(await x.read())]).toEqual([0, 0, 0, 0]);
      graph.launch();
      expect([...(await x.read())]).toEqual([4, 4, 4, 4]);
      await graph.close();
    });

    rule('S1001', 'a kernel that is not built yet can be captured; its launches wait for the build', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      const unbuilt = unbuiltKernel();
      const graph = stream.capture((s) => void s.launch(unbuilt, ONE, { x }));
      stream.launch(graph);
      stream.launch(graph);
      expect((await x.read())[0]).toBe(2);
      await graph.close();
      await stream.close();
    });

    rule('S1001', 'observers of the stream see the launches and nothing of the capture', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'i32');
      await device.synchronize();
      const seen: Operation[] = [];
      const subscription = stream.operations$.subscribe((operation) => void seen.push(operation));
      const graph = stream.capture((s) => void s.fill(x, 1), { label: 'watched' });
      const launched = [stream.launch(graph), stream.launch(graph)];
      await stream.synchronize();
      await eventually('both launches were emitted', () => seen.filter(({ kind }) => kind === 'graph').length === 2);
      expect(seen.filter(({ kind }) => kind === 'graph').map(({ id }) => id)).toEqual(launched.map(({ id }) => id));
      expect(seen.some(({ kind }) => kind === 'fill')).toBe(false);
      subscription.unsubscribe();
      await graph.close();
      await stream.close();
    });

    rule('S1008', 'host functions are called once for each launch, after it, in the order of the calls', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.zeros(1, 'u32');
      using pinned = device.pinned(1, 'u32');
      const calls: string[] = [];
      const graph = stream.capture((s) => {
        s.host(() => calls.push(`first ${pinned.data[0]}`), { label: 'first' });
        s.launch(mixKernel, ONE, { x, k: 1 });
        fork.waitStream(stream);
        fork.host(() => calls.push(`second ${pinned.data[0]}`));
        s.copy(pinned, x);
        s.host(() => calls.push('third'));
      });
      await stream.synchronize();
      await turn();
      expect(calls).toEqual([]);
      const expected: string[] = [];
      let value = 0;
      for (let n = 1; n <= 3; n++) {
        const launched = stream.launch(graph);
        await eventually(`all functions were called for launch ${n}`, () => calls.length >= 3 * n);
        expect(launched.isComplete).toBe(true);
        value = mixed(value, 1, 1);
        expected.push(`first ${value}`, `second ${value}`, 'third');
        expect(calls).toEqual(expected);
      }
      for (let n = 0; n < 20; n++) stream.launch(graph);
      await eventually('all functions were called', () => calls.length >= 69);
      await device.synchronize();
      await turn();
      expect(calls.map((call) => call.split(' ')[0])).toEqual(Array.from({ length: 23 }, () => ['first', 'second', 'third']).flat());
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1034', 'arrays that the captured function disposes share memory if they are not needed at the same time', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      const [length, mib] = [2 ** 18, 2 ** 20];
      using x = device.zeros(length, 'u32');
      using left = device.zeros(length, 'u32');
      using right = device.zeros(length, 'u32');
      const used = async (): Promise<number> => {
        await device.synchronize();
        return (await device.pool.stats()).usedBytes / mib;
      };
      const step = (s: Recorder, from: DeviceArray<'u32'>, to: DeviceArray<'u32'>, value: number): void => {
        using between = s.empty(length, 'u32');
        s.copy(between, from);
        s.fill(between.subarray(0, 1), value);
        s.copy(to, between);
      };
      const before = await used();
      const one = stream.capture((s) => {
        for (let n = 1; n <= 100; n++) step(s, x, left, n);
      });
      expect((await used()) - before).toBeLessThanOrEqual(2);
      await stream.launch(one).done;
      expect((await left.read()).slice(0, 2)).toEqual(Uint32Array.of(100, 0));
      await one.close();
      // Branches that may run at the same time have memory of their own, and an array that is kept shares none.
      let kept: DeviceArray<'u32'> | undefined;
      const two = stream.capture((s) => {
        fork.waitStream(s);
        for (let n = 1; n <= 20; n++) {
          step(s, x, left, n);
          step(fork, x, right, 100 + n);
        }
        s.waitStream(fork);
        kept = s.empty(length, 'u32');
        s.copy(left.subarray(1, 2), kept.subarray(1, 2));
      });
      const held = (await used()) - before;
      expect(held).toBeGreaterThanOrEqual(3);
      expect(held).toBeLessThanOrEqual(6);
      stream.fill(kept!, 7);
      for (let n = 0; n < 3; n++) stream.launch(two);
      expect([(await left.read())[0], (await left.read())[1], (await right.read())[0], (await kept!.read())[5]]).toEqual([20, 7, 120, 7]);
      await two.close();
      kept![Symbol.dispose]();
      // Outside of the capture an array is in use at once; a capture that fails leaves nothing.
      let early: DeviceArray<'u32'> | undefined;
      const three = stream.capture((s) => {
        early = s.empty(length, 'u32');
        fork.fill(early, 5);
        s.copy(left, early);
      });
      stream.waitStream(fork);
      stream.launch(three);
      expect((await left.read())[3]).toBe(5);
      await three.close();
      early![Symbol.dispose]();
      const failing = (s: Recorder): never => {
        step(s, x, left, 1);
        s.fill(s.empty(length, 'u32'), 1);
        throw new Error('of the function');
      };
      expect(() => stream.capture(failing)).toThrow('of the function');
      expect((await used()) - before).toBe(0);
      await Promise.all([stream.close(), fork.close()]);
    });
  });
});

// Chapter 10, fourth part: launches of graphs, their order, and their end.
import { describe, expect } from 'vitest';
import { StateError, type Operation, type Recorder } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, usedAgain, usedBytes, weaveKernel, woven } from '../../support/graphs.js';
import { hold, turnsOf } from '../../support/latch.js';
import { mixed, mixKernel, rendezvousKernel } from '../../support/kernels.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, isSettled, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('10 graphs: launches', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1011', 'a launch is one operation of kind graph of its stream', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream({ timing: true })];
      using x = device.zeros(4, 'i32');
      const graph = stream.capture(
        (s) => {
          s.fill(x, 1);
          s.fill(x.subarray(1), 2);
        },
        { label: 'two fills' },
      );
      expect([graph.label, graph.device.isSameDevice(device)]).toEqual(['two fills', true]);
      await device.synchronize();
      const seen: Operation[] = [];
      const subscription = stream.operations$.subscribe((operation) => void seen.push(operation));
      const launched = stream.launch(graph);
      expect([launched.kind, launched.stream, launched.device, launched.label]).toEqual([
        'graph',
        stream.label,
        device.info.id,
        'two fills',
      ]);
      await launched.done;
      expect([launched.isComplete, launched.status]).toEqual([true, 'finished']);
      await eventually('the launch was emitted', () => seen.length > 0);
      expect(seen.map(({ id }) => id)).toEqual([launched.id]);
      subscription.unsubscribe();
      // S215 holds for launches of graphs as for every operation.
      const { deviceMs } = await other.launch(graph).done;
      expect(deviceMs).toBeGreaterThanOrEqual(0);
      expect([...(await x.read())]).toEqual([1, 2, 2, 2]);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1011', 'the label of a graph is that of its stream when none is given', async () => {
      const { device } = chapter;
      const stream = device.createStream({ label: 'simulation' });
      using x = device.zeros(4, 'i32');
      const graph = stream.capture((s) => void s.fill(x, 1));
      expect(graph.label).toBe('simulation');
      await graph.close();
      await stream.close();
    });

    rule('S1011', 'graph.launch launches on the current stream of the device', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream({ label: 'current' })];
      using x = device.zeros(4, 'i32');
      const graph = stream.capture((s) => void s.fill(x, 1));
      expect(graph.launch().stream).toBe(device.stream.label);
      expect(other.run(() => graph.launch()).stream).toBe('current');
      expect([...(await x.read())]).toEqual([1, 1, 1, 1]);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1011', 'a launch comes after earlier operations of an explicit stream, and later ones after all its nodes', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      using x = device.zeros(4, 'u32');
      using y = device.zeros(4, 'u32');
      await device.synchronize();
      const [left, right] = [
        [x.subarray(0, 2), y.subarray(0, 2)],
        [x.subarray(2), y.subarray(2)],
      ] as const;
      const graph = stream.capture((s) => {
        fork.waitStream(stream);
        for (let k = 0; k < 4; k++) {
          fork.launch(weaveKernel, { grid: 1, block: 2 }, { x: right[0], y: right[1], k });
          s.launch(weaveKernel, { grid: 1, block: 2 }, { x: left[0], y: left[1], k });
        }
      });
      let expected = 0;
      for (let n = 0; n < 100; n++) {
        stream.fill(x, n);
        stream.launch(graph);
        stream.launch(weaveKernel, { grid: 1, block: 4 }, { x, y, k: 9 });
        for (const k of [0, 1, 2, 3, 9]) expected = woven(n, expected, k);
      }
      await stream.synchronize();
      expect([...(await y.read())]).toEqual([expected, expected, expected, expected]);
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1011', 'launches of one graph run one after another in the order of the calls, on explicit streams too', async () => {
      const { device } = chapter;
      const [first, second] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      using x = device.zeros(1, 'u32');
      await device.synchronize();
      const graph = first.capture((s) => {
        for (let k = 0; k < 3; k++) s.launch(mixKernel, ONE, { x, k });
      });
      let expected = 0;
      {
        await using latch = await hold(target, first, mixKernel);
        const launched = [first.launch(graph), second.launch(graph)];
        await witness(second);
        expect(launched.map(({ isComplete }) => isComplete)).toEqual([false, false]);
        latch.open();
        await Promise.all(launched.map(({ done }) => done));
      }
      for (let n = 0; n < 300; n++) (n % 2 === 0 ? first : second).launch(graph);
      await Promise.all([first.synchronize(), second.synchronize()]);
      for (let n = 0; n < 302; n++) expected = mixed(expected, 0, 3);
      expect((await x.read())[0]).toBe(expected);
      await graph.close();
      await Promise.all([first.close(), second.close()]);
    });

    rule('S1011', 'the stream of the capture can be closed, and other streams launch the graph', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      const graph = stream.capture((s) => {
        fork.waitStream(stream);
        s.fill(x.subarray(0, 2), 1);
        fork.fill(x.subarray(2), 2);
      });
      await Promise.all([stream.close(), fork.close()]);
      device.stream.launch(graph);
      expect([...(await x.read())]).toEqual([1, 1, 2, 2]);
      await graph.close();
    });

    rule('S103', 'two graphs run at the same time on two streams: their kernels wait for each other', async () => {
      const { device } = chapter;
      await device.compile(rendezvousKernel);
      const [a, b] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      using flags = device.zeros(3, 'i32');
      await device.synchronize();
      const turns = turnsOf(target);
      const [one, two] = [a, b].map((stream, mine) => stream.capture((s) => void s.launch(rendezvousKernel, ONE, { flags, mine, turns })));
      await Promise.all([a.launch(one!).done, b.launch(two!).done]);
      expect([...(await flags.read())]).toEqual([1, 1, 0]);
      await Promise.all([one!.close(), two!.close()]);
      await Promise.all([a.close(), b.close()]);
    });

    rule('S1013', 'reads, copies and writes on other streams wait for a launch that writes the array', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      using y = device.zeros(4, 'i32');
      const graph = stream.capture((s) => void s.fill(x, 6));
      await device.synchronize();
      await using latch = await hold(target, stream);
      stream.launch(graph);
      const copy = other.copy(y, x);
      const read = x.read();
      await witness(other);
      expect([copy.isComplete, await isSettled(read)]).toEqual([false, false]);
      other.fill(x, 7);
      latch.open();
      expect([...(await read)]).toEqual([6, 6, 6, 6]);
      expect([...(await y.read())]).toEqual([6, 6, 6, 6]);
      expect([...(await x.read())]).toEqual([7, 7, 7, 7]);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1013', 'a launch waits for writers and readers on other streams', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const graph = stream.capture((s) => void s.copy(y, x));
      await device.synchronize();
      for (const use of [() => other.fill(x, 3), () => other.copy(z, y)]) {
        await using latch = await hold(target, other);
        use();
        const launched = stream.launch(graph);
        await witness(stream);
        expect(launched.isComplete).toBe(false);
        latch.open();
        await launched.done;
      }
      expect([...(await y.read()), ...(await z.read())]).toEqual([3, 3, 3, 3, 3, 3, 3, 3]);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1013', 'a launch and other readers do not wait for each other, nor do uses of disjoint parts', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.full(8, 5, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const graph = stream.capture((s) => void s.copy(y, x.subarray(0, 4)));
      await device.synchronize();
      await using latch = await hold(target, stream);
      stream.launch(graph);
      await other.copy(z, x.subarray(0, 4)).done;
      await other.fill(x.subarray(4), 1).done;
      const overwrite = other.fill(x.subarray(3, 5), 2);
      await witness(other);
      expect([latch.operation.isComplete, overwrite.isComplete]).toEqual([false, false]);
      latch.open();
      expect([...(await x.read())]).toEqual([5, 5, 5, 2, 2, 1, 1, 1]);
      expect([...(await y.read())]).toEqual([5, 5, 5, 5]);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1013', 'a launch on an explicit stream waits for nothing, and tracked streams wait for it', async () => {
      const { device } = chapter;
      const [explicit, other] = [device.createStream({ ordering: 'explicit' }), device.createStream()];
      using x = device.full(4, 5, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const graph = explicit.capture((s) => void s.copy(y, x));
      await device.synchronize();
      {
        await using latch = await hold(target, other);
        other.fill(x, 6);
        await explicit.launch(graph).done;
        expect(latch.operation.isComplete).toBe(false);
        latch.open();
        await other.synchronize();
      }
      await using latch = await hold(target, explicit);
      explicit.launch(graph);
      const copy = other.copy(z, y);
      await witness(other);
      expect(copy.isComplete).toBe(false);
      latch.open();
      expect([...(await z.read())]).toEqual([6, 6, 6, 6]);
      await graph.close();
      await Promise.all([explicit.close(), other.close()]);
    });

    rule('S1013', 'two graphs that use the same arrays on two tracked streams run in the order of the calls', async () => {
      const { device } = chapter;
      const [a, b] = [device.createStream(), device.createStream()];
      using x = device.full(4, 1, 'u32');
      using y = device.full(4, 2, 'u32');
      const shape = { grid: 1, block: 4 } as const;
      const one = a.capture((s) => void s.launch(weaveKernel, shape, { x, y, k: 3 }));
      const two = b.capture((s) => void s.launch(weaveKernel, shape, { x: y, y: x, k: 4 }));
      let [left, right] = [1, 2];
      for (let n = 0; n < 100; n++) {
        a.launch(one);
        b.launch(two);
        right = woven(left, right, 3);
        left = woven(right, left, 4);
        if (n % 7 === 0) {
          device.stream.fill(y, n);
          right = n;
        }
      }
      expect([(await x.read())[3], (await y.read())[3]]).toEqual([left, right]);
      await Promise.all([one.close(), two.close()]);
      await Promise.all([a.close(), b.close()]);
    });

    rule('S1015', 'after close, launches are refused; submitted ones finish, and close resolves after them', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      const graph = stream.capture((s) => void s.launch(mixKernel, ONE, { x, k: 1 }));
      await using latch = await hold(target, stream, mixKernel);
      const launched = Array.from({ length: 50 }, () => stream.launch(graph));
      const closed = [graph.close(), graph.close()];
      expect(thrownBy(() => stream.launch(graph))).toBeInstanceOf(StateError);
      expect(thrownBy(() => graph.launch())).toBeInstanceOf(StateError);
      await witness(stream);
      expect([await isSettled(closed[0]!), launched.some(({ isComplete }) => isComplete)]).toEqual([false, false]);
      latch.open();
      await Promise.all(closed);
      expect(launched.every(({ isComplete }) => isComplete)).toBe(true);
      let expected = 0;
      for (let n = 0; n < 50; n++) expected = mixed(expected, 1, 1);
      expect((await x.read())[0]).toBe(expected);
      await graph.close();
      // What the graph was stays known.
      expect([graph.nodes.length > 0, graph.toDot().length > 0]).toEqual([true, true]);
      await stream.close();
    });

    rule('S1015', 'a graph that was never launched closes, at the end of an await using block too', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'i32');
      let kept;
      {
        await using graph = stream.capture((s) => void s.fill(x, 1));
        kept = graph;
      }
      expect(thrownBy(() => stream.launch(kept))).toBeInstanceOf(StateError);
      expect([...(await x.read())]).toEqual([0, 0, 0, 0]);
      await stream.close();
    });

    rule('S1015', 'captures, launches and closes in a loop leave no memory in use', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1 << 10, 'i32');
      const before = await usedBytes(device);
      for (let n = 0; n < 100; n++) {
        const graph = stream.capture((s) => {
          using made = s.full(1 << 10, n, 'i32');
          s.copy(x, made);
        });
        stream.launch(graph);
        void graph.close();
      }
      expect((await x.read())[7]).toBe(99);
      await usedAgain(device, before);
      await stream.close();
    });

    rule(
      'S1013',
      'a graph that is made, launched and closed at once comes after all that used its arrays, and before what follows',
      async () => {
        const { device } = chapter;
        const streams = [device.createStream(), device.createStream()] as const;
        await device.compile(weaveKernel);
        for (let round = 0; round < 200; round++) {
          const x = [1, 2, 3].map((value) => device.full(1, value, 'u32'));
          const expected = [1, 2, 3];
          for (let n = 0; n < 6; n++) {
            // Each pair of arrays, on changing streams, half of them in graphs.
            const [from, to] = [(n * round) % 3, (n * round + 1 + (n % 2)) % 3] as const;
            const stream = streams[((round >> n) + n) & 1]!;
            const submit = (s: Recorder): void => void s.launch(weaveKernel, ONE, { x: x[from]!, y: x[to]!, k: n });
            expected[to] = woven(expected[from]!, expected[to]!, n);
            if (((round >> 2) + n) % 2 === 0) {
              submit(stream);
              continue;
            }
            const graph = stream.capture(submit);
            stream.launch(graph);
            void graph.close();
          }
          const values = await Promise.all(x.map((array) => array.read()));
          expect(values.flatMap((one) => [...one])).toEqual(expected);
          for (const array of x) array[Symbol.dispose]();
        }
        await Promise.all(streams.map((stream) => stream.close()));
      },
    );
  });
});

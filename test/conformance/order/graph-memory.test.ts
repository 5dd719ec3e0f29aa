// Chapter 10, fifth part: the memory that graphs use, keep and allocate.
import { describe, expect } from 'vitest';
import { ArgumentError, CaptureError, inout, input, StateError, u32, type DeviceArray } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { memoryOf, ONE, usedAgain, usedBytes, weaveKernel } from '../../support/graphs.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

/** Elements of an array of 256 KiB: larger than what a pool rounds to. */
const MANY = 1 << 16;
/** For what is launched often: the fake driver copies element by element. */
const FEW = 1 << 12;

defineChapter((target) => {
  describe('10 graphs: memory', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1009', 'each launch reads and writes the contents that the arrays have then', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 1, 'i32');
      using y = device.zeros(4, 'i32');
      using source = device.pinned(4, 'i32');
      using sink = device.pinned(4, 'i32');
      source.data.fill(10);
      const graph = stream.capture((s) => {
        s.copy(y.subarray(0, 2), x.subarray(0, 2));
        s.copy(y.subarray(2), source.subarray(2));
        s.copy(sink, y);
      });
      device.stream.fill(x, 2);
      source.data.fill(20);
      await stream.launch(graph).done;
      expect([...sink.data]).toEqual([2, 2, 20, 20]);
      device.stream.fill(x, 3);
      source.data.fill(30);
      device.stream.fill(y, 0);
      await stream.launch(graph).done;
      expect([...sink.data]).toEqual([3, 3, 30, 30]);
      expect([...(await y.read())]).toEqual([3, 3, 30, 30]);
      await graph.close();
      await stream.close();
    });

    rule('S1009', 'a graph keeps disposed arrays: their memory is not given to others, and later launches use it', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const x = device.full(MANY, 7, 'i32');
      using y = device.zeros(MANY, 'i32');
      const part = x.subarray(0, MANY / 2);
      const graph = stream.capture((s) => {
        s.copy(y.subarray(0, MANY / 2), part);
      });
      part[Symbol.dispose]();
      x[Symbol.dispose]();
      expect(thrownBy(() => stream.fill(x, 1))).toBeInstanceOf(StateError);
      await device.synchronize();
      const others = Array.from({ length: 8 }, (_, n) => device.full(MANY, n + 100, 'i32'));
      for (let n = 0; n < 3; n++) {
        device.stream.fill(y, 0);
        await stream.launch(graph).done;
        const values = await y.read();
        expect([values[0], values[MANY / 2 - 1], values[MANY / 2]]).toEqual([7, 7, 0]);
      }
      for (const [n, other] of others.entries()) {
        expect((await other.read()).every((value) => value === n + 100)).toBe(true);
        other[Symbol.dispose]();
      }
      await graph.close();
      await stream.close();
    });

    rule('S1009', 'a graph keeps disposed pinned arrays', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const source = device.pinned(MANY, 'i32');
      source.data.fill(5);
      using y = device.zeros(MANY, 'i32');
      const graph = stream.capture((s) => void s.copy(y, source));
      source[Symbol.dispose]();
      const others = Array.from({ length: 8 }, () => device.pinned(MANY, 'i32'));
      for (const other of others) other.data.fill(9);
      await stream.launch(graph).done;
      expect((await y.read()).every((value) => value === 5)).toBe(true);
      for (const other of others) other[Symbol.dispose]();
      await graph.close();
      await stream.close();
    });

    rule('S1009', 'close lets the memory go, after the launches that were submitted', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using y = device.zeros(MANY, 'i32');
      const before = await usedBytes(device);
      const x = device.full(MANY, 3, 'i32');
      const graph = stream.capture((s) => void s.copy(y, x));
      x[Symbol.dispose]();
      expect(await usedBytes(device)).toBeGreaterThanOrEqual(before + 4 * MANY);
      {
        await using latch = await hold(target, stream);
        stream.launch(graph);
        const closed = graph.close();
        using other = device.full(MANY, 8, 'i32');
        expect((await other.read())[0]).toBe(8);
        // A GPU's pool does not count memory whose free waits behind the latch.
        if (device.info.backend === 'cpu') expect((await device.pool.stats()).usedBytes).toBeGreaterThanOrEqual(before + 8 * MANY);
        latch.open();
        await closed;
      }
      expect((await y.read()).every((value) => value === 3)).toBe(true);
      await usedAgain(device, before);
      await stream.close();
    });

    rule('S1009', 'an array outlives the graphs that use it, and its dispose frees it', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const before = await usedBytes(device);
      const x = device.full(MANY, 3, 'i32');
      const graph = stream.capture((s) => void s.fill(x, 4));
      await stream.launch(graph).done;
      await graph.close();
      expect((await x.read())[0]).toBe(4);
      x[Symbol.dispose]();
      await usedAgain(device, before);
      await stream.close();
    });

    rule('S1010', 'an array allocated in a capture has no contents before the first launch', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using y = device.zeros(4, 'u32');
      using z = device.zeros(4, 'u32');
      let made: DeviceArray<'u32'> | undefined;
      const graph = stream.capture((s) => {
        made = s.full(4, 6, 'u32');
        s.copy(y, made);
      });
      const array = made!;
      for (const call of [
        () => array.read(),
        () => array.item(0),
        () => array.subarray(1).read(),
        () => stream.copy(z, array),
        () => stream.copy(new Uint32Array(4), array),
        () => device.stream.launch(mixKernel, ONE, { x: array, k: 1 }),
      ]) {
        // Calls that return promises may reject.
        expect(await rejectionOf((async () => call())()), String(call)).toBeInstanceOf(StateError);
      }
      expect([...(await z.read())]).toEqual([0, 0, 0, 0]);
      // Submitted is enough: a read waits for the launch. The graph is built before, because its build may wait for running kernels.
      await graph.upload().done;
      await using latch = await hold(target, stream);
      stream.launch(graph);
      const read = array.read();
      latch.open();
      expect([...(await read)]).toEqual([6, 6, 6, 6]);
      expect([...(await y.read())]).toEqual([6, 6, 6, 6]);
      array[Symbol.dispose]();
      await graph.close();
      await stream.close();
    });

    rule('S1026', 'a graph that reads an array of another capture is not launched before that has contents', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'u32');
      using y = device.zeros(4, 'u32');
      const made: DeviceArray<'u32'>[] = [];
      const first = stream.capture((s) => {
        for (let n = 0; n < 3; n++) made.push(s.full(4, 6 + n, 'u32'));
      });
      const [a, b, c] = made as [DeviceArray<'u32'>, DeviceArray<'u32'>, DeviceArray<'u32'>];
      const copying = stream.capture({ k: u32 }, (s, { k }) => {
        s.copy(x, a);
        s.launch(mixKernel, ONE, { x: y, k });
      });
      const changing = stream.capture((s) => void s.launch(mixKernel, ONE, { x: b, k: 1 }));
      const outer = stream.capture((s) => {
        s.fill(y, 9);
        s.launch(copying, { k: 1 });
      });
      // It writes the array itself before it reads it.
      const filling = stream.capture((s) => {
        s.fill(c, 1);
        s.copy(x, c);
      });
      const reads = stream.capture(
        { from: input(u32) },
        (s, { from }) => void s.launch(weaveKernel, { grid: 1, block: 4 }, { x: from, y, k: 1 }),
      );
      const changes = stream.capture({ x: inout(u32) }, (s, { x: slot }) => void s.launch(mixKernel, ONE, { x: slot, k: 1 }));
      // A capture that reads an array of its own and of an embedded graph needs no earlier launch.
      const whole = stream.capture((s) => {
        s.launch(first);
        s.copy(x, a);
        s.copy(y, s.full(4, 3, 'u32'));
      });
      for (const launch of [
        () => stream.launch(copying, { k: 1 }),
        () => stream.launch(changing),
        () => stream.launch(outer),
        () => stream.launch(reads, { from: b }),
        () => stream.launch(changes, { x: b }),
        () => copying.launch({ k: 2 }),
      ]) {
        const error = thrownBy(launch);
        expect(error, String(launch)).toBeInstanceOf(StateError);
        expect(error, String(launch)).not.toBeInstanceOf(CaptureError);
      }
      expect(thrownBy(() => stream.launch(copying, { k: 1 })).message).toMatch(
        /^Graph .* reads array .*, which another capture allocated and which has no contents yet: /,
      );
      // Nothing ran, and the graphs are usable.
      expect([...(await x.read()), ...(await y.read())]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
      await stream.launch(filling).done;
      expect([...(await x.read()), ...(await c.read())]).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
      expect(thrownBy(() => stream.launch(copying, { k: 1 }))).toBeInstanceOf(StateError);
      // What another operation writes counts, too.
      stream.fill(a, 4);
      stream.launch(copying, { k: 1 });
      expect([...(await x.read())]).toEqual([4, 4, 4, 4]);
      stream.launch(whole);
      expect([...(await x.read()), ...(await y.read())]).toEqual([6, 6, 6, 6, 3, 3, 3, 3]);
      for (const graph of [changing, outer]) await stream.launch(graph).done;
      expect([await b.item(0), await b.item(1)]).toEqual([mixed(7, 1, 1), 7]);
      await stream.launch(reads, { from: b }).done;
      await stream.launch(changes, { x: b }).done;
      for (const array of made) array[Symbol.dispose]();
      await Promise.all([first, copying, changing, outer, filling, reads, changes, whole].map((graph) => graph.close()));
      await stream.close();
    });

    rule('S1026', 'a call that was refused in the capture does not count as a read', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'u32');
      let made: DeviceArray<'u32'> | undefined;
      const first = stream.capture((s) => void (made = s.full(4, 6, 'u32')));
      const second = stream.capture((s) => {
        expect(thrownBy(() => s.launch(mixKernel, ONE, { x: made!, k: 'no' as never }))).toBeInstanceOf(ArgumentError);
        s.fill(x, 2);
      });
      await stream.launch(second).done;
      expect([...(await x.read())]).toEqual([2, 2, 2, 2]);
      made![Symbol.dispose]();
      await Promise.all([first.close(), second.close()]);
      await stream.close();
    });

    rule('S1010', 'each launch writes an array of the capture again, and other work uses it in between', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      const made: DeviceArray<'u32'>[] = [];
      const graph = stream.capture((s) => {
        made.push(s.full(4, 1, 'u32'), device.zeros(4, 'u32'));
        fork.waitStream(stream);
        made.push(fork.empty(4, 'u32'));
        fork.copy(made[2]!, made[0]!);
        s.launch(mixKernel, ONE, { x: made[0]!, k: 3 });
        made.push(made[0]!.clone());
      });
      for (let n = 0; n < 3; n++) {
        stream.launch(graph);
        const contents = await Promise.all(made.map((array) => array.item(0)));
        expect(contents).toEqual([mixed(1, 3, 1), 0, 1, mixed(1, 3, 1)]);
        for (const array of made) device.stream.fill(array, 50 + n);
        expect(await made[3]!.item(3)).toBe(50 + n);
      }
      const second = stream.capture((s) => void s.copy(made[1]!, made[0]!));
      stream.launch(second);
      expect(await made[1]!.item(2)).toBe(52);
      for (const array of made) array[Symbol.dispose]();
      await Promise.all([graph.close(), second.close()]);
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1010', 'launches allocate nothing: memory is flat over 1,000 of them', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using y = device.zeros(FEW, 'u32');
      using kept = device.zeros(1, 'u32');
      const graph = stream.capture({ k: u32 }, (s, { k }) => {
        using made = s.full(FEW, 2, 'u32');
        const more = s.zeros(FEW, 'u32');
        s.copy(more, made);
        s.copy(y, more.view([undefined, undefined, -1]));
        s.launch(mixKernel, ONE, { x: kept, k });
      });
      for (let n = 0; n < 10; n++) stream.launch(graph, { k: n });
      await device.synchronize();
      await device.pool.resetHighWater();
      const before = await memoryOf(device);
      for (let n = 0; n < 1000; n++) {
        stream.launch(graph, { k: n + 10 });
        if (n % 100 === 0) await stream.ready();
      }
      await device.synchronize();
      // Less where arrays of other tests were collected meanwhile.
      const after = await memoryOf(device);
      for (const [what, bytes] of Object.entries(before)) expect(after[what as keyof typeof after], what).toBeLessThanOrEqual(bytes);
      expect((await y.read()).every((value) => value === 2)).toBe(true);
      expect((await kept.read())[0]).toBe(mixed(0, 0, 1010));
      await graph.close();
      await stream.close();
    });

    rule('S1010', 'an array of a capture stays readable after close, until it is disposed; then its memory goes', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const before = await usedBytes(device);
      let made: DeviceArray<'i32'> | undefined;
      const graph = stream.capture((s) => {
        made = s.full(MANY, 6, 'i32');
      });
      stream.launch(graph);
      await graph.close();
      using other = device.full(MANY, 7, 'i32');
      expect((await made!.read()).every((value) => value === 6)).toBe(true);
      device.stream.fill(made!, 8);
      expect((await made!.read()).every((value) => value === 8)).toBe(true);
      expect((await other.read())[0]).toBe(7);
      made![Symbol.dispose]();
      other[Symbol.dispose]();
      await usedAgain(device, before);
      await stream.close();
    });

    rule('S1010', 'an array of a capture that is disposed stays with the graph until that is closed', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using y = device.zeros(MANY, 'i32');
      const before = await usedBytes(device);
      let made: DeviceArray<'i32'> | undefined;
      const graph = stream.capture((s) => {
        made = s.full(MANY, 6, 'i32');
        s.copy(y, made);
      });
      made![Symbol.dispose]();
      for (let n = 0; n < 2; n++) {
        using other = device.full(MANY, 9, 'i32');
        stream.launch(graph);
        expect((await y.read()).every((value) => value === 6)).toBe(true);
        expect((await other.read()).every((value) => value === 9)).toBe(true);
        device.stream.fill(y, 0);
      }
      await graph.close();
      await usedAgain(device, before);
      await stream.close();
    });

    rule('S1009', 'graphs that are closed right after their launch keep their own memory until it has run', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using sums = device.zeros([20, MANY / 4], 'i32');
      const graphs = Array.from({ length: 20 }, (_, n) =>
        stream.capture((s) => {
          using made = s.full(MANY / 4, n, 'i32');
          s.copy(sums.view(n), made);
        }),
      );
      // The driver of a GPU may wait for a running kernel while it builds a graph.
      for (const graph of graphs) await graph.upload(stream).done;
      await device.synchronize();
      await using latch = await hold(target, stream);
      const closed: Promise<void>[] = [];
      for (const graph of graphs) {
        stream.launch(graph);
        closed.push(graph.close());
      }
      using other = device.full(MANY, -1, 'i32');
      // A small read: page-locking memory for a large one may wait for the kernel of the latch.
      expect((await other.subarray(0, 64).read())[0]).toBe(-1);
      latch.open();
      await Promise.all(closed);
      const values = await sums.read();
      expect(Array.from({ length: 20 }, (_, n) => values[(n * MANY) / 4 + 7])).toEqual(Array.from({ length: 20 }, (_, n) => n));
      await stream.close();
    });

    rule('S1010', 'a graph that is closed before a launch leaves its arrays without contents', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const before = await usedBytes(device);
      let made: DeviceArray<'i32'> | undefined;
      const graph = stream.capture((s) => {
        made = s.full(MANY, 6, 'i32');
      });
      await graph.close();
      expect(await rejectionOf((async () => made!.read())())).toBeInstanceOf(StateError);
      made![Symbol.dispose]();
      await usedAgain(device, before);
      await stream.close();
    });
  });
});

// Chapter 3, third half: several copies as one operation.
import { describe, expect } from 'vitest';
import { ArgumentError, type CopyPair, type Operation, StreamHazardError, UpstreamError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { shifted } from '../../support/kernels.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('3 memory: batches of copies', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S316', 'copies pairs of every kind and element type as one operation', async () => {
      const { device } = chapter;
      await using stream = device.createStream();
      using a = stream.from(new Float32Array([1, 2, 3, 4]));
      using b = stream.zeros(6);
      using wide = stream.zeros(2, 'f64');
      using bytes = stream.zeros([2, 2], 'u8');
      using pinned = device.pinned(4);
      using halves = device.pinned(2, 'u16');
      halves.data.set([7, 8]);
      using upper = stream.zeros(2, 'u16');
      const read = new Float32Array(3);
      const shared = new Uint8Array(new SharedArrayBuffer(4));
      const source = new Float64Array([0.5, -2]);
      const seen: Operation[] = [];
      const watch = stream.operations$.subscribe((operation) => void seen.push(operation as Operation));
      const before = stream.fill(bytes, 9);
      const copied = stream.copyBatch(
        [
          // Without elements, so it conflicts with no other pair.
          [pinned.subarray(2, 2), a.subarray(0, 0)],
          [b.subarray(1, 5), a],
          [wide, source],
          [upper, halves],
          [pinned, a],
          [read, a.subarray(1)],
          [shared, bytes],
          [b.subarray(0, 0), a.subarray(0, 0)],
        ],
        { label: 'seven' },
      );
      source.fill(99);
      const after = stream.fill(a, 0);
      await copied.done;
      expect([copied.kind, copied.label, copied.bytes]).toEqual(['copy', 'seven', 16 + 16 + 4 + 16 + 12 + 4]);
      expect([...read]).toEqual([2, 3, 4]);
      expect([...shared]).toEqual([9, 9, 9, 9]);
      expect([...pinned.data]).toEqual([1, 2, 3, 4]);
      expect([...(await b.read())]).toEqual([0, 1, 2, 3, 4, 0]);
      expect([...(await wide.read())]).toEqual([0.5, -2]);
      expect([...(await upper.read())]).toEqual([7, 8]);
      await after.done;
      await stream.synchronize();
      watch.unsubscribe();
      const ids = seen.map(({ id }) => id).filter((id) => id >= before.id && id <= after.id);
      expect(ids).toEqual([...new Set(ids)]);
      expect(seen.filter(({ label }) => label === 'seven').map(({ kind, bytes: sum }) => [kind, sum])).toEqual([['copy', 68]]);
      expect(copied.id - before.id).toBe(1);
    });

    rule('S316', 'as many and as large pairs as the limit allows, and none', async () => {
      const { device } = chapter;
      const { stream } = device;
      expect((await stream.copyBatch([]).done) !== undefined).toBe(true);
      expect(stream.copyBatch([[new Float32Array(0), device.pinned(0)]]).bytes).toBe(0);
      const count = 512;
      using x = device.from(Float32Array.from({ length: count * 3 }, (_, n) => n));
      using y = device.zeros(count * 3);
      // In the opposite order.
      const part = (n: number): CopyPair => [y.subarray(3 * n, 3 * n + 3), x.subarray(3 * (count - 1 - n), 3 * (count - n))];
      await stream.copyBatch(Array.from({ length: count }, (_, n) => part(n))).done;
      const data = await y.read();
      expect(data.every((value, n) => value === 3 * (count - 1 - Math.floor(n / 3)) + (n % 3))).toBe(true);
      const large = 1_500_001;
      using big = device.from(Float32Array.from({ length: large }, (_, n) => n % 1000));
      using bigger = device.zeros(large);
      using small = device.zeros(1);
      const onHost = new Float32Array(large);
      await stream.copyBatch([
        [small, big.subarray(7, 8)],
        [bigger, big],
        [onHost, big],
      ]).done;
      expect(await small.item()).toBe(7);
      expect(onHost.every((value, n) => value === n % 1000)).toBe(true);
      expect((await bigger.read()).every((value, n) => value === n % 1000)).toBe(true);
    });

    rule('S316', 'is ordered by all its arrays between tracked streams, and is a hazard between checked ones', async () => {
      const { device } = chapter;
      const [a, b] = [device.createStream(), device.createStream()];
      using x = a.zeros(4, 'i32');
      using y = a.zeros(4, 'i32');
      using to = a.zeros(4, 'i32');
      using too = a.zeros(4, 'i32');
      {
        await using latch = await hold(target, a);
        a.fill(y, 5);
        a.fill(x, 4);
        // b reads what a will write, then a overwrites what b reads and reads what b writes.
        const batch = b.copyBatch([
          [to, x],
          [too, y],
        ]);
        a.fill(y, 6);
        a.fill(x, 6);
        const again = a.copyBatch([[x, too]]);
        expect([batch.isComplete, again.isComplete]).toEqual([false, false]);
        latch.open();
      }
      expect([...(await to.read()), ...(await too.read()), ...(await x.read())]).toEqual([4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5]);
      const [one, two] = [device.createStream({ ordering: 'checked' }), device.createStream({ ordering: 'checked' })];
      one.waitStream(a);
      two.waitStream(a);
      one.waitStream(b);
      two.waitStream(b);
      one.fill(y, 1);
      const racing = (): unknown =>
        two.copyBatch([
          [to, x],
          [too, y],
        ]);
      expect(thrownBy(racing)).toBeInstanceOf(StreamHazardError);
      two.waitStream(one);
      racing();
      expect(thrownBy(() => one.fill(to, 1))).toBeInstanceOf(StreamHazardError);
      await device.synchronize();
      expect([...(await too.read())]).toEqual([1, 1, 1, 1]);
      for (const stream of [a, b, one, two]) await stream.close();
    });

    rule('S316', 'each pair is a node of a graph', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 3);
      using y = device.zeros(4);
      using pinned = device.pinned(2);
      const graph = stream.capture((s) => {
        s.copyBatch(
          [
            [y, x],
            [pinned, x.subarray(2)],
          ],
          { label: 'pair' },
        );
        expect(thrownBy(() => s.copyBatch([[new Float32Array(4), x]]))).toMatchObject({ reason: 'readback' });
        expect(thrownBy(() => s.copyBatch([[y, new Float32Array(4)]]))).toMatchObject({ reason: 'unsupported-node' });
        s.copyBatch([]);
      });
      expect(graph.nodes.map(({ kind, label }) => [kind, label]).filter(([kind]) => kind === 'copy')).toEqual([
        ['copy', 'pair'],
        ['copy', 'pair'],
      ]);
      stream.fill(x, 8);
      await stream.launch(graph).done;
      expect([...(await y.read()), ...pinned.data]).toEqual([8, 8, 8, 8, 8, 8]);
      await graph.close();
      await stream.close();
    });

    rule('S317', 'refuses bad pairs by their number and submits nothing', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(8, 1);
      using y = device.full(8, 2);
      using whole = device.zeros(4, 'i32');
      using pinned = device.pinned(8);
      pinned.data.fill(3);
      const gone = device.zeros(4);
      gone[Symbol.dispose]();
      const host = new Float32Array(8);
      const good = [y, x] as const;
      const bad: readonly (readonly [pairs: unknown, ...parts: string[]])[] = [
        [undefined, 'undefined', 'pairs'],
        [[good, [x]], 'Pair 1', '[dst, src]'],
        [[good, x], 'Pair 1'],
        [[good, [whole, x]], 'Pair 1', 'element types', 'i32[4]', 'f32[8]'],
        [[[host, new Float32Array(8)]], 'Pair 0', 'Neither dst'],
        [[good, ['no', x]], 'Pair 1', 'dst', "'no'"],
        [[[x.subarray(0, 4), y]], 'Pair 0', '8'],
        [[[x.view([0, 8, 2]), pinned.subarray(0, 4)]], 'Pair 0', 'not contiguous', 'copy'],
        [[[y, x.view([7, undefined, -1])]], 'Pair 0', 'not contiguous', 'copy'],
        [[[x.subarray(0, 4), gone]], 'disposed'],
        [[[x.subarray(0, 4), x.subarray(2, 6)]], 'Pair 0', 'overlap'],
        [[good, [y.subarray(7), pinned.subarray(0, 1)]], 'Pairs 0 and 1', 'both write', '4 bytes'],
        [[[pinned, y], good], 'Pairs 0 and 1', 'one reads and one writes', '32 bytes'],
        [
          [
            [host, x],
            [host.subarray(3, 4), y.subarray(3, 4)],
          ],
          'Pairs 0 and 1',
          'both write',
        ],
        // A long interval before two short ones.
        [
          [
            [x, pinned],
            [y.subarray(0, 1), pinned.subarray(0, 1)],
            [y.subarray(1, 2), x.subarray(6, 7)],
          ],
          'Pairs 0 and 2',
          'one reads and one writes',
        ],
        [Array.from({ length: 513 }, () => good), '513', '(512)', 'several batches'],
      ];
      for (const [pairs, ...parts] of bad) {
        const error = thrownBy(() => stream.copyBatch(pairs as never));
        if (!parts.includes('disposed')) expect(error).toBeInstanceOf(ArgumentError);
        for (const part of parts) expect(error.message).toContain(part);
      }
      expect(thrownBy(() => stream.copyBatch([[y, x]], { labels: 'x' } as never)).message).toContain('labels');
      // Two pairs may read the same bytes, and neighbours may be written.
      await stream.copyBatch([
        [y.subarray(0, 4), x.subarray(0, 4)],
        [y.subarray(4), x.subarray(0, 4)],
        [host, x],
      ]).done;
      expect([...(await y.read()), ...host]).toEqual(Array.from({ length: 16 }, () => 1));
      expect(pinned.data.every((value) => value === 3)).toBe(true);
      await stream.close();
      expect(thrownBy(() => stream.copyBatch([[y, x]])).message).toContain('closed');
    });

    rule('S318', 'a poisoned source fails the batch and poisons all destinations', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.ones(10);
      using broken = device.zeros(10);
      using fine = device.ones(10);
      using to = device.zeros(10);
      using too = device.zeros(10);
      using pinned = device.pinned(10);
      const host = new Float32Array(10).fill(5);
      const failed = stream.launch(shifted, { threads: 10, block: 32 }, { x, y: broken, by: 3 });
      const cause = await rejectionOf(failed.done);
      const batch = stream.copyBatch([
        [to, fine],
        [too, broken],
        [pinned, fine],
        [host, fine],
      ]);
      const pinnedUse = stream.copy(x, pinned);
      const error = await rejectionOf(batch.done);
      expect(error).toBeInstanceOf(UpstreamError);
      expect((error.cause as Error).message).toBe(cause.message);
      expect(host.every((value) => value === 5)).toBe(true);
      for (const array of [to, too]) expect(await rejectionOf(array.read())).toBeInstanceOf(UpstreamError);
      expect(await rejectionOf(pinnedUse.done)).toBeInstanceOf(UpstreamError);
      // Whole destinations are whole again after the next batch.
      await stream.copyBatch([
        [to, fine],
        [too, fine],
        [x, fine],
      ]).done;
      expect([...(await to.read()), ...(await too.read())]).toEqual(Array.from({ length: 20 }, () => 1));
      await stream.close();
    });
  });
});

// Chapter 15: calls of a communicator that are issued together.
import { describe, expect } from 'vitest';
import { type DeviceArray, type DType, f32, openDevice } from 'millrace';
import { type Communicator, openCommunicator } from 'millrace/collectives';
import { tidy } from 'millrace/ops';
import { defineChapter } from '../../../support/chapter.js';
import { hold } from '../../../support/latch.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { eventually, isSettled, thrownBy } from '../../../support/wait.js';

defineChapter((target) => {
  describe('15 groups of collectives', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);
    const isOnCpu = target.spec.startsWith('cpu');
    const open = (): Promise<Communicator> => openCommunicator([chapter.device, chapter.other]);
    const both = <D extends DType>(ofRank: readonly (readonly number[])[], dtype: D): DeviceArray<D>[] =>
      [chapter.device, chapter.other].map((device, rank) => device.from(ofRank[rank]! as never, { dtype }) as DeviceArray<D>);
    const read = async (arrays: readonly DeviceArray[]): Promise<number[][]> =>
      (await Promise.all(arrays.map((array) => array.list()))).map((list) => [list as unknown].flat(Number.POSITIVE_INFINITY) as number[]);

    rule('S1335', 'calls of a group are issued together, and each has its operations', async () => {
      await using g = await open();
      const rows = both(
        [
          [1, 2, 3, 4],
          [5, 6, 7, 8],
        ],
        'f32',
      ).map((array) => array.reshape([2, 2]));
      const out = rows.map((array) => array.device.zeros([2, 2]));
      const early: unknown[] = [];
      // An all-to-all of its own, where rank 1 sends first.
      const [sent, sum] = g.group(() => {
        const all = [1, 0].flatMap((from) =>
          [0, 1].map((to) => g.send(rows[from]!.view(to), out[to]!.view(from), { label: `${from}${to}` })),
        );
        early.push(
          thrownBy(() => all[0]!.operations),
          thrownBy(() => all[0]!.done),
        );
        return [all, g.allReduce(rows, { op: 'max' })] as const;
      });
      expect(early).toMatchObject([{ name: 'StateError' }, { name: 'StateError' }]);
      for (const { operations, done, arrays } of sent) {
        expect([operations.length, arrays.length]).toEqual([1, 1]);
        await done;
      }
      await sum.done;
      expect(await read(out)).toEqual([
        [1, 2, 5, 6],
        [3, 4, 7, 8],
      ]);
      expect(await read(sum.arrays)).toEqual([
        [5, 6, 7, 8],
        [5, 6, 7, 8],
      ]);
      const streams = [chapter.device, chapter.other].map((device) => device.createStream({ ordering: 'explicit' }));
      const x = streams.map((stream, rank) => stream.full(4, rank + 1, f32));
      const held = await hold(target, streams[1]!);
      const [ofAll, none] = g.group(() => [
        g.allReduce(x, { streams, into: x }),
        g.allGather(
          streams.map((stream) => stream.zeros(0)),
          { streams },
        ),
      ]);
      expect(await isSettled(ofAll.done)).toBe(false);
      held.open();
      await Promise.all([ofAll.done, none.done]);
      expect((await read(x)).map((values) => values[3])).toEqual([3, 3]);
      expect(g.group(() => 'nothing')).toBe('nothing');
      const got = x[1]!.clone();
      const inTidy = g.group(() => tidy(() => [g.send(x[0]!, got), g.allReduce(x, { streams })]));
      await Promise.all(inTidy.map(({ done }) => done));
      expect((await read([got, ...inTidy[1]!.arrays])).map((values) => values[0])).toEqual([3, 6, 6]);
      await held[Symbol.asyncDispose]();
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S1335', 'a group that cannot be issued issues nothing', async () => {
      await using g = await open();
      await using other = await open();
      const x = both([[1], [2]], 'f32');
      const into = x[1]!.clone();
      const failure = new Error('of the program');
      let made: readonly DeviceArray[] = [];
      const call = (): unknown => {
        made = g.allReduce(x, { op: 'prod' }).arrays;
        return g.send(x[0]!, into);
      };
      const errors: readonly (readonly [object, () => unknown])[] = [
        [
          { message: failure.message },
          () => {
            call();
            throw failure;
          },
        ],
        [{ name: 'StateError' }, () => (call(), g.group(call))],
        [{ name: 'StateError' }, () => (call(), other.allReduce(x))],
        [{ name: 'StateError' }, () => (call(), g.barrier())],
        [{ name: 'ArgumentError', argument: 'fn' }, async () => call()],
        [{ name: 'ArgumentError', argument: 'fn' }, () => Promise.resolve(call())],
        [{ name: 'ArgumentError', argument: 'arrays' }, () => (call(), g.broadcast(into, { root: 1 }))],
        [{ name: 'ArgumentError', argument: 'arrays' }, () => (call(), g.send(x[0]!, into))],
        [{ name: 'ArgumentError', argument: 'arrays' }, () => (call(), g.allReduce(x, { into: x }))],
        [
          { name: 'StateError' },
          () => {
            using gone = x[0]!.clone();
            call();
            g.broadcast(gone);
          },
        ],
        [{ name: 'ArgumentError', argument: 'fn' }, 1 as never],
      ];
      for (const [expected, fn] of errors) {
        made = [];
        expect(
          thrownBy(() => g.group(fn)),
          String(fn),
        ).toMatchObject(expected);
        expect(made.every(({ isDisposed }) => isDisposed)).toBe(true);
      }
      expect(await read([into])).toEqual([[2]]);
      // Nothing of them is left.
      expect(await read(g.allReduce(x).arrays)).toEqual([[3], [3]]);
      if (isOnCpu) return;
      const many = Array.from({ length: 70 }, () => x[1]!.clone());
      expect(thrownBy(() => g.group(() => many.map((array) => g.send(x[0]!, array))))).toMatchObject({ argument: 'fn', limit: 125 });
    });
  });

  // On GPUs a group is one launch. The devices above are closed by now, so that this one has its own limit.
  if (!target.spec.startsWith('cpu')) return;
  describe('15 groups without room', () => {
    rulesOf(target)('S1335', 'a call that meets maxPending comes behind those before it', async () => {
      const device = await openDevice('cpu:0', { maxPending: 64 });
      const g = await openCommunicator([device]);
      const x = device.ones(1);
      const all = device.zeros(200);
      await device.synchronize();
      // However slow the calls are, none ends before the others.
      let open: (() => void) | undefined;
      device.stream.hold(() => new Promise<void>((resolve) => (open = resolve)), { timeoutMs: 60_000 });
      let made: readonly DeviceArray[] = [];
      const call = (): unknown => {
        made = g.allReduce([x]).arrays;
        return Array.from({ length: 199 }, (_, at) => g.send(x, all.view([at + 1, at + 2])));
      };
      expect(thrownBy(() => g.group(call)).name).toBe('LimitError');
      expect(made.map(({ isDisposed }) => isDisposed)).toEqual([true]);
      await eventually('the stream is held', () => open !== undefined);
      open!();
      await device.synchronize();
      const values = await all.read();
      expect([values[1], values[199]]).toEqual([1, 0]);
      for (const array of [x, all]) array[Symbol.dispose]();
      await g.close();
      await device.close();
    });
  });
});

// Chapter 15: collectives of two devices, by NCCL or a stand-in where they are GPUs, and of three CPU devices in a process of its own.
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { BoundsError, CollectiveError, f32, inout, kernel, type DeviceArray, type DType } from 'millrace';
import { openCommunicator, type Communicator, type Reduction } from 'millrace/collectives';
import { defineChapter } from '../../../support/chapter.js';
import { runChild } from '../../../support/child.js';
import { hold } from '../../../support/latch.js';
import { IS_LONG } from '../../../support/long.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { eventually, isSettled, rejectionOf, thrownBy } from '../../../support/wait.js';

const outside = kernel('collectives_outside', { x: inout(f32) }, ({ x }, { i }) => {
  x[i + 1000] = 1;
});

const FOLDS: Readonly<Record<Reduction, (a: number, b: number) => number>> = {
  sum: (a, b) => a + b,
  prod: (a, b) => a * b,
  min: Math.min,
  max: Math.max,
  mean: (a, b) => (a + b) / 2,
};
const DTYPES = ['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'f16', 'bf16', 'f32', 'f64'] as const satisfies readonly DType[];

defineChapter((target) => {
  describe('15 collectives', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);
    const isOnCpu = target.spec.startsWith('cpu');
    let opened: Communicator | undefined;
    const group = (): Communicator => opened!;
    const open = (): Promise<Communicator> => openCommunicator([chapter.device, chapter.other]);
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened?.close());
    const both = <D extends DType>(ofRank: readonly (readonly number[])[], dtype: D): DeviceArray<D>[] =>
      [chapter.device, chapter.other].map((device, rank) => device.from(ofRank[rank]! as never, { dtype }) as DeviceArray<D>);
    const read = async (arrays: readonly DeviceArray[]): Promise<number[][]> =>
      (await Promise.all(arrays.map((array) => array.list()))).map((list) => [list as unknown].flat(Number.POSITIVE_INFINITY) as number[]);

    rule('S1321', 'reductions of every dtype, the same bits on both ranks', async () => {
      const values = [
        [1, 7, 5, 3],
        [9, 2, 5, 4],
      ] as const;
      for (const [m, dtype] of (isOnCpu ? DTYPES : DTYPES.filter((one) => !['i16', 'u16'].includes(one))).entries()) {
        for (const [n, op] of (['sum', 'prod', 'min', 'max', 'mean'] as const).entries()) {
          // On CPU devices, each pair is a kernel to compile.
          if ((op === 'mean' && !/f\d/.test(dtype)) || (isOnCpu && !IS_LONG && (m + n) % 5 !== 0)) continue;
          const expected = values[0].map((value, at) => FOLDS[op](value, values[1][at]!));
          const { arrays, done } = group().allReduce(both(values, dtype), { op });
          await done;
          expect([dtype, op, await read(arrays)]).toEqual([dtype, op, [expected, expected]]);
        }
      }
      const wide = group().allReduce([chapter.device, chapter.other].map((device) => device.from(BigInt64Array.of(2n ** 53n, -5n))));
      for (const array of wide.arrays) expect(await array.read()).toEqual(BigInt64Array.of(2n ** 54n, -10n));
    });

    rule('S1321', 'sums of f16 are made in f32 and rounded once', async () => {
      // In f16, 2048 + 1 is 2048.
      const { arrays } = group().allReduce(
        both(
          [
            [2047, 60_000],
            [0.5, -59_999],
          ],
          'f16',
        ),
      );
      expect(await read(arrays)).toEqual([
        [2048, 0],
        [2048, 0],
      ]);
    });

    rule('S1321', 'elements go where those of NCCL go', async () => {
      const g = group();
      const x = both(
        [
          [1, 2],
          [3, 4],
        ],
        'i32',
      );
      expect(await read(g.allGather(x).arrays)).toEqual([
        [1, 2, 3, 4],
        [1, 2, 3, 4],
      ]);
      expect(await read(g.broadcast(x[1]!, { root: 1 }).arrays)).toEqual([
        [3, 4],
        [3, 4],
      ]);
      const rooted = g.reduce(x, { root: 1, op: 'max' });
      expect(await read(rooted.arrays)).toEqual([[3, 4]]);
      expect(rooted.arrays[0]!.device).toBe(chapter.other);
      expect(await read(g.reduceScatter(x).arrays)).toEqual([[4], [6]]);
      expect(await read(g.allToAll(x).arrays)).toEqual([
        [1, 3],
        [2, 4],
      ]);
      await g.send(x[0]!, x[1]!).done;
      expect(await read(x)).toEqual([
        [1, 2],
        [1, 2],
      ]);
    });

    rule('S1321', 'one device alone', async () => {
      await using one = await openCommunicator([chapter.other]);
      const x = [chapter.other.from([1, 2], { shape: [1, 2] })];
      const row = one.reduceScatter(x, { op: 'max' });
      const all = [one.allReduce(x, { op: 'mean' }), one.reduce(x), one.broadcast(x[0]!), one.allGather(x), one.allToAll(x), row];
      const same = [[1, 2]];
      for (const { arrays } of all) expect(await read(arrays)).toEqual(same);
      const into = chapter.other.zeros([1, 2]);
      await one.send(x[0]!, into).done;
      expect(await read([into])).toEqual(same);
      await one.barrier().done;
      expect(await read(one.allReduce([chapter.other.zeros(0)]).arrays)).toEqual([[]]);
    });

    rule('S1321', 'three devices, in the order of their ranks', async () => {
      const program = `
          import { openDevice } from 'millrace';
          import { openCommunicator } from 'millrace/collectives';
          const devices = await Promise.all(['cpu:0', 'cpu:1', 'cpu:2'].map((name) => openDevice(name)));
          const group = await openCommunicator(devices);
          // (2 ** 24 + 1) + 1 is 2 ** 24 in f32, 2 ** 24 + (1 + 1) is not.
          const x = devices.map((device, rank) => device.from([rank === 0 ? 2 ** 24 : 1, rank, 10 * rank]));
          const told = [group.allReduce(x), group.allGather(x), group.allToAll(x), group.reduceScatter(x, { op: 'max' })];
          for (const { arrays } of told) console.log(JSON.stringify(await Promise.all(arrays.map((array) => array.list()))));
          await Promise.all(devices.map((device) => device.close()));`;
      const { stdout, stderr } = await runChild(program, { MILLRACE_CPU_DEVICES: '3' });
      const rows = [
        [2 ** 24, 0, 0],
        [1, 1, 10],
        [1, 2, 20],
      ];
      expect(stderr).toBe('');
      expect(
        stdout
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as unknown),
      ).toEqual([
        [
          [2 ** 24, 3, 30],
          [2 ** 24, 3, 30],
          [2 ** 24, 3, 30],
        ],
        [rows, rows, rows],
        [
          [2 ** 24, 1, 1],
          [0, 1, 2],
          [0, 10, 20],
        ],
        [2 ** 24, 2, 20],
      ]);
    });

    rule('S1322', '`into` may be the operands, and views', async () => {
      const g = group();
      const x = both(
        [
          [1, 2, 3, 4],
          [5, 6, 7, 8],
        ],
        'i32',
      ).map((array) => array.reshape([2, 2]));
      const results = g.allToAll(x, { into: x });
      expect(results.arrays).toEqual(x);
      await results.done;
      expect(await read(x)).toEqual([
        [1, 2, 5, 6],
        [3, 4, 7, 8],
      ]);
      const columns = x.map((array) => array.transpose().view(0));
      await g.allReduce(columns, { into: columns }).done;
      expect(await read(x)).toEqual([
        [4, 2, 12, 6],
        [4, 4, 12, 8],
      ]);
    });

    rule('S1322', 'all streams wait before and after, also explicit ones', async () => {
      const g = group();
      const streams = [chapter.device, chapter.other].map((device) => device.createStream({ ordering: 'explicit' }));
      const x = streams.map((stream, rank) => stream.full(100, rank + 1, f32));
      const held = await hold(target, streams[1]!);
      streams[1]!.fill(x[1]!, 10);
      const { done } = g.allReduce(x, { streams, into: x });
      const barrier = g.barrier({ streams });
      streams[0]!.fill(x[0]!, 7);
      const late = streams[0]!.record().done;
      expect([await isSettled(done), await isSettled(barrier.done), await isSettled(late)]).toEqual([false, false, false]);
      held.open();
      await done;
      await barrier.done;
      await late;
      await Promise.all(streams.map((stream) => stream.synchronize()));
      expect((await read(x)).map((values) => values[99])).toEqual([7, 11]);
      await held[Symbol.asyncDispose]();
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S1323', 'what derives from a failure fails on every rank, and nothing else does', async () => {
      const g = group();
      const x = both(
        [
          [1, 2],
          [3, 4],
        ],
        'f32',
      );
      const failed = chapter.other.stream.launch(outside, 2, { x: x[1]! }).done.catch((error: unknown) => error);
      const { arrays, done } = g.allReduce(x);
      const ended = rejectionOf(done);
      const warnings: unknown[] = [];
      const note = (warning: unknown): void => void warnings.push(warning);
      process.on('warning', note);
      expect(await failed).toBeInstanceOf(BoundsError);
      expect(await ended).toMatchObject({ cause: expect.any(BoundsError) as unknown });
      for (const array of arrays) expect(await rejectionOf(array.read())).toMatchObject({ cause: expect.any(BoundsError) as unknown });
      expect(await read(g.broadcast(x[0]!).arrays)).toEqual([
        [1, 2],
        [1, 2],
      ]);
      await Promise.all([chapter.device.synchronize(), chapter.other.synchronize()]);
      process.off('warning', note);
      expect(warnings).toEqual([]);
    });

    rule('S1324', 'what does not fit is refused at the call', async () => {
      const g = group();
      const x = both(
        [
          [1, 2],
          [3, 4],
        ],
        'f32',
      );
      const [a, b] = x as [DeviceArray<'f32'>, DeviceArray<'f32'>];
      const i = both(
        [
          [1, 2],
          [3, 4],
        ],
        'i32',
      );
      const wrong: readonly (readonly [string, () => unknown])[] = [
        ['arrays', () => g.allReduce([a])],
        ['arrays', () => g.allReduce([b, a])],
        ['arrays', () => g.allReduce([a, i[1] as never])],
        ['arrays', () => g.allReduce([a, b.view([0, 1])])],
        ['op', () => g.allReduce(x, { op: 'average' as never })],
        ['op', () => g.allReduce(i, { op: 'mean' })],
        ['opts', () => g.allReduce(x, { root: 1 } as never)],
        ['root', () => g.reduce(x, { root: 2 })],
        ['into', () => g.allReduce(x, { into: [a] })],
        ['into', () => g.allGather(x, { into: x })],
        ['into', () => g.reduce(x, { root: 1, into: [a] })],
        ['streams', () => g.barrier({ streams: [chapter.device.stream, chapter.device.stream] })],
        ['arrays', () => g.reduceScatter(both([[1], [2]], 'f32'))],
        ['into', () => g.send(a, i[1] as never)],
      ];
      for (const devices of [[], [chapter.device, chapter.device]])
        expect(await rejectionOf(openCommunicator(devices))).toMatchObject({ name: 'ArgumentError', argument: 'devices' });
      for (const [argument, call] of wrong) {
        const error = thrownBy(call);
        expect([error.name, (error as { argument?: string }).argument], `${error.message} ${call.toString()}`).toEqual([
          'ArgumentError',
          argument,
        ]);
      }
    });

    rule('S1325', 'a closed or aborted communicator refuses calls, and closing waits', async () => {
      const g = await open();
      const x = both([[1], [2]], 'f32');
      const { arrays } = g.allReduce(x);
      await g.close();
      expect(await read(arrays)).toEqual([[3], [3]]);
      expect(thrownBy(() => g.allReduce(x))).toBeInstanceOf(CollectiveError);
      await g.close();
      const other = await open();
      other.abort();
      await eventually('the communicator refuses calls', () => {
        try {
          other.barrier();
          return false;
        } catch {
          return true;
        }
      });
      expect(thrownBy(() => other.barrier())).toBeInstanceOf(CollectiveError);
      await other.close();
    });

    rule('S1326', 'collectives of several communicators and streams run in the order of their calls', async () => {
      await using second = await open();
      const pairs = Array.from({ length: 2 }, () => [chapter.device, chapter.other].map((device) => device.createStream()));
      const x = both([[1], [2]], 'f64');
      for (let round = 0; round < 50; round++) {
        const g = round % 3 === 0 ? second : group();
        // 3, 6, 12, ...: each takes what the one before made.
        g.allReduce(x, { into: x, streams: pairs[round % 2]! });
        if (round % 10 === 9) g.send(x[round % 2]!, x[1 - (round % 2)]!, { streams: pairs[1]! });
      }
      expect(await read(x)).toEqual([[3 * 2 ** 49], [3 * 2 ** 49]]);
      for (const stream of pairs.flat()) await stream.close();
    });

    rule('S1327', 'empty arrays, and elements that only move', async () => {
      const none = both<'f32'>([[], []], 'f32');
      const { arrays, done } = group().allReduce(none);
      await done;
      expect(await read(arrays)).toEqual([[], []]);
      for (const dtype of ['bool', 'i8', 'u16', 'i16', 'u64'] as const) {
        const x = [chapter.device, chapter.other].map((device, rank) =>
          device.full([2, 3], (dtype === 'u64' ? BigInt(rank) : dtype === 'bool' ? rank === 1 : rank) as never, dtype),
        );
        const all = group().allGather(x).arrays;
        expect(all[1]!.shape).toEqual([2, 2, 3]);
        expect((await read(all)).map((list) => list.map(Number))).toEqual(
          Array.from({ length: 2 }, () => [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]),
        );
      }
      if (!isOnCpu) {
        const x = both([[1], [2]], 'i16');
        expect(thrownBy(() => group().allReduce(x))).toMatchObject({ argument: 'op' });
      }
    });
  });
});

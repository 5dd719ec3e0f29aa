// Chapter 9: what `overlap` accepts as a source, and what happens when values come faster than lanes are free.
import { Readable } from 'node:stream';
import { concat, defer, from, lastValueFrom, NEVER, of, repeat, retry, Subject, throwError, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  LimitError,
  overlap,
  overlapMap,
  type Device,
  type OverflowOptions,
  type Overlapped,
  type OverlapOptions,
  type Skipped,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { manualStage, watch, type ManualStage, type Seen } from '../../support/manual-stage.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf, thrownBy, turn } from '../../support/wait.js';

const echo = <T>(item: T): Promise<T> => Promise.resolve(item);

/** A run whose source and stage the test controls. */
interface Pushed {
  readonly source: Subject<number>;
  readonly manual: ManualStage<number, number>;
  readonly run: Overlapped<number>;
  readonly seen: Seen<number>;
  readonly skips: Skipped<number>[];
}

async function startPushed(device: Device, depth: number, overflow: OverflowOptions): Promise<Pushed> {
  const source = new Subject<number>();
  const manual = manualStage<number>();
  const skips: Skipped<number>[] = [];
  const run = overlap(device, source, { depth, ...overflow, onSkip: (skipped) => void skips.push(skipped) }, manual.stage);
  const seen = watch(run);
  await eventually('the source is subscribed to', () => source.observed);
  return { source, manual, run, seen, skips };
}

/** Ends the source, then lets every item succeed, also items that follow. */
async function finish({ source, manual, seen }: Pushed): Promise<void> {
  source.complete();
  await eventually('the run ends', () => {
    for (const call of manual.calls) call.resolve(call.item);
    return seen.end() !== 'open';
  });
}

defineChapter((target) => {
  describe('9 sources of overlap', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const [name, pause] of [
      ['at once', () => Promise.resolve()],
      ['turn by turn', turn],
    ] as const) {
      rule('S912', `'buffer' keeps maxQueue values that come ${name}, in order`, async () => {
        const pushed = await startPushed(chapter.device, 2, { overflow: 'buffer', maxQueue: 3 });
        for (const value of [0, 1, 2, 3, 4]) {
          pushed.source.next(value);
          await pause();
        }
        await eventually('two lanes are occupied', () => pushed.manual.calls.length === 2);
        await turn();
        expect(pushed.manual.items()).toEqual([0, 1]);
        await finish(pushed);
        expect([pushed.seen.end(), pushed.seen.values, pushed.skips]).toEqual(['complete', [0, 1, 2, 3, 4], []]);
      });

      rule('S912', `'buffer' ends the run at one value more that comes ${name}`, async () => {
        const pushed = await startPushed(chapter.device, 2, { overflow: 'buffer', maxQueue: 3 });
        const { source, seen, skips } = pushed;
        for (const value of [0, 1, 2, 3, 4, 5]) {
          source.next(value);
          await pause();
        }
        expect(source.observed).toBe(false);
        await finish(pushed);
        expect(seen.end()).toBeInstanceOf(LimitError);
        expect((seen.end() as LimitError).limit).toBe(3);
        expect((seen.end() as LimitError).message).toContain('3');
        expect(seen.values).toEqual([0, 1, 2, 3, 4].slice(0, seen.values.length));
        expect(skips).toEqual([]);
      });
    }

    rule('S912', "'buffer' with Infinity keeps every value", async () => {
      const values = Array.from({ length: 500 }, (_, n) => n);
      const run = overlap(chapter.device, from(values), { depth: 2, overflow: 'buffer', maxQueue: Infinity }, async (n) =>
        turn().then(() => n),
      );
      expect(await lastValueFrom(run.pipe(toArray()))).toEqual(values);
    });

    rule('S912', "with 'fail' no value waits", async () => {
      const pushed = await startPushed(chapter.device, 2, { overflow: 'fail' });
      pushed.source.next(0);
      pushed.source.next(1);
      await eventually('two lanes are occupied', () => pushed.manual.calls.length === 2);
      pushed.manual.calls[0]!.resolve(0);
      await eventually('the first result is there', () => pushed.seen.values.length === 1);
      pushed.source.next(2);
      await eventually('the free lane takes it', () => pushed.manual.calls.length === 3);
      expect(pushed.seen.end()).toBe('open');
      pushed.source.next(3);
      for (const call of pushed.manual.calls) call.resolve(call.item);
      await eventually('the run ends', () => pushed.seen.end() !== 'open');
      expect(pushed.seen.end()).toBeInstanceOf(LimitError);
      expect(pushed.source.observed).toBe(false);
      expect(pushed.manual.items()).toEqual([0, 1, 2]);
    });

    for (const [overflow, maxQueue, kept, dropped] of [
      ['latest', undefined, [0, 5], [1, 2, 3, 4]],
      ['latest', 2, [0, 4, 5], [1, 2, 3]],
      ['drop', undefined, [0], [1, 2, 3, 4, 5]],
      ['drop', 2, [0, 1, 2], [3, 4, 5]],
    ] as const) {
      rule('S912', `'${overflow}' with maxQueue ${maxQueue} drops values and tells onSkip and report()`, async () => {
        const pushed = await startPushed(chapter.device, 1, maxQueue === undefined ? { overflow } : { overflow, maxQueue });
        pushed.source.next(0);
        await eventually('the lane is occupied', () => pushed.manual.calls.length === 1);
        for (const value of [1, 2, 3, 4, 5]) pushed.source.next(value);
        await finish(pushed);
        expect([pushed.seen.end(), pushed.seen.values]).toEqual(['complete', kept]);
        expect(pushed.skips).toEqual(dropped.map((item) => ({ item, reason: 'overflow' })));
        expect(pushed.run.report()).toMatchObject({ items: kept.length, dropped: dropped.length, skipped: 0 });
      });
    }

    rule('S912', 'waiting values give results when the source completes, and when it fails', async () => {
      const source = concat(
        of(0, 1, 2),
        throwError(() => new Error('source')),
      );
      const ended = watch(overlap(chapter.device, source, { depth: 1, overflow: 'buffer', maxQueue: 9 }, echo));
      await eventually('the run ends', () => ended.end() !== 'open');
      expect(ended.end()).toMatchObject({ message: 'source' });
      const all = await lastValueFrom(
        of(0, 1, 2).pipe(overlapMap(chapter.device, { depth: 1, overflow: 'latest', maxQueue: 2 }, echo), toArray()),
      );
      expect(all).toEqual([0, 1, 2]);
    });

    const badOptions: readonly [string, OverlapOptions<number> & Partial<OverflowOptions>, object][] = [
      ['no overflow', {}, { argument: 'overflow' }],
      ['another overflow', { overflow: 'block' as 'drop' }, { argument: 'overflow', value: 'block' }],
      ["'buffer' without maxQueue", { overflow: 'buffer' }, { argument: 'maxQueue' }],
      ['a negative maxQueue', { overflow: 'buffer', maxQueue: -1 }, { argument: 'maxQueue', value: -1 }],
      ['half a value', { overflow: 'drop', maxQueue: 1.5 }, { argument: 'maxQueue', value: 1.5 }],
      ['no number', { overflow: 'buffer', maxQueue: NaN }, { argument: 'maxQueue', value: NaN }],
      ['a string', { overflow: 'buffer', maxQueue: '3' as unknown as number }, { argument: 'maxQueue', value: '3' }],
      ['no lane', { overflow: 'fail', depth: 0 }, { argument: 'depth', value: 0 }],
      ['too many lanes', { overflow: 'fail', depth: 1025 }, { argument: 'depth', value: 1025, limit: 1024 }],
      ['half a lane', { overflow: 'fail', depth: 1.5 }, { argument: 'depth', value: 1.5 }],
      ['no stream', { overflow: 'fail', streams: [] }, { argument: 'streams' }],
    ];
    for (const [name, options, facts] of badOptions) {
      rule('S912', `the call refuses ${name}`, () => {
        const bad = options as OverlapOptions<number> & OverflowOptions;
        for (const call of [() => overlap(chapter.device, NEVER, bad, echo), () => overlapMap(chapter.device, bad, echo)]) {
          const error = thrownBy(call);
          expect(error).toBeInstanceOf(ArgumentError);
          expect(error).toMatchObject(facts);
        }
      });
    }

    rule('S912', 'the call refuses values that are not a source, a stage or a device', () => {
      const { device } = chapter;
      for (const source of [undefined, null, 5, {}, { next: 1 }]) {
        const error = thrownBy(() => overlap(device, source as unknown as number[], {}, echo));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toMatchObject({ argument: 'source', value: source });
      }
      expect(thrownBy(() => overlap(device, [1], {}, undefined as unknown as typeof echo))).toMatchObject({ argument: 'stage' });
      expect(thrownBy(() => overlap([], [1], {}, echo))).toBeInstanceOf(ArgumentError);
      expect(thrownBy(() => overlap({} as Device, [1], {}, echo))).toBeInstanceOf(ArgumentError);
    });

    rule('S912', 'an Observable returned by a function needs overflow too', async () => {
      const run = overlap(chapter.device, (() => of(1)) as unknown as () => number[], {}, echo);
      const error = await rejectionOf(lastValueFrom(run));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error).toMatchObject({ argument: 'overflow' });
      const named = overlap(chapter.device, () => of(1, 2), { overflow: 'buffer', maxQueue: 2 }, echo);
      expect(await lastValueFrom(named.pipe(toArray()))).toEqual([1, 2]);
    });

    rule('S913', 'a function is called once for each run, and not before', async () => {
      let calls = 0;
      const run = overlap(
        chapter.device,
        () => {
          calls++;
          return [10 * calls, 10 * calls + 1].values();
        },
        {},
        echo,
      );
      expect(calls).toBe(0);
      const both = await Promise.all([lastValueFrom(run.pipe(toArray())), lastValueFrom(run.pipe(toArray()))]);
      expect(both).toEqual([
        [10, 11],
        [20, 21],
      ]);
      expect(await lastValueFrom(run.pipe(repeat(2), toArray()))).toEqual([30, 31, 40, 41]);
      const iterated: number[] = [];
      for await (const value of run) iterated.push(value);
      expect([iterated, calls]).toEqual([[50, 51], 5]);
    });

    rule('S913', 'retry starts with a new source after an error of the stage, of the source and of the function', async () => {
      const attempts: string[] = [];
      const run = overlap(
        chapter.device,
        () => {
          attempts.push('open');
          if (attempts.length === 1) throw new Error('function');
          return (function* items() {
            yield 1;
            if (attempts.length === 2) throw new Error('source');
            yield 2;
          })();
        },
        { depth: 1 },
        async (item: number) => {
          if (attempts.length === 3 && item === 2) throw new Error('stage');
          return echo(item);
        },
      );
      expect(await rejectionOf(lastValueFrom(run))).toMatchObject({ message: 'function' });
      expect(await rejectionOf(lastValueFrom(run))).toMatchObject({ message: 'source' });
      expect(await rejectionOf(lastValueFrom(run))).toMatchObject({ message: 'stage' });
      attempts.length = 0;
      const values = await lastValueFrom(run.pipe(retry(3), toArray()));
      expect(values.slice(-2)).toEqual([1, 2]);
      expect(attempts).toHaveLength(4);
    });

    rule('S913', 'an Observable made by a function, an async generator, a Node stream and a web stream are new for each run', async () => {
      const makers: readonly (() => AsyncIterable<number> | ReadableStream<number>)[] = [
        async function* items() {
          yield* [1, 2, 3];
        },
        () => Readable.from([1, 2, 3]),
        () => ReadableStream.from([1, 2, 3]) as unknown as ReadableStream<number>,
      ];
      for (const make of makers) {
        const run = overlap(chapter.device, make, { depth: 2 }, echo);
        expect(await lastValueFrom(run.pipe(repeat(2), toArray()))).toEqual([1, 2, 3, 1, 2, 3]);
      }
      const pushed = overlap(chapter.device, () => defer(() => of(1, 2)), { overflow: 'buffer', maxQueue: 2 }, echo);
      expect(await lastValueFrom(pushed.pipe(repeat(2), toArray()))).toEqual([1, 2, 1, 2]);
    });
  });
});

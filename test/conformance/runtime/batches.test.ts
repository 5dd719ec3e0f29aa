// Chapter 9: requests in batches, and batches of the values of an Observable.
import { concat, EMPTY, from, lastValueFrom, map, mergeMap, of, Subject, throwError, timer, toArray, VirtualTimeScheduler } from 'rxjs';
import { describe, expect } from 'vitest';
import { AbortError, ArgumentError, batchFor, createBatcher, type BatcherOptions } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { manualStage, watch } from '../../support/manual-stage.js';
import { randomFrom } from '../../support/random-text.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf, thrownBy } from '../../support/wait.js';

/** Longer than a test may take: a batch that waits for it fails the test. */
const NEVER_MS = 3_600_000;

defineChapter((target) => {
  describe('9 batches', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S919', 'a full batch runs at once, any other batch maxWaitMs after its first request', async () => {
      const { device } = chapter;
      const batches: (readonly number[])[] = [];
      const stage = async (items: readonly number[]): Promise<number[]> => {
        batches.push(items);
        return items.map((item) => item * 2);
      };
      const full = createBatcher(device, { depth: 1, maxItems: 4, maxWaitMs: NEVER_MS, maxQueue: 100 }, stage);
      expect(await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((item) => full.run(item)))).toEqual([2, 4, 6, 8, 10, 12, 14, 16]);
      expect(batches).toEqual([
        [1, 2, 3, 4],
        [5, 6, 7, 8],
      ]);
      // Accepted requests are finished without waiting for more.
      const rest = full.run(9);
      await full.close();
      expect(await rest).toBe(18);
      await using timed = createBatcher(device, { maxItems: 4, maxWaitMs: 30, maxQueue: 100 }, stage);
      batches.length = 0;
      const start = performance.now();
      expect(await Promise.all([timed.run(1), timed.run(2)])).toEqual([2, 4]);
      expect(performance.now() - start).toBeGreaterThan(28);
      expect(batches).toEqual([[1, 2]]);
    });

    rule('S919', 'a batch that fails or returns another number of results rejects its requests and no others', async () => {
      await using batcher = createBatcher(
        chapter.device,
        { maxItems: 3, maxWaitMs: NEVER_MS, maxQueue: 100 },
        async (items: readonly number[]) => {
          if (items.includes(1)) throw new Error('mine');
          return items.includes(4) ? items.slice(1) : items;
        },
      );
      const ends = await Promise.allSettled([0, 1, 2, 3, 4, 5, 6, 7, 8].map((item) => batcher.run(item)));
      for (const end of ends.slice(0, 3)) expect(end).toMatchObject({ status: 'rejected', reason: { message: 'mine' } });
      for (const end of ends.slice(3, 6)) {
        expect(end).toMatchObject({ status: 'rejected', reason: expect.any(ArgumentError) as unknown });
        expect((end as PromiseRejectedResult).reason).toMatchObject({ value: expect.any(Array) as unknown, limit: 3 });
      }
      expect(ends.slice(6).map((end) => (end as PromiseFulfilledResult<number>).value)).toEqual([6, 7, 8]);
    });

    rule('S919', 'an Error among the results of a batch rejects its request alone', async () => {
      await using batcher = createBatcher(
        chapter.device,
        { maxItems: 3, maxWaitMs: NEVER_MS, maxQueue: 100 },
        async (items: readonly number[]) => items.map((item) => (item < 0 ? new RangeError(`${item} is negative`) : Math.sqrt(item))),
      );
      const ends = await Promise.allSettled([4, -1, 9].map((item) => batcher.run(item)));
      expect(ends).toMatchObject([
        { status: 'fulfilled', value: 2 },
        { status: 'rejected', reason: { name: 'RangeError', message: '-1 is negative' } },
        { status: 'fulfilled', value: 3 },
      ]);
    });

    rule('S919', 'a request that is aborted while it waits is in no batch; a request beyond maxQueue is refused', async () => {
      const manual = manualStage<readonly number[], readonly number[]>();
      await using batcher = createBatcher(chapter.device, { depth: 1, maxItems: 2, maxWaitMs: NEVER_MS, maxQueue: 2 }, manual.stage);
      const aborter = new AbortController();
      const dropped = batcher.run(0, { signal: aborter.signal });
      aborter.abort();
      expect(await rejectionOf(dropped)).toBeInstanceOf(AbortError);
      const served = [batcher.run(1), batcher.run(2)];
      await eventually('the batch runs', () => manual.calls.length === 1);
      served.push(batcher.run(3), batcher.run(4));
      expect(await rejectionOf(batcher.run(5))).toMatchObject({ limit: 2 });
      manual.calls[0]!.resolve([10, 20]);
      await eventually('the next batch runs', () => manual.calls.length === 2);
      manual.calls[1]!.resolve([30, 40]);
      expect(await Promise.all(served)).toEqual([10, 20, 30, 40]);
      expect(manual.items()).toEqual([
        [1, 2],
        [3, 4],
      ]);
    });

    const goodBatcher: BatcherOptions = { maxItems: 4, maxWaitMs: 1, maxQueue: 4 };
    for (const [options, facts] of [
      [{ maxItems: 0 }, { argument: 'maxItems', value: 0 }],
      [{ maxItems: 1.5 }, { argument: 'maxItems', value: 1.5 }],
      [{ maxWaitMs: -1 }, { argument: 'maxWaitMs', value: -1 }],
      [{ maxQueue: 3 }, { argument: 'maxQueue', value: 3, limit: 4 }],
    ] as const) {
      rule('S919', `the call refuses ${JSON.stringify(options)}`, () => {
        const error = thrownBy(() => createBatcher(chapter.device, { ...goodBatcher, ...options }, (items) => Promise.resolve(items)));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toMatchObject(facts);
      });
    }

    rule('S940', 'batches follow their limits at random times of a virtual clock', () => {
      for (let seed = 1; seed <= 60; seed++) {
        const random = randomFrom(seed);
        const [maxItems, maxWaitMs] = [1 + random(5), random(8)];
        const scheduler = new VirtualTimeScheduler();
        let at = 0;
        const times = Array.from({ length: 30 }, () => (at += random(6)));
        const seen: { readonly batch: readonly number[]; readonly atMs: number }[] = [];
        from(times)
          .pipe(
            mergeMap((time, n) => timer(time, scheduler).pipe(map(() => n))),
            batchFor({ maxItems, maxWaitMs, scheduler }),
          )
          .subscribe((batch) => void seen.push({ batch, atMs: scheduler.now() }));
        scheduler.flush();
        expect(seen.flatMap(({ batch }) => batch)).toEqual(times.map((_, n) => n));
        for (const { batch, atMs } of seen) {
          expect(batch.length).toBeGreaterThan(0);
          expect(batch.length).toBeLessThanOrEqual(maxItems);
          const first = times[batch[0]!]!;
          if (batch.length === maxItems) expect(atMs).toBe(times[batch.at(-1)!]);
          else if (batch.at(-1) !== times.length - 1) expect(atMs).toBe(first + maxWaitMs);
          expect(atMs).toBeLessThanOrEqual(first + maxWaitMs);
        }
      }
    });

    rule('S940', 'completion emits the rest at once, an error emits nothing, unsubscribing ends the source and the timer', async () => {
      const limits = { maxItems: 3, maxWaitMs: NEVER_MS };
      expect(await lastValueFrom(of(1, 2, 3, 4).pipe(batchFor(limits), toArray()))).toEqual([[1, 2, 3], [4]]);
      expect(await lastValueFrom(EMPTY.pipe(batchFor(limits), toArray()))).toEqual([]);
      const failed = watch(
        concat(
          of(1, 2, 3, 4),
          throwError(() => new Error('source')),
        ).pipe(batchFor(limits)),
      );
      expect([failed.values[0], failed.end()]).toEqual([[1, 2, 3], new Error('source')]);
      const scheduler = new VirtualTimeScheduler();
      const source = new Subject<number>();
      const left = watch(source.pipe(batchFor({ maxItems: 3, maxWaitMs: 5, scheduler })));
      source.next(1);
      left.unsubscribe();
      scheduler.flush();
      expect([left.values, source.observed]).toEqual([[], false]);
    });

    rule('S940', 'the call refuses bad limits', () => {
      for (const [limits, facts] of [
        [
          { maxItems: 0, maxWaitMs: 1 },
          { argument: 'maxItems', value: 0 },
        ],
        [
          { maxItems: NaN, maxWaitMs: 1 },
          { argument: 'maxItems', value: NaN },
        ],
        [
          { maxItems: 1, maxWaitMs: -1 },
          { argument: 'maxWaitMs', value: -1 },
        ],
        [
          { maxItems: 1, maxWaitMs: NaN },
          { argument: 'maxWaitMs', value: NaN },
        ],
      ] as const) {
        const error = thrownBy(() => batchFor(limits));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toMatchObject(facts);
      }
    });
  });
});

// Chapter 9: pipelines on devices of millrace/testing, beside the same pipelines on this device.
import { lastValueFrom, of, Subject, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import {
  createBatcher,
  createLanes,
  download,
  f32,
  inout,
  kernel,
  launch,
  LimitError,
  overlap,
  overlapMap,
  upload,
  type Device,
  type Overlapped,
  type OverlapReport,
} from 'millrace';
import { createTestClock, createTestDevice, testKernel } from 'millrace/testing';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const square = kernel('square', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i]! * x[i]!;
});

/** Items that pass, one that passes the second time, and one that is skipped. */
function pipeline(device: Device): Overlapped<Float32Array> {
  const opts = { depth: 2, onError: { retry: 1, delayMs: 1, then: 'skip' } } as const;
  return overlap(device, [1, 2, 3, 4, 5], opts, (n, lane) => {
    if (n === 2 && lane.attempt === 1) throw new Error('later');
    const values = new Float32Array(3).fill(n);
    if (n === 4) throw new Error('never');
    return of(values).pipe(
      upload(lane),
      launch(lane, square, 3, (x) => ({ x })),
      download(lane),
    );
  });
}

async function outcome(device: Device): Promise<{ readonly values: unknown; readonly counts: Partial<OverlapReport> }> {
  const run = pipeline(device);
  const values = await lastValueFrom(run.pipe(toArray()));
  const { items, skipped, retried, depth } = run.report();
  return { values, counts: { items, skipped, retried, depth } };
}

defineChapter((target) => {
  describe('9 virtual time', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S945', 'no value is missed behind subscribe, and pipelines can be chained', async () => {
      const source = new Subject<number>();
      const opts = { overflow: 'buffer', maxQueue: 10 } as const;
      const plusOne = async (n: number): Promise<number> => n + 1;
      const results = lastValueFrom(
        source.pipe(overlapMap(chapter.device, opts, plusOne), overlapMap(chapter.device, opts, plusOne), toArray()),
      );
      expect(source.observed).toBe(true);
      for (const n of [1, 2, 3]) source.next(n);
      source.complete();
      expect(await results).toEqual([3, 4, 5]);
      const pulled = overlap(chapter.device, overlap(chapter.device, [1, 2, 3], plusOne), plusOne);
      expect(await lastValueFrom(pulled.pipe(toArray()))).toEqual([3, 4, 5]);
    });

    rule('S944', 'a test device gives the results, failures and counts of this device, in the time that it was told', async () => {
      const clock = createTestClock();
      const run = ({ x }: { readonly x: Float32Array }): void => x.forEach((value, i) => (x[i] = value * value));
      const device = createTestDevice({ clock, kernels: [testKernel(square, { ms: 10, run })] });
      const virtual = await clock.run(() => outcome(device));
      expect(virtual).toEqual(await outcome(chapter.device));
      expect(virtual.counts).toEqual({ items: 4, skipped: 1, retried: 2, depth: 2 });
      // Two lanes: 1 ends at 10, 2 (which waits 1 ms) at 11, 3 at 20. 4 fails from 11 to 12 and keeps its lane until 3 has gone, so 5 ends at 30.
      expect(clock.now).toBe(30);
      await device.close();
    });

    rule('S946', 'batches follow a target for the latency, and each request has its own answer', async () => {
      await using batcher = createBatcher(
        chapter.device,
        { targetLatencyMs: 1000, maxQueue: 1000, depth: 1 },
        async (items: readonly number[], lane) => {
          const x = lane.from(Float32Array.from(items));
          lane.stream.launch(square, items.length, { x });
          return x.read();
        },
      );
      const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => batcher.run(n)));
      expect(answers).toEqual(Array.from({ length: 200 }, (_, n) => n * n));
      const { count, largestItems, meanItems, limitItems } = batcher.report().batches;
      // 1, 2, 4, 8 and so on, as the stage takes far less than the target.
      expect([count * meanItems, largestItems >= 8, limitItems > 8]).toEqual([200, true, true]);
    });

    rule('S946', 'the latency of 95 of 100 requests stays below the target, in virtual time', async () => {
      const clock = createTestClock();
      const device = createTestDevice({ clock });
      const batcher = createBatcher(device, { targetLatencyMs: 20, maxQueue: 1000, depth: 1 }, async (items: readonly number[]) => {
        await clock.sleep(2 + items.length / 2);
        return items;
      });
      await clock.run(async () => {
        const requests: Promise<number>[] = [];
        for (let n = 0; n < 400; n++) {
          requests.push(batcher.run(n));
          await clock.sleep(1);
        }
        await Promise.all(requests);
        await batcher.close();
        await device.close();
      });
      const { p95Ms, meanItems } = batcher.report().batches;
      expect(p95Ms).toBeLessThanOrEqual(20);
      expect(meanItems).toBeGreaterThan(4);
    });

    rule('S951', 'with maxQueueMs, those that are answered have waited no longer for a lane, in virtual time', async () => {
      const clock = createTestClock();
      const device = createTestDevice({ clock });
      const begun: number[] = [];
      const lanes = createLanes(device, { depth: 1, maxQueue: 100, maxQueueMs: 25 }, async (sinceMs: number) => {
        begun.push(clock.now - sinceMs);
        await clock.sleep(10);
      });
      let settled: PromiseSettledResult<void>[] = [];
      await clock.run(async () => {
        const requests: Promise<PromiseSettledResult<void>[]>[] = [];
        for (let n = 0; n < 200; n++) {
          requests.push(Promise.allSettled([lanes.run(clock.now)]));
          await clock.sleep(1);
        }
        settled = (await Promise.all(requests)).flat();
        await lanes.close();
        await device.close();
      });
      const refused = settled.filter((one) => one.status === 'rejected').map(({ reason }) => reason as LimitError);
      expect(refused.every((error) => error instanceof LimitError && error.limit === 25)).toBe(true);
      // The lane never rests: one is answered every 10 ms, also of those that wait at the end.
      expect([begun.length, begun.length + refused.length]).toEqual([23, 200]);
      expect(Math.max(...begun)).toBeLessThanOrEqual(25);
      expect(Math.max(...begun.slice(5))).toBeGreaterThan(15);
    });

    rule('S951', 'a batch that waits for more requests while a lane is free is not late', async () => {
      const clock = createTestClock();
      const device = createTestDevice({ clock });
      const batcher = createBatcher(
        device,
        { maxItems: 8, maxWaitMs: 50, maxQueue: 8, maxQueueMs: 10, depth: 2 },
        async (items: readonly number[]) => items,
      );
      await clock.run(async () => {
        const first = batcher.run(1);
        await clock.sleep(40);
        expect(await Promise.all([first, batcher.run(2)])).toEqual([1, 2]);
        await batcher.close();
        await device.close();
      });
    });
  });
});

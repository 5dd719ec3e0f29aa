// Batches by a target for the latency, in virtual time: the stage takes a fixed time and a time for each request.
import { describe, expect, test } from 'vitest';
import { createBatcher, createLanes, type BatcherOptions, type LanesReport } from '../../../src/index.js';
import { createTestClock, createTestDevice } from '../../../src/testing/index.js';

interface Load {
  /** Requests in a millisecond. */
  readonly rate: number;
  readonly ms: number;
  /** How long a batch takes. */
  readonly stageMs: (items: number) => number;
}

/** The loads one after another, with random gaps; the report and the latencies of the requests at the end of each. */
async function serve(
  opts: Omit<BatcherOptions, 'maxQueue'>,
  loads: readonly Load[],
  seed = 1,
): Promise<readonly (LanesReport & { readonly latePart: number })[]> {
  const clock = createTestClock();
  const device = createTestDevice({ clock });
  let state = seed;
  const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  let { stageMs } = loads[0]!;
  const batcher = createBatcher(device, { ...opts, maxQueue: 10_000 } as BatcherOptions, async (items: readonly number[]) => {
    await clock.sleep(stageMs(items.length));
    return items;
  });
  const reports: (LanesReport & { readonly latePart: number })[] = [];
  await clock.run(async () => {
    for (const load of loads) {
      ({ stageMs } = load);
      const end = clock.now + load.ms;
      const latencies: number[] = [];
      const requests: Promise<unknown>[] = [];
      while (clock.now < end) {
        await clock.sleep(-Math.log(random()) / load.rate);
        const startMs = clock.now;
        requests.push(batcher.run(startMs).then(() => latencies.push(clock.now - startMs)));
      }
      await Promise.all(requests);
      // The first third is for the sizes to settle.
      const settled = latencies.slice(latencies.length / 3);
      const latePart = settled.filter((ms) => ms > (opts.targetLatencyMs ?? 0)).length / settled.length;
      reports.push({ ...batcher.report(), latePart });
    }
    await batcher.close();
    await device.close();
  });
  return reports;
}

const quick = (items: number): number => 2 + 0.5 * items;
const slow = (items: number): number => 2 + 1.5 * items;

describe('batches by a target', () => {
  test('shrink when the stage becomes slower, and grow again', async () => {
    const loads = [
      { rate: 1, ms: 600, stageMs: quick },
      { rate: 0.35, ms: 1200, stageMs: slow },
      { rate: 1, ms: 1200, stageMs: quick },
    ];
    const [first, second, third] = await serve({ targetLatencyMs: 20, depth: 1 }, loads);
    expect(second!.batches.limitItems).toBeLessThan(first!.batches.limitItems);
    // At most 9 ms for a batch: 2 + 1.5 * 4.
    expect(second!.batches.limitItems).toBeLessThanOrEqual(5);
    expect(second!.latePart).toBeLessThanOrEqual(0.05);
    expect(third!.batches.limitItems).toBeGreaterThan(second!.batches.limitItems);
    expect(third!.latePart).toBeLessThanOrEqual(0.05);
  });

  test('wait for more requests as long as the target allows, and no longer than maxWaitMs', async () => {
    const load = [{ rate: 0.2, ms: 1500, stageMs: quick }];
    const [byTarget] = await serve({ targetLatencyMs: 20, depth: 1 }, load);
    expect(byTarget!.latePart).toBeLessThanOrEqual(0.05);
    expect(byTarget!.batches.meanItems).toBeGreaterThan(1.5);
    const [impatient] = await serve({ targetLatencyMs: 20, maxWaitMs: 0, depth: 1 }, load);
    expect(impatient!.batches.meanItems).toBeLessThan(byTarget!.batches.meanItems);
  });

  test('are never larger than maxItems', async () => {
    const [report] = await serve({ targetLatencyMs: 50, maxItems: 3, depth: 2 }, [{ rate: 1, ms: 600, stageMs: quick }]);
    expect(report!.batches).toMatchObject({ largestItems: 3, limitItems: 3 });
  });
});

describe('a batch of a fixed size', () => {
  test('waits from the call of its first request, also where the lanes were occupied meanwhile', async () => {
    const clock = createTestClock();
    const device = createTestDevice({ clock });
    const begins: number[] = [];
    const batcher = createBatcher(device, { maxItems: 2, maxWaitMs: 5, maxQueue: 9, depth: 1 }, async (items: readonly number[]) => {
      begins.push(clock.now);
      await clock.sleep(10);
      return items;
    });
    await clock.run(async () => {
      await Promise.all([batcher.run(1), batcher.run(2), batcher.run(3)]);
      await batcher.close();
      await device.close();
    });
    // The third has waited for 10 ms when the lane is free.
    expect(begins).toEqual([0, 10]);
    expect(batcher.report().batches).toEqual({ count: 2, meanItems: 1.5, largestItems: 2, limitItems: 2, p95Ms: 20 });
  });
});

describe('options', () => {
  const device = createTestDevice({ clock: createTestClock() });
  const stage = async (items: readonly number[]): Promise<readonly number[]> => items;
  test.each([
    ['targetLatencyMs', { targetLatencyMs: 0, maxQueue: 10 }],
    ['targetLatencyMs', { targetLatencyMs: '20', maxQueue: 10 }],
    ['maxItems', { maxWaitMs: 5, maxQueue: 10 }],
    ['maxWaitMs', { maxItems: 5, maxQueue: 10 }],
    ['opts', { maxItems: 5, maxWaitMs: 5, maxQueue: 10, onSkip: () => undefined }],
  ])('a batcher refuses a bad %s', (argument, opts) => {
    const refused = expect.objectContaining({ name: 'ArgumentError', argument });
    expect(() => createBatcher(device, opts as never, stage)).toThrow(refused as Error);
  });

  test('lanes skip no request: onSkip is refused', () => {
    const opts = { maxQueue: 1, onSkip: () => undefined };
    expect(() => createLanes(device, opts, async (n: number) => n)).toThrow("There is no option 'onSkip'");
  });
});

// Requests on lanes, and values that come while lanes are occupied.
import { from, of, EMPTY } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ArgumentError } from '../../../src/core/base/errors.js';
import { createBatcher } from '../../../src/reactive/batcher.js';
import { createLanes } from '../../../src/reactive/lanes.js';
import { overlap } from '../../../src/reactive/overlap.js';
import { fakeDevice, settleAll } from './fakes.js';
import { collect, forbidUnhandledRejections } from './helpers.js';

forbidUnhandledRejections();

describe('an Observable that does not wait', () => {
  const run = (overflow: 'latest' | 'drop', depth: number): Promise<[number[], unknown[]]> => {
    const dropped: unknown[] = [];
    const { device } = fakeDevice();
    const options = { overflow, depth, onSkip: ({ item }: { readonly item: number }) => void dropped.push(item) };
    return collect(overlap(device, from([1, 2, 3, 4, 5]), options, (item) => settleAll().then(() => item))).then((got) => [got, dropped]);
  };

  it.each([
    ['latest', 3, [1, 2, 3, 5], [4]],
    ['latest', 1, [1, 5], [2, 3, 4]],
    ['drop', 3, [1, 2, 3], [4, 5]],
  ] as const)('%s on %i lanes drops no value that a free lane takes', async (overflow, depth, results, dropped) => {
    expect(await run(overflow, depth)).toEqual([results, dropped]);
  });
});

it('destroyed lanes reject waiting and running requests with an AbortError', async () => {
  const { device, streams } = fakeDevice();
  const lanes = createLanes(device, { depth: 1, maxQueue: 1, onError: { retry: 9, delayMs: 3_600_000 } }, () =>
    Promise.reject(new Error('bad')),
  );
  const answers = Promise.allSettled([lanes.run(1), lanes.run(2)]);
  await settleAll();
  await lanes.destroy();
  expect((await answers).map((answer) => answer.status === 'rejected' && (answer.reason as Error).name)).toEqual([
    'AbortError',
    'AbortError',
  ]);
  expect(streams.every(({ isClosed }) => isClosed)).toBe(true);
});

describe('a batcher', () => {
  const limits = { maxItems: 3, maxWaitMs: 0, maxQueue: 10 };

  it('accepts an array, a typed array or the last value of an Observable', async () => {
    const { device } = fakeDevice();
    for (const stage of [
      (items: readonly number[]) => Promise.resolve(items.map((item) => item * 2)),
      (items: readonly number[]) => Promise.resolve(Float64Array.from(items, (item) => item * 2)),
      (items: readonly number[]) =>
        of(
          [0, 0],
          items.map((item) => item * 2),
        ),
    ]) {
      await using batcher = createBatcher<number, number>(device, limits, stage);
      expect(await Promise.all([batcher.run(1), batcher.run(2), batcher.run(3), batcher.run(4)])).toEqual([2, 4, 6, 8]);
    }
  });

  it('rejects a batch that has too few results, or none', async () => {
    const { device } = fakeDevice();
    await using short = createBatcher<number, number>(device, limits, () => Promise.resolve([1]));
    const answers = await Promise.allSettled([short.run(1), short.run(2)]);
    expect(answers.map((answer) => answer.status === 'rejected' && answer.reason instanceof ArgumentError)).toEqual([true, true]);
    await using empty = createBatcher<number, number>(device, limits, () => EMPTY);
    await expect(empty.run(1)).rejects.toThrow('no elements');
  });
});

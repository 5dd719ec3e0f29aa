import { describe, expect, it } from 'vitest';
import type { Lane } from '../../../src/reactive/lane.js';
import { overlap } from '../../../src/reactive/overlap.js';
import { counter, fakeDevice, settleAll } from './fakes.js';
import { collect, forbidUnhandledRejections, manual } from './helpers.js';

forbidUnhandledRejections();

describe('pulling', () => {
  it('does nothing before it is iterated or subscribed to', async () => {
    const { source, seen } = counter();
    const { device, streams } = fakeDevice();
    overlap(device, source, {}, (item) => Promise.resolve(item));
    await settleAll();
    expect(seen.pulled).toBe(0);
    expect(streams).toEqual([]);
  });

  it('frees a lane only when its result was taken and the next one requested', async () => {
    const { source, seen } = counter();
    const { device } = fakeDevice();
    const iterator = overlap(device, source, { depth: 2 }, (item) => Promise.resolve(item))[Symbol.asyncIterator]();
    expect(await iterator.next()).toEqual({ done: false, value: 0 });
    await settleAll();
    expect(seen.pulled).toBe(2);
    expect(await iterator.next()).toEqual({ done: false, value: 1 });
    await settleAll();
    expect(seen.pulled).toBe(3);
    await iterator.return?.();
  });

  it('answers concurrent calls of next() in order', async () => {
    const { device } = fakeDevice();
    const iterator = overlap(device, [1, 2], { depth: 1 }, (item) => Promise.resolve(item))[Symbol.asyncIterator]();
    const answers = await Promise.all([iterator.next(), iterator.next(), iterator.next(), iterator.next()]);
    expect(answers.map((answer) => answer.value as unknown)).toEqual([1, 2, undefined, undefined]);
    expect(answers.map((answer) => answer.done)).toEqual([false, false, true, true]);
  });
});

describe('order', () => {
  it('keeps the order of the source whatever finishes first', async () => {
    const { device } = fakeDevice();
    const { stage, items } = manual();
    const results = collect(overlap(device, [0, 1, 2], { depth: 3 }, stage));
    await settleAll();
    for (const item of [2, 1, 0]) items.get(item)?.resolve(`item ${String(item)}`);
    expect(await results).toEqual(['item 0', 'item 1', 'item 2']);
  });

  it('gives results as they are ready when ordered is false', async () => {
    const { device } = fakeDevice();
    const { stage, items } = manual();
    const results = collect(overlap(device, [0, 1, 2, 3], { depth: 3, ordered: false }, stage));
    await settleAll();
    for (const item of [2, 1, 3, 0]) {
      items.get(item)?.resolve(`item ${String(item)}`);
      await settleAll();
    }
    expect(await results).toEqual(['item 2', 'item 1', 'item 3', 'item 0']);
  });
});

describe('lanes', () => {
  it('have a stream each, or use the given streams in turn and leave them open', async () => {
    const fake = fakeDevice();
    const labels: string[] = [];
    const note = (item: number, lane: Lane): Promise<number> => {
      labels.push(lane.stream.label);
      return settleAll().then(() => item);
    };
    await collect(overlap(fake.device, [0, 1, 2], { depth: 3 }, note));
    expect(labels).toEqual(['lane 0', 'lane 1', 'lane 2']);
    expect(fake.streams.every((stream) => stream.isClosed)).toBe(true);
    labels.length = 0;
    const given = [fake.device.createStream({ label: 'a' }), fake.device.createStream({ label: 'b' })];
    await collect(overlap(fake.device, [0, 1, 2], { depth: 3, streams: given }, note));
    expect(labels).toEqual(['a', 'b', 'a']);
    expect(fake.streams.slice(3).some((stream) => stream.isClosed)).toBe(false);
  });
});

describe('the report', () => {
  it('distinguishes a slow source, a slow stage and a slow consumer', async () => {
    const { device } = fakeDevice();
    const pause = (): Promise<void> =>
      new Promise((resolve) => {
        setTimeout(resolve, 4);
      });
    async function* slow(): AsyncGenerator<number> {
      for (let item = 0; item < 5; item++) {
        await pause();
        yield item;
      }
    }
    const fast = (item: number): Promise<number> => Promise.resolve(item);
    const bySource = overlap(device, slow(), { depth: 2 }, fast);
    await collect(bySource);
    const byStage = overlap(device, [0, 1, 2, 3, 4, 5], { depth: 2 }, (item) => pause().then(() => item));
    await collect(byStage);
    const byConsumer = overlap(device, [0, 1, 2, 3, 4], { depth: 2 }, fast);
    for await (const item of byConsumer) {
      expect(item).toBeLessThan(5);
      await pause();
    }
    const reports = [bySource, byStage, byConsumer].map((run) => run.report());
    expect(reports.map(({ bottleneck, items }) => [bottleneck, items])).toEqual([
      ['source', 5],
      ['lanes', 6],
      ['consumer', 5],
    ]);
    for (const { bottleneckBusy } of reports) expect(bottleneckBusy).toBeGreaterThan(0.5);
  });

  it('is empty before the first run', () => {
    const { device } = fakeDevice();
    const report = overlap(device, [1], {}, (item) => Promise.resolve(item)).report();
    expect(report).toMatchObject({
      items: 0,
      skipped: 0,
      dropped: 0,
      retried: 0,
      depth: 3,
      wallMs: 0,
      bottleneck: 'none',
      bottleneckBusy: 0,
    });
  });
});

import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { EMPTY, from, lastValueFrom, mergeMap, Observable, of, take, timer, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Lane } from '../../../src/reactive/lane.js';
import { overlap } from '../../../src/reactive/overlap.js';
import { counter, fakeDevice, settleAll } from './fakes.js';
import { collect, forbidUnhandledRejections, manual } from './helpers.js';

forbidUnhandledRejections();

describe('pulling', () => {
  it('takes an item only when a lane is free, and never has more than depth open items', async () => {
    const { source, seen } = counter(50);
    let open = 0;
    let most = 0;
    const { device } = fakeDevice();
    const results = await collect(
      overlap(device, source, { depth: 3 }, async (item) => {
        most = Math.max(most, ++open);
        expect(seen.pulled - item).toBeLessThanOrEqual(3);
        await settleAll();
        open--;
        return item;
      }),
    );
    expect(results).toEqual(Array.from({ length: 50 }, (_, item) => item));
    expect(most).toBe(3);
    expect(seen.isClosed).toBe(true);
  });

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

  it('pushes to a subscriber without waiting for it', async () => {
    const { device } = fakeDevice();
    const seen: number[] = [];
    const { source } = counter(10);
    await overlap(device, source, { depth: 2 }, (item) => Promise.resolve(item)).forEach((item) => void seen.push(item));
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('closes the source when the subscriber has enough', async () => {
    const { source, seen } = counter();
    const { device, streams } = fakeDevice();
    const results = await lastValueFrom(overlap(device, source, { depth: 3 }, (item) => Promise.resolve(item)).pipe(take(4), toArray()));
    await settleAll();
    expect(results).toEqual([0, 1, 2, 3]);
    expect(seen.isClosed).toBe(true);
    expect(seen.pulled).toBeLessThanOrEqual(4 + 3);
    expect(streams.map((stream) => stream.isClosed)).toEqual([true, true, true]);
  });

  it('closes the source when the loop is left', async () => {
    const { source, seen } = counter();
    const { device } = fakeDevice();
    for await (const item of overlap(device, source, { depth: 3 }, (value) => Promise.resolve(value))) if (item === 2) break;
    expect(seen.isClosed).toBe(true);
  });

  it('reads arrays, sets, and web streams, and cancels the stream it leaves early', async () => {
    const { device } = fakeDevice();
    const double = (item: number): Promise<number> => Promise.resolve(item * 2);
    expect(await collect(overlap(device, [1, 2, 3], {}, double))).toEqual([2, 4, 6]);
    expect(await collect(overlap(device, new Set([4]), {}, double))).toEqual([8]);
    let isCancelled = false;
    const stream = new ReadableStream<number>({
      pull: (controller) => controller.enqueue(7),
      cancel: () => {
        isCancelled = true;
      },
    });
    expect(await lastValueFrom(overlap(device, stream, {}, double).pipe(take(1)))).toBe(14);
    await settleAll();
    expect(isCancelled).toBe(true);
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

  it('passes on every value of an Observable stage', async () => {
    const { device } = fakeDevice();
    const run = overlap(device, [1, 2, 3], { depth: 2 }, (item) => (item === 2 ? EMPTY : of(item, item * 10)));
    expect(await collect(run)).toEqual([1, 10, 3, 30]);
  });
});

describe('lanes', () => {
  it('give each item separate arrays, which are disposed with it', async () => {
    const { device, arrays } = fakeDevice();
    let before = 0;
    await collect(
      overlap(device, [4, 4, 2], { depth: 1 }, (size, lane) => {
        expect(arrays.filter((array) => !array.isDisposed)).toEqual([]);
        expect([lane.empty([2, size]).shape, lane.pinned(size, 'u8').dtype]).toEqual([[2, size], 'u8']);
        expect(arrays.length - before).toBe(2);
        before = arrays.length;
        return Promise.resolve(size);
      }),
    );
    expect(arrays.map((array) => array.isDisposed)).toEqual(Array.from({ length: 6 }, () => true));
  });

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

  it('release a detached array, once', async () => {
    const { device, arrays } = fakeDevice();
    const kept = await collect(overlap(device, [1, 2], { depth: 1 }, (_, lane) => Promise.resolve(lane.detach(lane.empty(4)))));
    expect(kept[0]).not.toBe(kept[1]);
    expect(arrays.map((array) => array.isDisposed)).toEqual([false, false]);
    const twice = overlap(device, [1], {}, (_, lane) => {
      const array = lane.detach(lane.empty(4));
      return Promise.resolve(lane.detach(array));
    });
    await expect(collect(twice)).rejects.toThrow('was detached before');
  });

  it('share the work of several devices: the least loaded one takes the next item', async () => {
    const [one, two] = [fakeDevice(), fakeDevice()];
    const { stage, items, lanes } = manual();
    const results = collect(overlap([one.device, two.device], [0, 1, 2, 3, 4], { depth: 2 }, stage));
    await settleAll();
    const deviceOf = (item: number): unknown => lanes.get(item)?.device;
    expect([0, 1, 2, 3].map(deviceOf)).toEqual([one.device, two.device, one.device, two.device]);
    for (const item of [1, 0]) items.get(item)?.resolve(String(item));
    await settleAll();
    for (const item of [2, 3, 4]) items.get(item)?.resolve(String(item));
    expect(await results).toEqual(['0', '1', '2', '3', '4']);
    expect([...one.streams, ...two.streams].every((stream) => stream.isClosed)).toBe(true);
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

describe('with Node streams and rxjs', () => {
  it('works in a Node pipeline, at the pace of its destination', async () => {
    const { device } = fakeDevice();
    const { source, seen } = counter(20);
    const written: number[] = [];
    const slow = new Writable({
      objectMode: true,
      highWaterMark: 1,
      write: (item: number, _encoding, done) => {
        written.push(item);
        expect(seen.pulled - written.length).toBeLessThanOrEqual(3);
        setImmediate(done);
      },
    });
    await pipeline(
      overlap(device, source, { depth: 2 }, (item) => Promise.resolve(item)),
      slow,
    );
    expect(written).toEqual(Array.from({ length: 20 }, (_, item) => item));
  });

  it('is an ordinary Observable', async () => {
    const { device } = fakeDevice();
    const run = overlap(device, [1, 2, 3], {}, (item) => timer(3 - item).pipe(mergeMap(() => of(item))));
    expect(run).toBeInstanceOf(Observable);
    expect(await lastValueFrom(from(run).pipe(toArray()))).toEqual([1, 2, 3]);
    expect(await lastValueFrom(run.pipe(toArray()))).toEqual([1, 2, 3]);
  });
});

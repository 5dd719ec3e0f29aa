import { NEVER, Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { AbortError, ArgumentError } from '../../../src/core/base/errors.js';
import { overlap, overlapMap } from '../../../src/reactive/overlap.js';
import { counter, fakeDevice, settleAll } from './fakes.js';
import { collect, forbidUnhandledRejections, manual } from './helpers.js';

forbidUnhandledRejections();

describe('failures', () => {
  it('delivers results of earlier items, aborts later items, then rejects', async () => {
    const { device, streams, arrays } = fakeDevice();
    const { source, seen } = counter();
    const { stage, items, lanes } = manual();
    const run = overlap(device, source, { depth: 3 }, (item, lane) => {
      lane.empty(4);
      return stage(item, lane);
    });
    const iterator = run[Symbol.asyncIterator]();
    const first = iterator.next();
    await settleAll();
    items.get(1)?.reject(new Error('item 1 is bad'));
    await settleAll();
    expect([0, 1, 2].map((item) => lanes.get(item)?.signal.aborted)).toEqual([false, false, true]);
    items.get(0)?.resolve('zero');
    expect(await first).toEqual({ done: false, value: 'zero' });
    const second = iterator.next();
    await settleAll();
    // The stage of item 2 still runs, so its array stays.
    expect(arrays.map((array) => array.isDisposed)).toEqual([true, true, false]);
    items.get(2)?.reject(new Error('aborted'));
    await expect(second).rejects.toThrow('item 1 is bad');
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(seen).toEqual({ pulled: 3, isClosed: true });
    expect(arrays.every((array) => array.isDisposed)).toBe(true);
    expect(streams.every((stream) => stream.isClosed)).toBe(true);
  });

  it('rejects at once with ordered: false', async () => {
    const { device } = fakeDevice();
    const { stage, items, lanes } = manual();
    const results = collect(overlap(device, [0, 1, 2], { depth: 3, ordered: false }, stage));
    await settleAll();
    items.get(2)?.reject(new Error('item 2 is bad'));
    await settleAll();
    expect([0, 1].map((item) => lanes.get(item)?.signal.aborted)).toEqual([true, true]);
    items.get(0)?.resolve('too late');
    items.get(1)?.resolve('too late');
    await expect(results).rejects.toThrow('item 2 is bad');
  });

  it.each([{ retry: 1 }, 'skip'] as const)('disposes the arrays of a failed attempt before the next one (%j)', async (onError) => {
    const { device, arrays } = fakeDevice();
    const run = overlap(device, [1, 2], { depth: 1, onError }, (item, lane) => {
      expect(arrays.every((array) => array.isDisposed)).toBe(true);
      lane.pinned(4);
      return arrays.length === 1 ? Promise.reject(new Error('first')) : Promise.resolve(item);
    });
    expect(await collect(run)).toEqual(onError === 'skip' ? [2] : [1, 2]);
  });

  it('refuses bad devices, stages and options at the call', () => {
    const { device } = fakeDevice();
    const stage = (item: unknown): Promise<unknown> => Promise.resolve(item);
    const refused: readonly (readonly [unknown, unknown, unknown, unknown, string])[] = [
      ['gpu', [1], {}, stage, "The device ('gpu') is none of 'cuda', 'cuda:0' and so on, 'cpu', 'cpu:0' and so on (did you mean 'cuda'?)."],
      [1, [1], {}, stage, 'The device (1) is not a Device.'],
      [Promise.resolve(device), [1], {}, stage, 'is not a Device: await it first'],
      [[], [1], {}, stage, 'The list of devices is empty'],
      [device, Promise.resolve([1]), {}, stage, 'await it first'],
      [device, 'abc', {}, stage, "The source ('abc')"],
      [device, [1], stage, stage, 'The options (a function) are not an object'],
      [device, [1], {}, undefined, 'The stage (undefined) is not a function.'],
      [device, [1], { concurrency: 8 }, stage, "There is no option 'concurrency'; the options are depth,"],
      [device, [1], { overflow: 'drop' }, stage, "overflow ('drop') is only for Observables"],
      [device, NEVER, {}, stage, "'latest', 'drop', 'buffer' with maxQueue, or 'fail'"],
      [device, NEVER, { overflow: 'buffer' }, stage, 'The option maxQueue is missing'],
    ];
    for (const [onDevice, source, opts, work, message] of refused) {
      const call = (): unknown => overlap(onDevice as never, source as never, opts as never, work as never);
      expect(call).toThrow(ArgumentError);
      expect(call).toThrow(message);
    }
    expect(() => overlapMap(device, {} as never, stage)).toThrow('an Observable does not wait');
  });

  it('refuses a generator that another run has used up, and calls a function for each run', async () => {
    const { device } = fakeDevice();
    const run = overlap(device, counter(2).source, {}, (item) => Promise.resolve(item));
    expect(await collect(run)).toEqual([0, 1]);
    await expect(collect(run)).rejects.toThrow('give a function that makes one for each run');
    const again = overlap(
      device,
      () => counter(2).source,
      {},
      (item) => Promise.resolve(item),
    );
    expect([await collect(again), await collect(again)]).toEqual([
      [0, 1],
      [0, 1],
    ]);
  });
});

describe('ending early', () => {
  it('aborts every lane by the signal, and rejects once they have settled', async () => {
    const { device, arrays } = fakeDevice();
    const { source, seen } = counter();
    const abort = new AbortController();
    const { stage, items, lanes } = manual();
    const results = collect(
      overlap(device, source, { depth: 2, signal: abort.signal }, (item, lane) => {
        lane.pinned(8);
        return stage(item, lane);
      }),
    );
    let isSettled = false;
    void results.catch(() => undefined).then(() => (isSettled = true));
    await settleAll();
    abort.abort('enough');
    await settleAll();
    expect([...lanes.values()].map((lane) => [lane.signal.aborted, lane.signal.reason as unknown])).toEqual([
      [true, 'enough'],
      [true, 'enough'],
    ]);
    expect(isSettled).toBe(false);
    expect(arrays.map((array) => array.isDisposed)).toEqual([false, false]);
    for (const work of items.values()) work.reject(new Error('stopped'));
    await expect(results).rejects.toBeInstanceOf(AbortError);
    await expect(results).rejects.toMatchObject({ code: 'ABORT_ERR', cause: 'enough' });
    expect(arrays.map((array) => array.isDisposed)).toEqual([true, true]);
    expect(seen.isClosed).toBe(true);
  });

  it('touches nothing if the signal has aborted before', async () => {
    const { device, streams } = fakeDevice();
    const { source, seen } = counter();
    await expect(collect(overlap(device, source, { signal: AbortSignal.abort() }, (item) => Promise.resolve(item)))).rejects.toBeInstanceOf(
      AbortError,
    );
    expect(seen.pulled).toBe(0);
    expect(streams).toEqual([]);
  });

  it('aborts running stages when the subscriber leaves, and unsubscribes from Observable stages', async () => {
    const { device, streams } = fakeDevice();
    const ended: number[] = [];
    const endless = (item: number): Observable<number> =>
      new Observable<number>(() => () => {
        ended.push(item);
      });
    const subscription = overlap(device, [1, 2, 3], { depth: 2 }, endless).subscribe();
    await settleAll();
    subscription.unsubscribe();
    await settleAll();
    expect(ended).toEqual([1, 2]);
    expect(streams.every((stream) => stream.isClosed)).toBe(true);
  });

  it('can be ended before it began', async () => {
    const { device } = fakeDevice();
    const iterator = overlap(device, [1], {}, () => NEVER)[Symbol.asyncIterator]();
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });
});

// Chapter 9: promises as items of `overlap`, and methods that a program takes off their object.
import { lastValueFrom, of, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import { ArgumentError, createBatcher, createLanes, overlap } from 'millrace';
import { chapterDevice, rulesOf } from '../support/rule.js';
import type { Target } from '../support/target.js';
import { rejectionOf } from '../support/wait.js';

const echo = <T>(item: T): Promise<T> => Promise.resolve(item);

export function pipelineInputs(target: Target): void {
  describe('9 promises as items, methods without their object', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S947', 'promises of an iterable are awaited one at a time, and strings are refused', async () => {
      const { device } = chapter;
      const items = [Promise.resolve(1), 2, new Promise<number>((resolve) => setTimeout(resolve, 5, 3))];
      const next = async (item: number): Promise<number> => item + 1;
      expect(await lastValueFrom(overlap(device, items, { depth: 2 }, next).pipe(toArray()))).toEqual([2, 3, 4]);
      expect(await lastValueFrom(overlap(device, new Set(items), next).pipe(toArray()))).toEqual([2, 3, 4]);
      expect(() => overlap(device, 'text' as unknown as string[], async (item) => item)).toThrow(ArgumentError);
      // An Observable of promises gives promises, as in RxJS.
      const given: unknown[] = [];
      const seen = overlap(device, of(Promise.resolve(1)), { overflow: 'fail' }, async (item) => void given.push(item));
      await lastValueFrom(seen);
      expect(given).toEqual([expect.any(Promise)]);
    });

    rule('S947', 'a promise that rejects ends the run and closes the source; other rejections are handled', async () => {
      const unhandled: unknown[] = [];
      const note = (reason: unknown): void => void unhandled.push(reason);
      process.on('unhandledRejection', note);
      try {
        const [first, second] = [new Error('first'), new Error('second')];
        let calls = 0;
        const both = overlap(chapter.device, [Promise.reject(first), Promise.reject(second)], { depth: 1 }, async () => ++calls);
        expect(await rejectionOf(lastValueFrom(both))).toBe(first);
        expect(calls).toBe(0);
        let isClosed = false;
        function* answers(): Generator<Promise<number>> {
          try {
            yield Promise.resolve(1);
            yield Promise.reject(second);
          } finally {
            isClosed = true;
          }
        }
        const values: number[] = [];
        const run = overlap(chapter.device, answers, async (item) => item + 1);
        const consumed = (async () => {
          for await (const value of run) values.push(value);
        })();
        expect(await rejectionOf(consumed)).toBe(second);
        expect([values, isClosed]).toEqual([[2], true]);
        await new Promise((resolve) => setImmediate(resolve));
        expect(unhandled).toEqual([]);
      } finally {
        process.off('unhandledRejection', note);
      }
    });

    rule('S948', 'methods of a lane, of lanes and of a run may be taken off', async () => {
      const { device } = chapter;
      const run = overlap(device, [2, 3], async (n, { empty, zeros, ones, full, from: make, pinned, detach, time, stream }) => {
        const x = full(4, n);
        const arrays = [empty(1), zeros(1), ones(1), make([1])];
        stream.copy(pinned(4), x);
        await time('wait', stream.synchronize());
        return [arrays.length, detach(x)] as const;
      });
      const { report } = run;
      const sums: number[] = [];
      for await (const [length, x] of run) {
        using _ = x;
        sums.push(length * (await x.item(3)));
      }
      expect(sums).toEqual([8, 12]);
      expect(report().stages.map(({ name }) => name)).toContain('wait');
      const { run: ask, report: tell, close, destroy } = createLanes(device, { depth: 1, maxQueue: 1 }, echo);
      expect([await ask(7), tell().items]).toEqual([7, 1]);
      await close();
      await destroy();
      const batcher = createBatcher(device, { maxItems: 2, maxWaitMs: 0, maxQueue: 2 }, async (items: readonly number[]) => items);
      const { run: infer } = batcher;
      expect(await Promise.all([infer(1), infer(2)])).toEqual([1, 2]);
      await batcher.close();
    });
  });
}

// Chapter 9: promises as items of `overlap`, methods that a program takes off their object, and results that nobody receives.
import { concat, firstValueFrom, lastValueFrom, NEVER, type Observable, of, take, throwError, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  createBatcher,
  createLanes,
  type DeviceArray,
  type Lane,
  launch,
  overlap,
  upload,
  WaitTimeoutError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { stray } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf } from '../../support/wait.js';

const echo = <T>(item: T): Promise<T> => Promise.resolve(item);

defineChapter((target) => {
  describe('9 promises as items, methods without their object, results without a receiver', () => {
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

    /** A stage that detaches an array for each item, and notes it. */
    const detaching = (made: DeviceArray[]) => async (n: number, lane: Lane) => {
      const x = lane.full(4, n);
      made.push(x);
      await x.item(0);
      return { x: lane.detach(x) };
    };
    const disposed = (arrays: readonly DeviceArray[]): boolean[] => arrays.map(({ isDisposed }) => isDisposed);

    rule('S949', 'a run that ends early disposes the detached arrays of results that it did not emit', async () => {
      for (const isPulled of [false, true]) {
        const made: DeviceArray[] = [];
        const run = overlap(chapter.device, [1, 2, 3, 4, 5, 6], { depth: 3 }, detaching(made));
        let mine: DeviceArray | undefined;
        if (isPulled) {
          for await (const { x } of run) {
            mine = x;
            await eventually('the other lanes have their results', () => run.report().items === 3);
            break;
          }
        } else mine = (await firstValueFrom(run)).x;
        await eventually('all others are disposed', () => disposed(made).filter((is) => !is).length === 1);
        expect([mine!.isDisposed, await mine!.item(3)]).toEqual([false, 1]);
        mine![Symbol.dispose]();
      }
    });

    rule('S949', 'a subscriber that leaves during an emission gets no array that it would have to dispose', async () => {
      const made: DeviceArray[] = [];
      const run = overlap(chapter.device, [1, 2, 3], { depth: 3, ordered: false }, detaching(made));
      const results = await lastValueFrom(run.pipe(take(2), toArray()));
      await eventually('the third is disposed', () => disposed(made).filter((is) => is).length === made.length - 2);
      for (const { x } of results) {
        expect(x.isDisposed).toBe(false);
        x[Symbol.dispose]();
      }
    });

    rule('S949', 'so does a service for a request that was given up, and an attempt that fails or is too late', async () => {
      const { device } = chapter;
      const made: DeviceArray[] = [];
      let release: () => void = () => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      const late = async (n: number, lane: Lane): Promise<{ readonly x: DeviceArray }> => {
        const result = await detaching(made)(n, lane);
        await released;
        return result;
      };
      const lanes = createLanes(device, { depth: 1, maxQueue: 1 }, late);
      expect(await rejectionOf(lanes.run(1, { timeoutMs: 1 }))).toBeInstanceOf(WaitTimeoutError);
      const batcher = createBatcher(device, { maxItems: 2, maxWaitMs: 0, maxQueue: 2 }, (items: readonly number[], lane) =>
        Promise.all(items.map((n) => late(n, lane))),
      );
      const [gone, kept] = [rejectionOf(batcher.run(2, { timeoutMs: 1 })), batcher.run(3)];
      expect(await gone).toBeInstanceOf(WaitTimeoutError);
      const slow = overlap(device, [4], { stageTimeoutMs: 1 }, late);
      expect(await rejectionOf(lastValueFrom(slow))).toBeInstanceOf(WaitTimeoutError);
      const failing = overlap(device, [5], { onError: { retry: 1 } }, (n, lane) => {
        const x = lane.detach(lane.full(4, n));
        made.push(x);
        return concat(
          of(x),
          throwError(() => new Error('after it')),
        );
      });
      expect(await rejectionOf(lastValueFrom(failing))).toMatchObject({ message: 'after it' });
      await eventually('all stages run', () => made.length === 6);
      release();
      const { x: mine } = await kept;
      await Promise.all([lanes.close(), batcher.close()]);
      await eventually('all others are disposed', () => disposed(made).filter((is) => !is).length === 1);
      expect(await mine.item(0)).toBe(3);
      mine[Symbol.dispose]();
    });

    /** Stages that detach an array and give nobody a result that contains it. */
    const failing: Readonly<Record<string, (x: DeviceArray<'f32'>, lane: Lane) => Observable<unknown> | Promise<unknown>>> = {
      'throws at once': () => {
        throw new Error('on purpose');
      },
      'rejects later': async (_, lane) => {
        await lane.zeros(1).read();
        throw new Error('on purpose');
      },
      'has a result that it cannot give': (x, lane) => Promise.resolve([x, lane.zeros(1)]),
      'has a result, and an operation that fails': (x, lane) => {
        of(new Float32Array(4))
          .pipe(
            upload(lane),
            launch(lane, stray, 4, (y) => ({ x: y, by: 4 })),
          )
          .subscribe();
        return Promise.resolve(x);
      },
      'errors after another result': () =>
        concat(
          of(1),
          throwError(() => new Error('on purpose')),
        ),
    };
    for (const [name, stage] of Object.entries(failing)) {
      rule('S949', `so does an attempt that detaches an array and ${name}`, async () => {
        for (const onError of ['fail', { retry: 1 }] as const) {
          const made: DeviceArray[] = [];
          const run = overlap(chapter.device, [1], { onError }, (n, lane) => {
            const x = lane.detach(lane.full(4, n));
            made.push(x);
            return stage(x, lane) as Observable<unknown>;
          });
          expect(await rejectionOf(lastValueFrom(run))).toBeInstanceOf(Error);
          await eventually('they are disposed', () => disposed(made).every((is) => is));
          expect(made).toHaveLength(onError === 'fail' ? 1 : 2);
        }
      });
    }

    rule('S949', 'so does an attempt whose run ends before it settles', async () => {
      const made: DeviceArray[] = [];
      for (const isObservable of [true, false]) {
        const run = overlap(chapter.device, [1], (n, lane) => {
          made.push(lane.detach(lane.full(4, n)));
          if (isObservable) return NEVER as Observable<never>;
          return new Promise<never>((_, reject) => {
            lane.signal.addEventListener('abort', () => reject(new Error('left')), { once: true });
          });
        });
        const subscription = run.subscribe();
        await eventually('it runs', () => made.length === (isObservable ? 1 : 2));
        subscription.unsubscribe();
      }
      await eventually('they are disposed', () => disposed(made).every((is) => is));
    });

    rule('S947', 'a source whose next() or iterator is no object ends the run', async () => {
      for (const value of [undefined, null, 5, 'text']) {
        const next = (): IteratorResult<number> => value as never;
        const none = (): AsyncIterator<number> & Iterator<number> => value as never;
        const sources = [
          { [Symbol.iterator]: () => ({ next }) },
          { [Symbol.asyncIterator]: () => ({ next: async () => next() }) },
          { [Symbol.iterator]: none },
          { [Symbol.asyncIterator]: none },
        ];
        for (const source of sources) {
          const error = await rejectionOf(lastValueFrom(overlap(chapter.device, source, echo)));
          expect(error).toBeInstanceOf(ArgumentError);
          expect(error).toMatchObject({ argument: 'source', value });
        }
      }
      for (const source of [{ [Symbol.iterator]: () => ({}) }, { [Symbol.asyncIterator]: () => ({ next: 5 }) }]) {
        expect(await rejectionOf(lastValueFrom(overlap(chapter.device, source as never, echo)))).toBeInstanceOf(ArgumentError);
      }
    });
  });
});

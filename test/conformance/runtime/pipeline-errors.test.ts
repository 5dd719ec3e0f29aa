// Chapter 9: failing and slow stages of `overlap`.
import { lastValueFrom, of, throwError, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  BoundsError,
  DeviceLostError,
  download,
  i32,
  launch,
  overlap,
  StateError,
  upload,
  WaitTimeoutError,
  type DeviceArray,
  type ErrorOptions,
  type Lane,
  type Skipped,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { stray } from '../../support/kernels.js';
import { manualStage, watch } from '../../support/manual-stage.js';
import { chapterDevice, rulesOf, withDevice } from '../../support/rule.js';
import { eventually, rejectionOf, thrownBy } from '../../support/wait.js';

const LENGTH = 16;

/** Stages whose kernel faults for item 1; later operations of the stage read its poisoned array. */
const FAULTY: Readonly<Record<string, (item: number, lane: Lane) => ReturnType<typeof lastValueFrom<Float32Array>>>> = {
  'a chain of operators': (item, lane) =>
    lastValueFrom(
      of(new Float32Array(LENGTH)).pipe(
        upload(lane),
        launch(lane, stray, LENGTH, (x) => ({ x, by: item === 1 ? LENGTH : 0 })),
        launch(lane, stray, LENGTH, (x) => ({ x, by: 0 })),
        download(lane),
      ),
    ),
  'an async function': async (item, lane) => {
    const x = lane.zeros(LENGTH);
    lane.stream.launch(stray, LENGTH, { x, by: item === 1 ? LENGTH : 0 });
    return x.read();
  },
};

defineChapter((target) => {
  describe('9 errors of overlap', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const [name, stage] of Object.entries(FAULTY)) {
      rule('S914', `the error of a run is the kernel's own: ${name}`, async () => {
        const error = await rejectionOf(lastValueFrom(overlap(chapter.device, [0, 1, 2], { depth: 2 }, stage)));
        expect(error).toBeInstanceOf(BoundsError);
        expect(error).toMatchObject({ array: 'x', limit: LENGTH });
      });

      rule('S914', `'skip' tells onSkip of the item and the kernel's own error: ${name}`, async () => {
        const skips: Skipped<number>[] = [];
        const run = overlap(chapter.device, [0, 1, 2], { depth: 2, onError: 'skip', onSkip: (one) => void skips.push(one) }, stage);
        const results = await lastValueFrom(run.pipe(toArray()));
        expect(results.map((result) => result[0])).toEqual([1, 1]);
        expect(skips).toEqual([{ item: 1, reason: 'error', error: expect.any(BoundsError) as unknown }]);
        expect(run.report()).toMatchObject({ items: 2, skipped: 1, dropped: 0, retried: 0 });
      });
    }

    rule('S914', 'without onError the first failure ends the run with its own error', async () => {
      const failure = new TypeError('mine');
      for (const stage of [
        () => Promise.reject(failure),
        () => throwError(() => failure),
        (): Promise<number> => {
          throw failure;
        },
      ]) {
        expect(await rejectionOf(lastValueFrom(overlap(chapter.device, [1], {}, stage)))).toBe(failure);
      }
      for (const result of ['text', [1], 5, undefined]) {
        const stage = (() => result) as unknown as () => Promise<number>;
        expect(await rejectionOf(lastValueFrom(overlap(chapter.device, [1], {}, stage)))).toBeInstanceOf(ArgumentError);
      }
    });

    rule(
      'S914',
      "a retry policy that ends in 'skip' calls `when`, waits longer each time, and passes the last error to onSkip",
      async () => {
        const asked: [string, number][] = [];
        const starts: number[] = [];
        const skips: Skipped<number>[] = [];
        const run = overlap(
          chapter.device,
          [7],
          {
            onError: {
              retry: 3,
              delayMs: 20,
              backoff: 2,
              then: 'skip',
              when: (error, attempt) => asked.push([(error as Error).message, attempt]) > 0,
            },
            onSkip: (skipped) => void skips.push(skipped),
          },
          (_, lane) => {
            starts.push(performance.now());
            return Promise.reject(new Error(`attempt ${lane.attempt}`));
          },
        );
        expect(await lastValueFrom(run.pipe(toArray()))).toEqual([]);
        expect(skips).toEqual([{ item: 7, reason: 'error', error: new Error('attempt 4') }]);
        expect(asked.slice(0, 3)).toEqual([1, 2, 3].map((attempt) => [`attempt ${attempt}`, attempt]));
        expect(starts).toHaveLength(4);
        // A timer may fire up to a millisecond before its time.
        for (const [n, delayMs] of [20, 40, 80].entries()) expect(starts[n + 1]! - starts[n]!).toBeGreaterThan(delayMs - 2);
        expect(run.report()).toMatchObject({ items: 0, skipped: 1, retried: 3 });
      },
    );

    rule('S914', 'maxDelayMs limits the wait before a retry', async () => {
      const stage = (_: number, lane: Lane): Promise<number> =>
        lane.attempt < 5 ? Promise.reject(new Error('again')) : Promise.resolve(lane.attempt);
      const onError = { retry: Infinity, delayMs: 1, backoff: 1e9, maxDelayMs: 5 };
      expect(await lastValueFrom(overlap(chapter.device, [1], { onError }, stage))).toBe(5);
    });

    rule('S914', '`when` can refuse a retry, and the last error ends the run', async () => {
      let attempts = 0;
      const stage = (): Promise<never> => Promise.reject(new Error(`attempt ${++attempts}`));
      const refused = overlap(chapter.device, [1], { onError: { retry: 9, when: (_, attempt) => attempt < 2 } }, stage);
      expect(await rejectionOf(lastValueFrom(refused))).toMatchObject({ message: 'attempt 2' });
      attempts = 0;
      expect(await rejectionOf(lastValueFrom(overlap(chapter.device, [1], { onError: { retry: 2 } }, stage)))).toMatchObject({
        message: 'attempt 3',
      });
      attempts = 0;
      const onError = {
        retry: 9,
        when: () => {
          throw new Error('in when');
        },
      };
      expect(await rejectionOf(lastValueFrom(overlap(chapter.device, [1], { onError }, stage)))).toBeInstanceOf(Error);
      expect(attempts).toBe(1);
    });

    rule('S914', 'an error that onSkip throws ends the run', async () => {
      const onSkip = (): void => {
        throw new Error('in onSkip');
      };
      const run = overlap(chapter.device, [1, 2], { onError: 'skip', onSkip }, () => Promise.reject(new Error('stage')));
      expect(await rejectionOf(lastValueFrom(run))).toMatchObject({ message: 'in onSkip' });
    });

    const badPolicies: readonly [ErrorOptions, object][] = [
      [{ onError: 'ignore' as 'skip' }, { argument: 'onError', value: 'ignore' }],
      [{ onError: { retry: -1 } }, { value: -1 }],
      [{ onError: { retry: 1.5 } }, { value: 1.5 }],
      [{ onError: { retry: 1, delayMs: -1 } }, { value: -1 }],
      [{ onError: { retry: 1, backoff: 0.5 } }, { value: 0.5 }],
      [{ onError: { retry: 1, maxDelayMs: -3 } }, { value: -3 }],
      [{ onError: { retry: 1, then: 'stop' as 'skip' } }, { value: 'stop' }],
      [{ onError: { retry: 1, when: 3 as unknown as () => boolean } }, { value: 3 }],
      [{ onSkip: 3 as unknown as () => void }, { argument: 'onSkip', value: 3 }],
      [{ stageTimeoutMs: -1 }, { argument: 'stageTimeoutMs', value: -1 }],
      [{ stageTimeoutMs: NaN }, { argument: 'stageTimeoutMs', value: NaN }],
    ];
    for (const [options, facts] of badPolicies) {
      rule(options.stageTimeoutMs === undefined ? 'S914' : 'S915', `the call refuses ${inspectOptions(options)}`, () => {
        const error = thrownBy(() => overlap(chapter.device, [1], options, (item: number) => Promise.resolve(item)));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toMatchObject(facts);
      });
    }

    rule(
      'S915',
      'a stage that times out fails, its signal aborts, its lane takes the next item, and its arrays live until it settles',
      async () => {
        const manual = manualStage<number>();
        const kept: DeviceArray<'i32'>[] = [];
        const skips: Skipped<number>[] = [];
        const run = overlap(
          chapter.device,
          [0, 1],
          { depth: 1, stageTimeoutMs: 50, onError: 'skip', onSkip: (skipped) => void skips.push(skipped) },
          async (item, lane) => {
            const x = lane.full(4, item + 5, i32);
            kept.push(x);
            return item === 0 ? manual.stage(item, lane) : (await x.read())[0]!;
          },
        );
        expect(await lastValueFrom(run.pipe(toArray()))).toEqual([6]);
        expect(skips).toEqual([{ item: 0, reason: 'error', error: expect.any(WaitTimeoutError) as unknown }]);
        expect(skips[0]!.error).toMatchObject({ timeoutMs: 50 });
        expect(manual.calls[0]!.lane.signal.aborted).toBe(true);
        // The run has ended, and this stage still has its memory.
        expect(await kept[0]!.read()).toEqual(new Int32Array(4).fill(5));
        manual.calls[0]!.resolve(9);
        await eventually('the array is disposed', () => {
          try {
            kept[0]!.subarray(0);
            return false;
          } catch (error) {
            return error instanceof StateError;
          }
        });
      },
    );

    rule('S915', 'without a policy the timeout ends the run; with a retry policy the item is tried again', async () => {
      const manual = manualStage<number>();
      const error = await rejectionOf(lastValueFrom(overlap(chapter.device, [1], { stageTimeoutMs: 20 }, manual.stage)));
      expect(error).toBeInstanceOf(WaitTimeoutError);
      expect(error.message).toContain('20');
      const retried = overlap(chapter.device, [1], { depth: 1, stageTimeoutMs: 500, onError: { retry: 1 } }, (item, lane) =>
        lane.attempt === 1 ? manual.stage(item, lane) : Promise.resolve(lane.attempt),
      );
      expect(await lastValueFrom(retried)).toBe(2);
      for (const call of manual.calls) call.resolve(0);
    });
  });

  // `destroy` ends the device for all its openings, so this test opens a separate device.
  describe('9 overlap on a device that ends', () => {
    const rule = rulesOf(target);

    for (const onError of ['skip', { retry: Infinity, then: 'skip' }] as const) {
      rule('S914', `a device that is destroyed ends the run with onError ${JSON.stringify(onError)}`, async () => {
        await withDevice(target, {}, async (device) => {
          let taken = 0;
          function* endless(): Generator<number> {
            for (;;) yield taken++;
          }
          const skips: unknown[] = [];
          const run = overlap(device, endless(), { depth: 2, onError, onSkip: (skipped) => void skips.push(skipped) }, async (_, lane) =>
            lane.zeros(4).read(),
          );
          const seen = watch(run);
          await eventually('results come', () => seen.values.length > 5);
          await device.destroy();
          await eventually('the run ends', () => seen.end() !== 'open');
          const end = seen.end();
          expect(end instanceof DeviceLostError || end instanceof StateError).toBe(true);
          expect(skips).toEqual([]);
        });
      });
    }
  });
});

function inspectOptions(options: ErrorOptions): string {
  return JSON.stringify(options, (_, value: unknown) => (typeof value === 'number' ? String(value) : value));
}

// Pipelines in virtual time: what comes out when, read from marbles. No native code runs here.
import { delay, interval, map, mergeMap, of, take, timer } from 'rxjs';
import { describe, expect, test } from 'vitest';
import {
  batchFor,
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
  WaitTimeoutError,
  type Device,
  type Lane,
  type Stage,
} from '../../../src/index.js';
import { createTestClock, createTestDevice, testKernel, type TestClock, type TestDeviceOptions } from '../../../src/testing/index.js';

const upper = kernel('upper', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i]! - 32;
});

interface Bench {
  readonly clock: TestClock;
  readonly device: Device;
}

function bench(launchMs: number, opts: Partial<TestDeviceOptions> = {}): Bench {
  const clock = createTestClock({ assertEqual: (actual, expected) => expect(actual).toEqual(expected) });
  const run = ({ x }: { readonly x: Float32Array }): void => x.forEach((value, at) => (x[at] = value - 32));
  return { clock, device: createTestDevice({ clock, kernels: [testKernel(upper, { ms: launchMs, run })], ...opts }) };
}

/** Letters become capitals on the device. */
const capitals: Stage<string, string> = (letter, lane) =>
  of(Float32Array.of(letter.codePointAt(0)!)).pipe(
    upload(lane),
    launch(lane, upper, 1, (x) => ({ x })),
    download(lane),
    map(([code]) => String.fromCodePoint(code!)),
  );

describe('overlapMap', () => {
  test('gives each result when its launch has ended', async () => {
    const { clock, device } = bench(2);
    await clock.run(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('a-b-c|');
      expectObservable(source.pipe(overlapMap(device, { depth: 2, overflow: 'fail' }, capitals))).toBe('--A-B-(C|)');
      expectSubscriptions(source.subscriptions).toBe('^----!');
    });
    await device.close();
  });

  test('works on depth items at once, and on no more', async () => {
    const { clock, device } = bench(4);
    await clock.run(({ cold, expectObservable }) => {
      const opts = { depth: 2, overflow: 'buffer', maxQueue: 10 } as const;
      expectObservable(cold('(abcde|)').pipe(overlapMap(device, opts, capitals))).toBe('----(AB)(CD)(E|)'); // A group counts its characters: 4, 8 and 12 ms.
    });
    await device.close();
  });

  test('adds the times of the copies', async () => {
    const { clock, device } = bench(1, { uploadMs: 2, downloadMs: (bytes) => bytes });
    await clock.run(({ cold, expectObservable }) => {
      expectObservable(cold('a|').pipe(overlapMap(device, { overflow: 'fail' }, capitals))).toBe('-------(A|)');
    });
    await device.close();
  });

  test('hears a hot source from the moment of the subscription', async () => {
    const { clock, device } = bench(1);
    await clock.run(({ hot, expectObservable }) => {
      expectObservable(hot('a--b--|').pipe(overlapMap(device, { overflow: 'fail' }, capitals))).toBe('-A--B-|');
    });
    await device.close();
  });

  test('drops what comes while the lane is occupied', async () => {
    const { clock, device } = bench(3);
    const dropped: string[] = [];
    await clock.run(({ cold, expectObservable }) => {
      const onSkip = ({ item }: { readonly item: string }): void => void dropped.push(item);
      const opts = { depth: 1, overflow: 'drop', onSkip } as const;
      expectObservable(cold('abcde|').pipe(overlapMap(device, opts, capitals))).toBe('---A---(E|)');
    });
    expect(dropped).toEqual(['b', 'c', 'd']);
    await device.close();
  });

  test('fails with the error of a test kernel', async () => {
    const clock = createTestClock({ assertEqual: (actual, expected) => expect(actual).toMatchObject(expected as object) });
    const run = (): never => {
      throw new Error('no ink');
    };
    const device = createTestDevice({ clock, kernels: [testKernel(upper, { ms: 1, run })] });
    await clock.run(({ cold, expectObservable }) => {
      const message = 'The launch upper on stream lane 0 of device cpu:0 was refused by the device: no ink.';
      expectObservable(cold('a---|').pipe(overlapMap(device, { overflow: 'fail' }, capitals))).toBe(
        '-#',
        {},
        { name: 'LaunchError', message },
      );
    });
    await device.close();
  });
});

describe('overlap', () => {
  test('loses no time between items: as many lanes as equal parts keep each part busy', async () => {
    const { clock, device } = bench(0);
    /** Takes one item at a time. */
    const part = (name: string): ((lane: Lane) => Promise<void>) => {
      let last: Promise<unknown> = Promise.resolve();
      return async (lane) => {
        const before = last;
        let leave!: () => void;
        last = new Promise<void>((resolve) => (leave = resolve));
        await before;
        await lane.time(name, clock.sleep(4));
        leave();
      };
    };
    const parts = ['decode', 'infer', 'encode'].map(part);
    const frames = Array.from({ length: 100 }, (_, n) => n);
    const run = overlap(device, frames, { depth: 3 }, async (n, lane) => {
      for (const pass of parts) await pass(lane);
      return n;
    });
    const seen: number[] = [];
    await clock.run(async () => {
      for await (const n of run) seen.push(n);
    });
    expect(seen).toEqual(frames);
    // 100 frames of 4 ms, and the two other parts of the last one.
    expect(clock.now).toBe(408);
    expect(run.report().bottleneckBusy).toBeCloseTo(400 / 408);
    await device.close();
  });
});

describe('RxJS', () => {
  test('takes its time from the clock, in sources and in stages', async () => {
    const { clock, device } = bench(1);
    const stage = (n: number, lane: Lane) =>
      of(String.fromCodePoint(97 + n)).pipe(
        delay(2),
        mergeMap((letter) => capitals(letter, lane)),
      );
    await clock.run(({ expectObservable }) => {
      expectObservable(interval(10).pipe(take(2), overlapMap(device, { overflow: 'fail' }, stage))).toBe('13ms A 9ms (B|)');
    });
    await device.close();
  });

  test('has its own time again afterwards', async () => {
    const { clock } = bench(1);
    await clock.run(() => undefined);
    const startMs = performance.now();
    await new Promise((resolve) => timer(20).subscribe(resolve));
    expect(performance.now() - startMs).toBeGreaterThan(15);
    expect(clock.now).toBe(0);
  });
});

describe('batchFor', () => {
  test('waits in virtual time', async () => {
    const { clock, device } = bench(1);
    const stage = async (letters: readonly string[]): Promise<string> => letters.join('');
    await clock.run(({ cold, expectObservable }) => {
      const batches = cold('ab-c------d|').pipe(batchFor({ maxItems: 3, maxWaitMs: 5 }), overlapMap(device, { overflow: 'fail' }, stage));
      expectObservable(batches).toBe('---x-------(y|)', { x: 'abc', y: 'd' });
    });
    await device.close();
  });
});

describe('errors', () => {
  test('a retry waits its delays', async () => {
    const { clock, device } = bench(1);
    const starts: number[] = [];
    const stage = async (letter: string, lane: Lane): Promise<string> => {
      starts.push(clock.now);
      if (lane.attempt < 4) throw new Error('not yet');
      return letter;
    };
    await clock.run(({ cold, expectObservable }) => {
      const onError = { retry: 5, delayMs: 10, backoff: 2, maxDelayMs: 30 };
      expectObservable(cold('a|').pipe(overlapMap(device, { overflow: 'fail', onError }, stage))).toBe('60ms (a|)');
    });
    expect(starts).toEqual([0, 10, 30, 60]);
    await device.close();
  });

  test('a stage that exceeds its limit fails at the limit, and its lane takes the next item', async () => {
    const { clock, device } = bench(100);
    const skipped: unknown[] = [];
    const stage: Stage<string, string> = (letter, lane) => (letter === 'b' ? capitals(letter, lane) : of(letter).pipe(delay(1)));
    await clock.run(({ cold, expectObservable }) => {
      const onSkip = ({ error }: { readonly error?: unknown }): void => void skipped.push(error);
      const opts = { depth: 1, overflow: 'buffer', maxQueue: 9, stageTimeoutMs: 5, onError: 'skip', onSkip } as const;
      expectObservable(cold('(abc|)').pipe(overlapMap(device, opts, stage))).toBe('-a-----(c|)');
    });
    expect(skipped).toEqual([expect.any(WaitTimeoutError)]);
    await clock.run(() => device.close());
  });
});

describe('services', () => {
  test('lanes serve requests, refuse what they cannot take and give up waits, in virtual time', async () => {
    const { clock, device } = bench(10);
    const lanes = createLanes(device, { depth: 1, maxQueue: 1 }, capitals);
    const ends: string[] = [];
    const note = (name: string, request: Promise<unknown>): Promise<unknown> =>
      request.then(
        (answer) => ends.push(`${name} ${String(answer)} at ${clock.now}`),
        (error: Error) => ends.push(`${name} ${error.name} at ${clock.now}`),
      );
    await clock.run(async () => {
      const first = note('first', lanes.run('a'));
      const second = note('second', lanes.run('b', { timeoutMs: 4 }));
      const third = note('third', lanes.run('c'));
      await clock.advance(5);
      const fourth = note('fourth', lanes.run('d'));
      await Promise.all([first, second, third, fourth]);
      await lanes.close();
    });
    expect(ends).toEqual(['third LimitError at 0', 'second WaitTimeoutError at 4', 'first A at 10', 'fourth D at 20']);
    expect(lanes.report()).toMatchObject({ items: 2, wallMs: 20, bottleneck: 'launch upper', bottleneckBusy: 1 });
    await device.close();
  });

  test('a batcher waits for more requests, in virtual time', async () => {
    const { clock, device } = bench(0);
    const batches: string[] = [];
    const batcher = createBatcher(device, { maxItems: 3, maxWaitMs: 5, maxQueue: 10 }, async (letters: readonly string[]) => {
      batches.push(`${letters.join('')} at ${clock.now}`);
      return letters;
    });
    await clock.run(async () => {
      const first = batcher.run('a');
      await clock.advance(2);
      const rest = ['b', 'c', 'd'].map((letter) => batcher.run(letter));
      await Promise.all([first, ...rest]);
      await batcher.close();
    });
    expect(batches).toEqual(['abc at 2', 'd at 7']);
    await device.close();
  });
});

describe('a run of the clock', () => {
  test('rejects with the expectation that was not met', async () => {
    const { clock, device } = bench(2);
    const run = clock.run(({ cold, expectObservable }) => {
      expectObservable(cold('a|').pipe(overlapMap(device, { overflow: 'fail' }, capitals))).toBe('-(A|)');
    });
    await expect(run).rejects.toThrow('to deeply equal');
    await device.close();
  });

  test('rejects with what its work throws, and can be used again', async () => {
    const { clock } = bench(0);
    await expect(clock.run(() => Promise.reject(new TypeError('mine')))).rejects.toThrow('mine');
    await expect(clock.run(() => clock.sleep(5))).resolves.toBeUndefined();
    expect(clock.now).toBe(5);
    await expect(clock.run(({ expectObservable }) => expectObservable(of(1)))).rejects.toMatchObject({ name: 'StateError' });
  });

  test('ends what goes on for ever, and says what never settles', async () => {
    const { clock } = bench(0);
    await expect(clock.run(() => void interval(1).subscribe(), { maxMs: 50 })).rejects.toThrow(LimitError);
    const other = createTestClock();
    await expect(other.run(() => new Promise(() => undefined), { realTimeoutMs: 20 })).rejects.toThrow(WaitTimeoutError);
    await expect(other.run(() => createTestClock().run(() => undefined))).rejects.toMatchObject({ name: 'StateError' });
  });

  test('steps in the order of time when it is advanced', async () => {
    const { clock, device } = bench(3);
    const seen: string[] = [];
    const run = overlap(device, ['a', 'b', 'c'], { depth: 1 }, capitals);
    run.subscribe((letter) => seen.push(`${letter} at ${clock.now}`));
    await clock.advance(7);
    expect(seen).toEqual(['A at 3', 'B at 6']);
    expect(clock.now).toBe(7);
    await clock.advance(2);
    expect(seen.at(-1)).toBe('C at 9');
    await device.close();
  });
});

// Chapter 9: how runs of `overlap` end, and which operations belong to an item.
import { getEventListeners } from 'node:events';
import { Readable } from 'node:stream';
import { concat, firstValueFrom, lastValueFrom, map, NEVER, of, Subject, switchMap, take, toArray, type Observable } from 'rxjs';
import { describe, expect } from 'vitest';
import {
  AbortError,
  BoundsError,
  download,
  i32,
  inout,
  kernel,
  launch,
  overlap,
  overlapMap,
  StateError,
  upload,
  type Device,
  type DeviceArray,
  type Lane,
  type Overlapped,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { manualStage, watch } from '../../support/manual-stage.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf, turn } from '../../support/wait.js';

/** Adds 1, outside `x` when `by` is not 0. */
const plusOneAt = kernel('plus_one_at', { x: inout(i32), by: i32 }, ({ x, by }, { i }) => {
  x[i + by] = x[i + by]! + 1;
});
const LENGTH = 64;

/** An endless source that counts the pulled items and records its close. */
class Endless {
  pulled = 0;
  closed = 0;
  *items(): Generator<number> {
    try {
      for (;;) yield this.pulled++;
    } finally {
      this.closed++;
    }
  }
  async *asyncItems(): AsyncGenerator<number> {
    yield* this.items();
  }
}

/** Ways to end a run after some results. Each handles its own rejection. */
const ENDINGS: Readonly<Record<string, (start: (signal?: AbortSignal) => Overlapped<number>) => Promise<unknown>>> = {
  'take()': (start) => lastValueFrom(start().pipe(take(3))),
  'unsubscribe in next': (start) =>
    new Promise<void>((resolve) => {
      let count = 0;
      const subscription = start().subscribe(() => {
        if (++count < 3) return;
        subscription.unsubscribe();
        resolve();
      });
    }),
  'unsubscribe at once': async (start) => start().subscribe().unsubscribe(),
  'switchMap()': async (start) => {
    const outer = new Subject<Observable<number>>();
    const first = firstValueFrom(outer.pipe(switchMap((inner) => inner)));
    const subscription = outer.pipe(switchMap((inner) => inner)).subscribe();
    outer.next(start());
    await first;
    outer.next(NEVER);
    subscription.unsubscribe();
  },
  'an error of the consumer': (start) => rejectionOf(lastValueFrom(start().pipe(map((value) => (value === 2 ? fail() : value))))),
  'an AbortSignal': async (start) => {
    const aborter = new AbortController();
    const run = start(aborter.signal);
    setImmediate(() => aborter.abort('enough'));
    expect(await rejectionOf(lastValueFrom(run))).toMatchObject({ name: 'AbortError', cause: 'enough' });
  },
  'a signal that has aborted before': async (start) =>
    expect(await rejectionOf(lastValueFrom(start(AbortSignal.abort())))).toBeInstanceOf(AbortError),
  'break in for await': async (start) => {
    for await (const value of start()) if (value === 2) break;
  },
  'throw in for await': (start) =>
    rejectionOf(
      (async () => {
        for await (const value of start()) if (value === 2) fail();
      })(),
    ),
  'destroy of a Node stream': async (start) => {
    const readable = Readable.from(start());
    for await (const value of readable) if (value === 2) break;
    readable.destroy();
  },
};

async function* forever(): AsyncGenerator<number> {
  yield await new Promise<never>(() => undefined);
}

function fail(): never {
  throw new Error('of the consumer');
}

async function memoryOf(device: Device): Promise<readonly number[]> {
  await device.synchronize();
  const { usedBytes, pinnedBytes } = await device.pool.stats();
  return [usedBytes, pinnedBytes, device.inspect().streams.length];
}

/** Memory is freed after the device's work, and unsubscribing does not wait for that. */
async function expectMemory(device: Device, before: readonly number[]): Promise<void> {
  const end = performance.now() + 10_000;
  while (String(await memoryOf(device)) !== String(before) && performance.now() < end) await turn();
  expect(await memoryOf(device)).toEqual(before);
}

defineChapter((target) => {
  describe('9 ends of pipelines', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    const work = async (item: number, lane: Lane): Promise<number> => {
      const pinned = lane.pinned(LENGTH, i32);
      pinned.data.fill(item);
      const x = lane.empty(LENGTH, i32);
      lane.stream.copy(x, pinned);
      lane.stream.launch(plusOneAt, LENGTH, { x, by: 0 });
      return (await x.read())[0]! - 1;
    };

    for (const [name, end] of Object.entries(ENDINGS)) {
      rule('S941', `${name} stops pulling, closes the source and gives everything back`, async () => {
        const { device } = chapter;
        for (const kind of ['items', 'asyncItems'] as const) {
          // Memory that the device keeps from its first run is not a leak.
          await lastValueFrom(overlap(device, [1, 2, 3], { depth: 3 }, work));
          const before = await memoryOf(device);
          const sources: Endless[] = [];
          await end((signal) =>
            overlap(
              device,
              () => {
                const source = new Endless();
                sources.push(source);
                return source[kind]();
              },
              { depth: 3, ...(signal === undefined ? {} : { signal }) },
              work,
            ),
          );
          const pulled = sources.map((source) => source.pulled);
          await expectMemory(device, before);
          await turn();
          expect(sources.map((source) => source.pulled)).toEqual(pulled);
          // A generator that was never started has nothing to close.
          for (const source of sources) expect(source.closed).toBe(source.pulled > 0 ? 1 : 0);
        }
      });
    }

    rule('S941', 'an error of one stage closes the source and aborts the other lanes', async () => {
      const { device } = chapter;
      const before = await memoryOf(device);
      const [endless, manual] = [new Endless(), manualStage<number>()];
      const seen = watch(overlap(device, endless.items(), { depth: 3 }, manual.stage));
      await eventually('all lanes are occupied', () => manual.calls.length === 3);
      manual.calls[1]!.reject(new Error('mine'));
      await eventually('the item after it is aborted', () => manual.calls[2]!.lane.signal.aborted);
      manual.calls[0]!.resolve(0);
      manual.calls[2]!.resolve(2);
      await eventually('the run ends', () => seen.end() !== 'open');
      expect([seen.end(), endless.pulled, endless.closed]).toEqual([new Error('mine'), 3, 1]);
      await expectMemory(device, before);
    });

    rule('S941', 'unsubscribing unsubscribes an Observable source, cancels a web stream and destroys a Node stream', async () => {
      const { device } = chapter;
      const before = await memoryOf(device);
      const source = new Subject<number>();
      const pushed = watch(source.pipe(overlapMap(device, { overflow: 'latest' }, work)));
      await eventually('it is subscribed to', () => source.observed);
      source.next(1);
      pushed.unsubscribe();
      await eventually('it is not any more', () => !source.observed);
      let isCancelled = false;
      const web = new ReadableStream<number>({ pull: (controller) => controller.enqueue(1), cancel: () => void (isCancelled = true) });
      await lastValueFrom(overlap(device, web, {}, work).pipe(take(2)));
      await eventually('the stream is cancelled', () => isCancelled);
      const node = Readable.from(new Endless().items());
      await lastValueFrom(overlap(device, node as AsyncIterable<number>, {}, work).pipe(take(2)));
      await eventually('the stream is destroyed', () => node.destroyed);
      await expectMemory(device, before);
    });

    const stuck: Readonly<Record<string, (signal: AbortSignal) => Overlapped<number>>> = {
      'waits for its source': (signal) => overlap(chapter.device, () => forever(), { signal }, work),
      'waits before a retry': (signal) =>
        overlap(chapter.device, [1], { signal, onError: { retry: 1, delayMs: 3_600_000 } }, () => Promise.reject(new Error('mine'))),
    };
    for (const [name, start] of Object.entries(stuck)) {
      rule('S941', `a run that ${name} ends by its signal, by unsubscribing and by return(), and no listener stays`, async () => {
        const { device } = chapter;
        const before = await memoryOf(device);
        const aborter = new AbortController();
        const left = watch(start(aborter.signal));
        const iterator = start(aborter.signal)[Symbol.asyncIterator]();
        const next = iterator.next();
        await eventually('both have lanes', () => device.inspect().streams.length > before[2]! + 3);
        left.unsubscribe();
        await iterator.return!();
        expect((await next).done).toBe(true);
        await expectMemory(device, before);
        const aborted = watch(start(aborter.signal));
        await eventually('it has lanes', () => device.inspect().streams.length > before[2]!);
        aborter.abort();
        await eventually('it ends', () => aborted.end() !== 'open');
        expect(aborted.end()).toBeInstanceOf(AbortError);
        expect(getEventListeners(aborter.signal, 'abort')).toEqual([]);
        await expectMemory(device, before);
      });
    }

    rule('S942', 'an item ends after the operations that it submitted, even if its result did not wait for them', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      await device.compile(plusOneAt);
      const started: number[] = [];
      const arrays: DeviceArray[] = [];
      await using latch = await hold(target, stream, plusOneAt);
      const run = overlap(device, [0, 1], { depth: 1, streams: [stream] }, (item, lane) => {
        started.push(item);
        return of(new Int32Array(LENGTH)).pipe(
          upload(lane),
          launch(lane, plusOneAt, LENGTH, (x) => ({ x, by: 0 })),
          map((x) => {
            arrays.push(x);
            return item;
          }),
        );
      });
      const seen = watch(run);
      await eventually('the first stage runs', () => started.length === 1);
      for (let n = 0; n < 20; n++) await turn();
      expect([started, seen.end()]).toEqual([[0], 'open']);
      latch.open();
      await eventually('the run ends', () => seen.end() !== 'open');
      expect([seen.end(), seen.values, started]).toEqual(['complete', [0, 1], [0, 1]]);
      for (const array of arrays) expect(() => array.subarray(0)).toThrow(StateError);
      await stream.close();
    });

    const unawaited: Readonly<Record<string, (lane: Lane, by: number) => Observable<number> | Promise<number>>> = {
      'a launch that nothing reads': (lane, by) =>
        of(new Int32Array(LENGTH)).pipe(
          upload(lane),
          launch(lane, plusOneAt, LENGTH, (x) => ({ x, by })),
          map(() => by),
        ),
      'the same in an async function': async (lane, by) =>
        firstValueFrom(
          of(new Int32Array(LENGTH)).pipe(
            upload(lane),
            launch(lane, plusOneAt, LENGTH, (x) => ({ x, by })),
            map(() => by),
          ),
        ),
      'a download that is given up': (lane, by) =>
        concat(
          of(by),
          of(new Int32Array(LENGTH)).pipe(
            upload(lane),
            launch(lane, plusOneAt, LENGTH, (x) => ({ x, by })),
            download(lane),
            map(() => by),
          ),
        ).pipe(
          take(2),
          toArray(),
          map(([first]) => first!),
        ),
    };
    for (const [name, stage] of Object.entries(unawaited)) {
      rule('S942', `an item fails with the failure of ${name}`, async () => {
        const stageOf = (by: number, lane: Lane): Observable<number> | Promise<number> => stage(lane, by);
        expect(await rejectionOf(lastValueFrom(overlap(chapter.device, [LENGTH], {}, stageOf)))).toBeInstanceOf(BoundsError);
        const skipping = overlap(chapter.device, [0, LENGTH, 0], { onError: 'skip' }, stageOf);
        await lastValueFrom(skipping.pipe(toArray()));
        expect(skipping.report()).toMatchObject({ items: 2, skipped: 1 });
      });
    }

    rule('S941', 'a run that never waits for the event loop hears timers and signals', async () => {
      const endless = function* (): Generator<number> {
        for (;;) yield 1;
      };
      const fails = (): Promise<never> => Promise.reject(new Error('on purpose'));
      const runs = [
        (signal: AbortSignal) => overlap(chapter.device, endless, { signal }, (n) => Promise.resolve(n)),
        (signal: AbortSignal) => overlap(chapter.device, endless, { signal, onError: 'skip' }, fails),
        (signal: AbortSignal) => overlap(chapter.device, [1], { signal, onError: { retry: Infinity } }, fails),
      ];
      for (const run of runs) {
        const abort = new AbortController();
        setImmediate(() => abort.abort());
        expect(await rejectionOf(lastValueFrom(run(abort.signal)))).toBeInstanceOf(AbortError);
      }
    });

    rule('S941', 'timers get their turns between items whose stages keep the event loop busy', async () => {
      let turns = 0;
      let isOver = false;
      const count = (): void => {
        turns++;
        if (!isOver) setImmediate(count);
      };
      const seen: number[] = [];
      // Longer than a run keeps a turn.
      const busy = (): Promise<void> => {
        seen.push(turns);
        for (const end = performance.now() + 1.1; performance.now() < end; );
        return Promise.resolve();
      };
      setImmediate(count);
      for await (const _ of overlap(chapter.device, Array(20).keys(), busy));
      isOver = true;
      expect(new Set(seen).size).toBe(20);
    });

    rule('S941', 'a stage may end its run before it returns', async () => {
      const { device } = chapter;
      const before = device.inspect().streams.length;
      let read: Int32Array | undefined;
      const subscription = overlap(device, [3], async (n, lane) => {
        subscription.unsubscribe();
        await lane.full(2, n, 'i32').read();
        read = await lane.full(2, n, 'i32').read();
      }).subscribe();
      await eventually('the stage has settled', () => read !== undefined);
      expect(read).toEqual(new Int32Array([3, 3]));
      await eventually('its lanes are closed', () => device.inspect().streams.length === before);
    });
  });
});

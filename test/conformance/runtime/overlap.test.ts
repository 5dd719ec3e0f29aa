// Chapter 9: the results of `overlap` belong to their receiver, however they are kept.
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { bufferCount, concatMap, delay, firstValueFrom, from, lastValueFrom, of, shareReplay, toArray, type Observable } from 'rxjs';
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  download,
  i32,
  launch,
  overlap,
  StateError,
  upload,
  type DeviceArray,
  type Lane,
  type Overlapped,
  type PinnedArray,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { increased } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, turn } from '../../support/wait.js';

const ITEMS = 9;
const LENGTH = 1000;
const EXPECTED = Array.from({ length: ITEMS }, (_, item) => [item + 100, item + 100]);

type Result = Int32Array<ArrayBuffer>;

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const kept: T[] = [];
  for await (const value of values) kept.push(value);
  return kept;
}

const all = (values: Observable<Result>): Promise<Result[]> => lastValueFrom(values.pipe(toArray()));

/** Ways to keep results after the turn of the event loop in which they were emitted. */
const KEEPERS: Readonly<Record<string, (run: Overlapped<Result>) => Promise<readonly Result[]>>> = {
  'toArray()': (run) => all(run),
  'concatMap of an async function': (run) => all(run.pipe(concatMap(async (result) => turn().then(() => result)))),
  'bufferCount()': async (run) => (await lastValueFrom(run.pipe(bufferCount(4), toArray()))).flat(),
  'delay()': (run) => all(run.pipe(delay(5))),
  'shareReplay(), heard late': async (run) => {
    const shared = run.pipe(shareReplay());
    await lastValueFrom(shared);
    return all(shared);
  },
  'for await that keeps them': (run) => collect(run),
  'Readable.from()': (run) => collect<Result>(Readable.from(run)),
  'ReadableStream.from()': (run) => collect<Result>(ReadableStream.from(run) as unknown as AsyncIterable<Result>),
  'pipeline() to a write stream': async (run) => {
    const kept: Result[] = [];
    const slow = new Writable({
      objectMode: true,
      write: (result: Result, _encoding, done) => {
        kept.push(result);
        setImmediate(done);
      },
    });
    await pipeline(run, slow);
    return kept;
  },
};

defineChapter((target) => {
  describe('9 results of overlap', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    function run(): Overlapped<Result> {
      const chunks = Array.from({ length: ITEMS }, (_, item) => new Int32Array(LENGTH).fill(item));
      return overlap(chapter.device, chunks, { depth: 3 }, (chunk, lane) =>
        of(chunk).pipe(
          upload(lane),
          launch(
            lane,
            increased,
            (x) => x.length,
            (x) => ({ x, by: 100 }),
          ),
          download(lane),
        ),
      );
    }

    for (const [name, keep] of Object.entries(KEEPERS)) {
      rule('S909', `each result stays what it was behind ${name}`, async () => {
        const kept = await keep(run());
        expect(kept.map((result) => [result[0], result[LENGTH - 1]])).toEqual(EXPECTED);
        expect(new Set(kept.map((result) => result.buffer)).size).toBe(ITEMS);
      });
    }

    rule('S909', 'several values per item keep their order, large and small ones', async () => {
      // Reads of more than 8 MiB go through the device's worker.
      const sizes = [3 * 2 ** 20, 1, 5 * 2 ** 19, 2];
      const results = await lastValueFrom(
        overlap(chapter.device, [0, 1], { depth: 2 }, (item, lane) =>
          from(sizes.map((size) => new Int32Array(size).fill(size + item))).pipe(upload(lane), download(lane)),
        ).pipe(toArray()),
      );
      expect(results.map((result) => [result.length, result.at(-1)])).toEqual(
        [0, 1].flatMap((item) => sizes.map((size) => [size, size + item])),
      );
    });

    rule('S909', 'download on a stream frees the array of upload, and its own memory', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const { usedBytes: before } = await device.pool.stats();
      for (let item = 0; item < 20; item++) {
        const result = await firstValueFrom(of(new Int32Array(LENGTH).fill(item)).pipe(upload(stream), download(stream)));
        expect([result[0], result.length]).toEqual([item, LENGTH]);
      }
      await device.synchronize();
      expect((await device.pool.stats()).usedBytes).toBeLessThanOrEqual(before);
      await stream.close();
    });

    const refusedStages: Readonly<Record<string, (lane: Lane) => unknown>> = {
      'an array of the lane': (lane) => lane.empty(4),
      'a view of one': (lane) => lane.empty(4).subarray(1),
      'a pinned array of the lane': (lane) => lane.pinned(4),
      'the bytes of one': (lane) => lane.pinned(4).data.subarray(2),
      'an object with such bytes': (lane) => ({ item: 1, data: lane.pinned(4).data }),
      'an array with one': (lane) => [lane.empty(4)],
    };
    for (const [name, give] of Object.entries(refusedStages)) {
      rule('S910', `a stage cannot give ${name}`, async () => {
        const error = await rejectionOf(collect(overlap(chapter.device, [1], {}, (_, lane) => Promise.resolve(give(lane)))));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toMatch(/lane 0.*detach/);
      });
    }

    rule('S910', "an array that outlives its item throws and does not show another item's bytes", async () => {
      const kept: (DeviceArray<'i32'> | PinnedArray<'i32'>)[] = [];
      const results = await collect(
        overlap(
          chapter.device,
          Array.from({ length: ITEMS }, (_, item) => item),
          { depth: 2 },
          async (item, lane) => {
            const [pinned, x] = [lane.pinned(LENGTH, i32), lane.empty(LENGTH, i32)];
            kept.push(pinned, x, x.subarray(1));
            pinned.data.fill(item);
            lane.stream.copy(x, pinned);
            lane.stream.launch(increased, LENGTH, { x, by: 100 });
            return x.read();
          },
        ),
      );
      expect(results.map((result) => [result[0], result[LENGTH - 1]])).toEqual(EXPECTED);
      expect(kept).toHaveLength(3 * ITEMS);
      for (const array of kept) {
        expect(() => array.subarray(0)).toThrow(StateError);
        if ('data' in array) expect(() => array.data).toThrow(StateError);
        else await expect(array.read()).rejects.toThrow(StateError);
      }
    });

    rule('S911', 'detach gives an array to the receiver', async () => {
      const detached = await collect(
        overlap(chapter.device, [1, 2, 3], { depth: 2 }, (item, lane) => Promise.resolve(lane.detach(lane.full(4, item, i32)))),
      );
      for (const [at, array] of detached.entries()) {
        expect(await array.read()).toEqual(new Int32Array(4).fill(at + 1));
        array[Symbol.dispose]();
      }
      const refused = overlap(chapter.device, [1], {}, (_, lane) => Promise.resolve(lane.detach(lane.zeros(4).subarray(1))));
      expect(await rejectionOf(collect(refused))).toBeInstanceOf(ArgumentError);
    });
  });
});

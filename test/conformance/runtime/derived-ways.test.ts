// Chapter 6: further ways in which values derive from a failed kernel: late reads, many and large arrays, textures, variables, structs, loops on
// the device, and failures of other kinds.
import { describe, expect, vi } from 'vitest';
import {
  BoundsError,
  cudaKernel,
  cudaModule,
  f32,
  i32,
  inout,
  input,
  kernel,
  LaunchError,
  output,
  struct,
  UpstreamError,
  type Operation,
  type Stream,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { isPositive, leakOf, LENGTH, leaksOf, pick, plus, plusHere, withDerived, type Derived, type Takes } from '../../support/derived.js';
import { IS_LONG } from '../../support/long.js';
import { chapterDevice, rulesOf, type RuleNumber } from '../../support/rule.js';
import { fetched } from '../../support/texture-kernels.js';
import { rejectionOf } from '../../support/wait.js';

type Case = (given: Derived, at: number) => Takes | Promise<Takes>;
/** Fewer runs, for cases that are long. */
const FEW = IS_LONG ? 30 : 8;
/** A failure that is lost once in ten thousand launches shows in the long form. */
const OWN_ROUNDS = IS_LONG ? 5000 : 200;

const module = cudaModule(`__device__ float kept[${LENGTH}];
extern "C" __global__ void put(const float* y) { int i = blockIdx.x * blockDim.x + threadIdx.x; kept[i] = y[i] + 1; }
extern "C" __global__ void get(float* z) { int i = blockIdx.x * blockDim.x + threadIdx.x; z[i] = kept[i] + 1; }`);
const put = module.kernel('put', { y: input(f32) });
const get = module.kernel('get', { z: output(f32) });
const Pair = struct({ y: input(f32), z: output(f32) });
const throughStruct = cudaKernel(
  'through_struct',
  { p: Pair },
  `struct Pair { const float* y; float* z; };
extern "C" __global__ void through_struct(Pair p) { int i = blockIdx.x * blockDim.x + threadIdx.x; p.z[i] = p.y[i] + 1; }`,
);
const lessOne = kernel('less_one', { left: inout(i32) }, ({ left }, { i }) => {
  if (i === 0) left[0] = left[0]! - 1;
});
const asserted = kernel('asserted', { x: input(f32), y: output(f32), most: f32 }, ({ x, y, most }, { i, assert }) => {
  assert(x[i]! < most);
  y[i] = x[i]!;
});
/** Fails in the thread `who` only, and together with the whole grid. */
const together = kernel('together', { x: input(f32), y: output(f32), at: i32, who: i32 }, ({ x, y, at, who }, { i, gridSync }) => {
  gridSync();
  y[i] = x[i === who ? at : i]!;
});
const BLOCKS = { grid: LENGTH / 256, block: 256 } as const;

const CASES: Readonly<Record<string, readonly [RuleNumber, Case]>> = {
  'copies out of pinned memory that are issued after the failure was told': [
    'S611',
    async ({ device, streams, x, y, z, w }, at) => {
      const [one, late] = streams as [Stream, Stream];
      using pinned = device.pinned(LENGTH);
      await using graph = one.capture((captured) => captured.copy(w, pinned));
      let release = (): void => undefined;
      const isReleased = new Promise<void>((resolve) => (release = resolve));
      late.hold(() => isReleased, { timeoutMs: 20_000 });
      one.launch(pick, LENGTH, { x, at, y });
      const failed = one.copy(pinned, y);
      const takes = { failed, copied: late.copy(z, pinned), next: late.launch(plus, LENGTH, { y: z, z: y }), launched: late.launch(graph) };
      await failed.done.catch(() => undefined);
      pinned.data.fill(8);
      using good = device.zeros(LENGTH);
      one.copy(good, pinned);
      const value = await good.item(0);
      release();
      if (value !== 8) throw new Error(`what was written after the failure is ${value}`);
      return takes;
    },
  ],
  'a copy out of pinned memory before anything told of the failure': [
    'S611',
    async ({ device, streams, x, y, z, w }, at) => {
      const [one, other] = streams as [Stream, Stream];
      let isTold = false;
      const errors = device.errors$.subscribe(() => (isTold = true));
      const pinned = device.pinned(LENGTH);
      one.launch(pick, LENGTH, { x, at, y });
      one.copy(pinned, y);
      await other.fill(w, 1).done;
      const takes: Takes = isTold ? {} : { copied: one.copy(z, pinned), next: one.launch(plus, LENGTH, { y: z, z: w }) };
      errors.unsubscribe();
      pinned[Symbol.dispose]();
      // A later array of the same memory has nothing to do with it.
      await one.synchronize();
      using next = device.pinned(LENGTH);
      next.data.fill(9);
      using good = other.zeros(LENGTH);
      await other.copy(good, next).done;
      return takes;
    },
  ],
  'a read after the failure was reported': [
    'S605',
    async ({ device: { stream }, x, y, z, w }, at) => {
      const failed = stream.launch(pick, LENGTH, { x, at, y });
      stream.launch(plus, LENGTH, { y, z });
      await rejectionOf(failed.done);
      const late = stream.launch(plus, LENGTH, { y: z, z: w });
      return { z: z.read(), late, w: w.read() };
    },
  ],
  'a done that is read after everything has ended': [
    'S614',
    async ({ device: { stream }, x, y, z, w }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      const next = stream.launch(plus, LENGTH, { y, z });
      const copied = stream.copy(w, z);
      await stream.synchronize();
      while (!next.isComplete || !copied.isComplete) await new Promise((resolve) => void setImmediate(resolve));
      if (next.status !== 'failed' || copied.status !== 'failed') throw new Error(`${next.status} and ${copied.status}, not failed.`);
      return { next, copied };
    },
  ],
  'many arrays': [
    'S605',
    ({ device: { stream }, streams, x, y }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      const arrays = Array.from({ length: 32 }, () => stream.empty(32));
      for (const [n, array] of arrays.entries()) streams[n % 3]!.copy(array, y, { srcOffset: n * 32, count: 32 });
      const reads = arrays.map((array, n) => [`read ${n}`, array.item(n)] as const);
      for (const array of arrays) array[Symbol.dispose]();
      return Object.fromEntries(reads);
    },
  ],
  'two thousand launches': [
    'S605',
    ({ device: { stream }, x, y, z }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      for (let n = 0; n < 1000; n++) {
        stream.launch(plus, 32, { y: n === 0 ? y.subarray(0, 32) : y.subarray(32, 64), z: z.subarray(0, 32) });
        stream.launch(plus, 32, { y: z.subarray(0, 32), z: y.subarray(32, 64) });
      }
      return { read: y.subarray(32, 64).read() };
    },
  ],
  'two failures that meet': [
    'S605',
    ({ streams: [a, b, c], x, y, z, w }, at) => {
      a!.launch(pick, LENGTH, { x, at, y });
      b!.launch(pick, LENGTH, { x, at, y: z });
      c!.copy(w, y, { count: 512 });
      c!.copy(w, z, { srcOffset: 512, dstOffset: 512 });
      return { first: w.item(0), last: w.item(LENGTH - 1), whole: w.read() };
    },
  ],
  'a texture that is written, and one that is the array itself': [
    'S496',
    ({ device: { stream }, x, y, z, w }, at) => {
      using texture = stream.createTexture({ shape: LENGTH });
      stream.copy(texture, x);
      using itself = stream.createTexture({ array: y });
      stream.launch(pick, LENGTH, { x, at, y });
      const copied = stream.copy(texture, y);
      stream.copy(z, texture);
      const launched = stream.launch(fetched, BLOCKS, { t: itself, out: w, n: LENGTH });
      return { copied, texture: texture.read(), z: z.read(), launched, w: w.read() };
    },
  ],
  'a variable of a module': [
    'S477',
    ({ device, x, y, z, w }, at) => {
      const { stream } = device;
      const kept = module.global(device, 'kept', f32, LENGTH);
      stream.fill(kept, 0);
      stream.launch(pick, LENGTH, { x, at, y });
      const written = stream.launch(put, BLOCKS, { y });
      const taken = stream.launch(get, BLOCKS, { z });
      const copied = stream.copy(w, kept);
      const all = { written, taken, copied, z: z.read(), w: w.read(), kept: kept.read() };
      stream.fill(kept, 0);
      return all;
    },
  ],
  'arrays in structs': [
    'S447',
    ({ device: { stream }, x, y, z }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      return { launched: stream.launch(throughStruct, BLOCKS, { p: { y, z } }), z: z.read() };
    },
  ],
  'a loop on the device': [
    'S1022',
    ({ device: { stream }, x, y, z }, at) => {
      using left = stream.full(1, 3, 'i32');
      stream.launch(pick, LENGTH, { x, at, y });
      stream.launch(plus, LENGTH, { y, z });
      const loop = stream.captureWhile(left, (s) => {
        s.launch(plusHere, LENGTH, { x: z });
        s.launch(lessOne, 1, { left });
      });
      return { loop, z: z.read(), left: left.read() };
    },
  ],
  'a condition outside of graphs': [
    'S1022',
    ({ device: { stream }, x, y, z, w }, at) => {
      using flag = stream.zeros(1, 'i32');
      stream.launch(pick, LENGTH, { x, at, y });
      stream.launch(plus, LENGTH, { y, z });
      stream.launch(isPositive, 1, { x: z, flag });
      const chosen = stream.captureIf(
        flag,
        (s) => void s.fill(w, 1),
        (s) => void s.fill(w, 2),
      );
      return { chosen, w: w.read() };
    },
  ],
  'a cooperative launch that one thread fails': [
    'S456',
    ({ device: { stream }, x, y, z }, at) => {
      stream.launch(together, { ...BLOCKS, cooperative: true }, { x, y, at, who: LENGTH - 1 });
      stream.launch(plus, LENGTH, { y, z });
      return { z: z.read(), good: z.item(0) };
    },
  ],
};

defineChapter((target) => {
  describe('6 failure: further ways to derive from it', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const [name, [number, once]] of Object.entries(CASES)) {
      rule(number, `nothing that derives from a failed kernel is given out: ${name}`, async () => {
        await chapter.device.compile(fetched, throughStruct, put, get, lessOne, together);
        await withDerived(chapter.device, async (given) => expect(await leaksOf(given, once, FEW)).toEqual({}));
      });
    }

    rule(
      'S603',
      'a failed kernel itself never fulfils, alone and in a graph, on six streams at once',
      async () => {
        await withDerived(chapter.device, async ({ device, x }) => {
          await device.compile(pick, plus);
          const fulfilled: Record<string, number> = {};
          const lane = async (number: number): Promise<void> => {
            const stream = device.createStream();
            const filling = device.createStream();
            using y = stream.zeros(LENGTH);
            const graph = stream.capture({ at: i32 }, (s, { at }) => void s.launch(pick, LENGTH, { x, at, y }));
            for (let n = 0; n < OWN_ROUNDS; n++) {
              filling.fill(y, 1);
              const isGraph = (n + number) % 2 === 0;
              const failed = isGraph ? stream.launch(graph, { at: 5000 + n }) : stream.launch(pick, LENGTH, { x, at: 5000 + n, y });
              // What it wrote is overwritten at once.
              const after = stream.launch(plus, LENGTH, { y: x, z: y });
              if (n % 3 === 0) await after.done;
              if (n % 3 === 1) await new Promise((resolve) => void setImmediate(resolve));
              const leak = await leakOf(5000 + n, isGraph ? 'graph' : 'kernel', failed.done);
              if (leak !== undefined) fulfilled[leak] = (fulfilled[leak] ?? 0) + 1;
            }
            await graph.close();
            await Promise.all([stream.close(), filling.close()]);
          };
          await Promise.all(Array.from({ length: 6 }, (_, number) => lane(number)));
          expect(fulfilled).toEqual({});
        });
      },
      { timeoutMs: 300_000 },
    );

    rule('S435', 'nothing that derives from a failed assertion is given out', async () => {
      await withDerived(chapter.device, async ({ device, streams, x, y, z, w }) => {
        await device.compile(asserted, plus);
        const seen: Record<string, number> = {};
        device.stream.fill(x, 3);
        for (let n = 0; n < 100; n++) {
          const failed = streams[0]!.launch(asserted, LENGTH, { x, y, most: 2 });
          streams[1]!.launch(plus, LENGTH, { y, z });
          const copied = streams[0]!.copy(w, z);
          const ends = await Promise.allSettled([failed.done, copied.done, z.read(), w.read()]);
          const texts = ends.map((end) => {
            if (end.status === 'fulfilled') return 'fulfilled';
            const reason: unknown = end.reason;
            return (reason instanceof UpstreamError ? reason.cause : reason) instanceof LaunchError ? 'failed' : String(reason);
          });
          seen[texts.join()] = (seen[texts.join()] ?? 0) + 1;
          for (const array of [y, z, w]) device.stream.fill(array, n);
        }
        expect(seen).toEqual({ 'failed,failed,failed,failed': 100 });
      });
    });

    rule('S904', 'activity$ tells that what derives from a failed kernel has failed', async () => {
      await withDerived(chapter.device, async ({ device, streams, x, y, z, w }) => {
        await device.compile(pick, plus);
        const stream = streams[0]!;
        await stream.synchronize();
        const phases: Record<string, number> = {};
        const subscription = stream.activity$.subscribe(({ phase, operation: { kind } }) => {
          if (kind === 'launch' || kind === 'copy') phases[phase] = (phases[phase] ?? 0) + 1;
        });
        for (let n = 0; n < 100; n++) {
          stream.launch(pick, LENGTH, { x, at: 5000, y });
          stream.launch(plus, LENGTH, { y, z });
          await stream.copy(w, z).done.catch(() => undefined);
        }
        // A turn reports a bounded number of operations.
        await vi.waitFor(() => expect(phases).toEqual({ submitted: 300, failed: 300 }));
        subscription.unsubscribe();
      });
    });

    rule('S614', 'six thousand failures that are pending together poison what derives from each', async () => {
      await withDerived(chapter.device, async ({ device, streams, x, y, z, w }) => {
        await device.compile(pick, plus);
        const pairs = [y, z, w];
        const operations: Operation[] = [];
        for (let n = 0; n < 6000; n++) {
          const to = pairs[n % 3]!.subarray((n % 32) * 32, (n % 32) * 32 + 32);
          operations.push(streams[n % 3]!.launch(pick, 32, { x, at: 5000 + n, y: to }));
        }
        const reads = pairs.map((array) => rejectionOf(array.read()));
        const ends = await Promise.allSettled(operations.map(({ done }) => done));
        expect(ends.filter(({ status }) => status === 'fulfilled')).toEqual([]);
        const wrong = ends.filter(
          (end, n) => !(end.status === 'rejected' && end.reason instanceof BoundsError && end.reason.index === 5000 + n),
        );
        expect(wrong).toHaveLength(0);
        for (const error of await Promise.all(reads)) expect(error).toBeInstanceOf(UpstreamError);
      });
    });

    rule('S609', 'memory of disposed arrays with failures serves arrays that are good', async () => {
      await withDerived(chapter.device, async ({ device, streams, x }) => {
        await device.compile(pick, plus);
        const wrong: string[] = [];
        for (let n = 0; n < 200; n++) {
          const stream = streams[n % 3]!;
          const bad = stream.empty(LENGTH);
          const next = stream.empty(LENGTH);
          const failed = stream.launch(pick, LENGTH, { x, at: 5000 + n, y: bad });
          const launched = stream.launch(plus, LENGTH, { y: bad, z: next });
          for (const array of [bad, next]) array[Symbol.dispose]();
          const good = [stream.full(LENGTH, n), stream.empty(LENGTH)] as const;
          const after = stream.launch(plus, LENGTH, { y: good[0], z: good[1] });
          const ends = await Promise.allSettled([after.done, good[0].item(7), good[1].item(8)]);
          const texts = ends.map((end) =>
            end.status === 'rejected' ? String(end.reason) : typeof end.value === 'number' ? end.value : 'done',
          );
          if (texts.join() !== `done,${n},${n + 1}`) wrong.push(`${n}: ${texts.join()}`);
          for (const promise of [failed.done, launched.done]) {
            const leak = await leakOf(5000 + n, 'a disposed one', promise);
            if (leak !== undefined) wrong.push(`${n}: ${leak}`);
          }
          for (const array of good) array[Symbol.dispose]();
        }
        expect(wrong).toEqual([]);
      });
    });

    rule('S605', 'large arrays, whose reads the worker makes, and copies in several pieces', async () => {
      const { device } = chapter;
      await device.compile(plus);
      const length = 9 * 2 ** 20;
      const { stream } = device;
      using y = stream.zeros(length);
      using z = stream.zeros(length);
      using w = stream.zeros(length);
      const errors = device.errors$.subscribe(() => undefined);
      const seen: Record<string, number> = {};
      for (let n = 0; n < 2; n++) {
        stream.launch(pick, 64, { x: w, at: 2 ** 30 + n, y });
        stream.launch(plus, length, { y, z });
        stream.copy(w.subarray(5), z, { count: length - 5 });
        for (const leak of [await leakOf(2 ** 30 + n, 'z', z.read()), await leakOf(2 ** 30 + n, 'w', w.read())]) {
          if (leak !== undefined) seen[leak] = (seen[leak] ?? 0) + 1;
        }
        for (const array of [y, z, w]) stream.fill(array, 0);
      }
      errors.unsubscribe();
      expect(seen).toEqual({});
    });
  });
});

// Chapter 4: loops of checked kernels. A device may check before a loop that none of its accesses is out of bounds, and run
// the loop without checks. Results and reports must not depend on that.
import { describe, expect } from 'vitest';
import { BoundsError, f32, i32, inout, input, kernel, output } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

/** Rows are as wide as the constants say, wider, or narrower. */
const sums = kernel('row_sums', { rows: input(f32, 2), out: output(f32, 2) }, ({ rows, out }, { i }) => {
  let first = 0;
  let last = 0;
  for (let k = 0; k < rows.shape[0]; k++) {
    first += rows[k]![0]! * i;
    last += rows[k]![3]!;
  }
  out[i]![0] = first;
  out[i]![1] = last;
});
const uncheckedSums = kernel(
  'unchecked_row_sums',
  { rows: input(f32, 2), out: output(f32, 2) },
  ({ rows, out }, { i }) => {
    let last = 0;
    for (let k = 0; k < rows.shape[0]; k++) last += rows[k]![3]!;
    out[i]![0] = last;
    out[i]![1] = i;
  },
  { bounds: 'unchecked' },
);

/** Thread i reads `count` elements from i on. */
const windows = kernel('windows', { x: input(i32), count: i32, out: inout(i32) }, ({ x, count, out }, { i }) => {
  let sum = 0;
  for (let k = 0; k < count; k++) sum += x[i + k]!;
  out[i] = sum;
});

/** As `windows`, with a barrier before and behind, and a start that crosses it. */
const sharedWindows = kernel('shared_windows', { x: input(i32), count: i32, out: inout(i32) }, ({ x, count, out }, t) => {
  const starts = t.shared(i32, 64);
  const start = t.i * 2;
  starts[t.threadIdx.x] = start;
  t.syncthreads();
  let sum = 0;
  for (let k = 0; k < count; k++) sum += x[starts[t.threadIdx.x]! + k]! + x[start + k]!;
  t.syncthreads();
  out[t.i] = sum;
});

/** The index of each iteration is a product that overflows 32 bits: its value is unspecified, but it must not access other memory. */
const products = kernel('products', { x: input(i32), by: i32, out: inout(i32) }, ({ x, by, out }, { i }) => {
  let sum = 0;
  for (let k = 0; k < 64; k++) {
    const at = k * by;
    if (at >= 0 && at < x.length) sum += x[at]!;
  }
  out[i] = sum;
});

defineChapter((target) => {
  describe('4 kernels: checked loops', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    async function rowSums(width: number, which = sums): Promise<readonly number[]> {
      const { stream } = chapter.device;
      const host = Float32Array.from({ length: 6 * width }, (_, at) => at % 11);
      using rows = stream.from(host, { shape: [6, width] });
      using out = stream.zeros([3, 2]);
      await stream.launch(which, 3, { rows, out }).done;
      return [...(await out.read())];
    }
    const column = (width: number, at: number): number => [0, 1, 2, 3, 4, 5].reduce((sum, row) => sum + ((row * width + at) % 11), 0);

    for (const width of [4, 5, 9]) {
      rule('S436', `constants index rows of ${width}`, async () => {
        const [first, last] = [column(width, 0), column(width, 3)];
        expect(await rowSums(width)).toEqual([0, last, first, last, 2 * first, last]);
        expect(await rowSums(width, uncheckedSums as typeof sums)).toEqual([last, 0, last, 1, last, 2]);
      });
    }

    rule('S603', 'an index that overflows before its comparison accesses nothing outside the array', async () => {
      const { stream } = chapter.device;
      using x = stream.full(64, 1, i32);
      using out = stream.zeros(40, i32);
      await stream.launch(products, 40, { x, by: 2 ** 30, out }).done;
      for (const sum of await out.read()) expect(sum >= 1 && sum <= 64).toBe(true);
    });

    rule('S436', 'a row that is narrower than assumed is reported', async () => {
      const error = await rejectionOf(rowSums(3));
      expect(error).toBeInstanceOf(BoundsError);
      expect((error as { cause?: unknown }).cause ?? error).toMatchObject({ array: 'rows', dimension: 1, index: 3, limit: 3 });
    });

    /** The sums of 100 threads in two blocks, each of `count` elements of an array of 1, 2, 3... */
    async function added(which: typeof windows, count: number, length: number): Promise<readonly number[]> {
      const { stream } = chapter.device;
      using x = stream.from(Int32Array.from({ length }, (_, at) => at + 1));
      using out = stream.full(100, -7, i32);
      await stream.launch(which, { threads: 100, block: 50 }, { x, count, out }).done;
      return [...(await out.read())];
    }

    for (const [name, which, step, times] of [
      ['a loop', windows, 1, 1],
      ['a loop behind a barrier', sharedWindows, 2, 2],
    ] as const) {
      rule('S436', `${name} may end at the last element`, async () => {
        const expected = Array.from({ length: 100 }, (_, i) => times * (9 * (i * step + 1) + 36));
        expect(await added(which, 9, 99 * step + 9)).toEqual(expected);
      });

      rule('S436', `${name} that goes beyond in one thread is reported of that thread`, async () => {
        const length = 99 * step + 8;
        const error = await rejectionOf(added(which, 9, length));
        expect(error).toBeInstanceOf(BoundsError);
        expect(error).toMatchObject({ array: 'x', index: length, limit: length, block: [1, 0, 0], thread: [49, 0, 0] });
      });

      rule('S436', `${name} that is not entered leaves nothing`, async () => {
        for (const count of [0, -5]) expect(new Set(await added(which, count, 1))).toEqual(new Set([0]));
      });
    }
  });
});

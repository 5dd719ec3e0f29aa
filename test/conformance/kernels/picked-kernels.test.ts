// Chapter 4, selected shapes and edge cases, against plain JavaScript: ragged launches of one to three dimensions, blocks
// of one thread and of the most threads, empty launches, arrays of four dimensions, exact arithmetic.
import { describe, expect } from 'vitest';
import { f32, f64, func, i32, inout, input, kernel, output, u32 } from 'millrace';
import type { LaunchShape } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

/** Each thread marks its element, and counts how often it was there. */
const marks1 = kernel('marks1', { out: inout(i32) }, ({ out }, { i, blockDim, threadIdx }) => {
  out[i] = out[i]! + 1000 * i + blockDim.x - threadIdx.x;
});
const marks2 = kernel('marks2', { out: inout(i32, 2) }, ({ out }, { i, j, globalIdx }) => {
  out[i]![j] = out[i]![j]! + 100 * globalIdx.y + globalIdx.x + i - j;
});
const marks3 = kernel('marks3', { out: inout(i32, 3) }, ({ out }, { i, j, k, gridDim }) => {
  out.set(i, j, k, out.at(i, j, k) + 10_000 * i + 100 * j + k + gridDim.z);
});

/** Sums the inner two dimensions of each of the outer two, by rows that are named and by `at`. */
const inner = kernel('inner', { a: input(f64, 4), out: output(f64, 2), last: output(f64, 2) }, ({ a, out, last }, { i, j }) => {
  const plane = a[i]![j]!;
  let sum = 0;
  for (let row = 0; row < plane.shape[0]; row++) {
    const line = plane[row]!;
    for (let column = 0; column < line.length; column++) sum += line[column]! * (row + 1);
  }
  out[i]![j] = sum;
  last[i]![j] = a.at(i, j, a.shape[2] - 1, a.shape[3] - 1);
});

/** Operations that every device rounds in the same way. */
const exactly = kernel(
  'exactly',
  { x: input(f32), y: input(f32), f: output(f32, 2), d: output(f64, 2) },
  ({ x, y, f, d }, { i, f64: double }) => {
    const a = x[i]!;
    const b = y[i]!;
    f[i]![0] = a * b + b;
    f[i]![1] = (a - b) / (a + 3);
    f[i]![2] = Math.sqrt(Math.abs(a * a - b));
    d[i]![0] = double(a) * b + b / double(3);
    d[i]![1] = (double(a) - b) / (double(a) + 3);
    d[i]![2] = Math.sqrt(Math.abs(double(a) * a - b));
  },
  { fmad: false },
);

/** Converting a fraction to an integer never gives -0. The remainders prevent vectorisation. */
const cut = kernel('cut', { x: input(f64), y: input(f32), d: output(f64, 2), f: output(f32, 2) }, ({ x, y, d, f }, t) => {
  d[t.i]![0] = t.f64(t.i32(x[t.i]!));
  d[t.i]![1] = x[t.i]! % 0.25;
  f[t.i]![0] = t.f32(t.i32(y[t.i]!));
  f[t.i]![1] = y[t.i]! % 0.25;
});

/** The number of iterations differs by thread. The kernel has every way out of a loop, and a helper. */
const turns = func([i32, i32], i32, (n, most) => {
  let count = 0;
  for (let v = n; v > 0; v--) {
    if (v % 3 === 0) continue;
    if (count >= most) return -count;
    count += v;
  }
  return count;
});
const exits = kernel(
  'exits',
  { n: input(i32), out: inout(i32, 2) },
  ({ n, out }, { i, MOST, turns: counted }) => {
    if (n[i]! < 0) return;
    out[i]![0] = counted(n[i]!, MOST);
    let total = 0;
    for (let outer = 0; outer < n[i]!; outer++) {
      let v = outer;
      do {
        if (v % 5 === 4) break;
        v++;
        if (v % 7 === 0) continue;
        total += v;
      } while (v < outer + (i & 3));
      if (total > 500) {
        out[i]![2] = outer;
        return;
      }
      while (v > 0) v = v >> 1;
      out[i]![1] = total + v;
    }
    out[i]![2] = -1;
  },
  { constants: { MOST: 40 }, functions: { turns } },
);

const touch = kernel('touch', { out: inout(u32), n: i32 }, ({ out, n }, { i, atomicAdd }) => {
  if (i < n) atomicAdd(out, 0, 1);
});

defineChapter((target) => {
  describe('4 kernels: selected cases', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S410', 'ragged launches of one dimension run each index once, by blocks of any width', async () => {
      const { device } = chapter;
      const most = device.info.maxThreadsPerBlock;
      for (const n of [1, 2, 31, 33, 1023, 1025, 3001]) {
        for (const block of [1, 7, 32, 100, most]) {
          using out = device.zeros(n, 'i32');
          device.stream.launch(marks1, { threads: n, block }, { out });
          expect(await out.read(), `${n} by ${block}`).toEqual(Int32Array.from({ length: n }, (_, i) => 1000 * i + block - (i % block)));
        }
      }
    });

    rule('S410', 'ragged launches of two and three dimensions run each index once', async () => {
      const { device } = chapter;
      const flat: readonly (readonly [shape: [number, number], block: [number, number]])[] = [
        [
          [1, 1],
          [1, 1],
        ],
        [
          [13, 29],
          [32, 8],
        ],
        [
          [129, 3],
          [1, 64],
        ],
        [
          [2, 1000],
          [512, 2],
        ],
      ];
      for (const [shape, block] of flat) {
        using out = device.zeros(shape, 'i32');
        device.stream.launch(marks2, { threads: shape, block }, { out });
        const expected = Int32Array.from({ length: shape[0] * shape[1] }, (_, n) => {
          const [i, j] = [Math.floor(n / shape[1]), n % shape[1]];
          return 100 * i + j + i - j;
        });
        expect(await out.read(), `${shape.join(' x ')} by ${block.join(' x ')}`).toEqual(expected);
      }
      const deep: readonly (readonly [shape: [number, number, number], shape: LaunchShape, blocks: number])[] = [
        [[3, 5, 7], [3, 5, 7], 0],
        [[9, 2, 33], { threads: [9, 2, 33], block: [16, 2, 4] }, 3],
        [[4, 6, 10], { grid: [2, 3, 1], block: [5, 2, 4] }, 1],
      ];
      for (const [[depth, height, width], shape, blocks] of deep) {
        using out = device.zeros([depth, height, width], 'i32');
        device.stream.launch(marks3, shape, { out });
        const seen = await out.read();
        // If the library chooses the block, the first element has its size.
        const layers = blocks === 0 ? seen[0]! : blocks;
        const expected = Int32Array.from({ length: depth * height * width }, (_, n) => {
          const [i, rest] = [Math.floor(n / (height * width)), n % (height * width)];
          return 10_000 * i + 100 * Math.floor(rest / width) + (rest % width) + layers;
        });
        expect(seen, `${depth} x ${height} x ${width}`).toEqual(expected);
      }
    });

    rule('S403', 'a launch without threads along an axis runs nothing, and arrays may have no elements', async () => {
      const { device } = chapter;
      using flat = device.full([2, 3], 4, 'i32');
      using deep = device.full([2, 3, 2], 4, 'i32');
      for (const threads of [
        [0, 3],
        [2, 0],
        [0, 0],
      ] as const)
        device.stream.launch(marks2, { threads, block: [4, 4] }, { out: flat });
      for (const threads of [
        [2, 3, 0],
        [2, 0, 2],
        [0, 3, 2],
      ] as const)
        device.stream.launch(marks3, threads, { out: deep });
      expect((await flat.read()).every((value) => value === 4)).toBe(true);
      expect((await deep.read()).every((value) => value === 4)).toBe(true);
      using none = device.zeros([2, 2, 0, 5], 'f64');
      using out = device.full([2, 2], 9, 'f64');
      using empty = device.zeros(0, 'i32');
      device.stream.launch(marks1, 0, { out: empty });
      const error = await device.stream.launch(inner, [2, 2], { a: none, out, last: out }).done.catch((reason: unknown) => reason);
      expect(error).toMatchObject({ array: 'a', dimension: 2, index: -1, limit: 0 });
    });

    rule('S412', 'arrays of four dimensions, whole, by planes and by rows', async () => {
      const { device } = chapter;
      const [m, n, rows, columns] = [3, 4, 5, 7];
      const values = Float64Array.from({ length: m * n * rows * columns }, (_, at) => (at % 11) - 5);
      using a = device.from(values, { shape: [m, n, rows, columns] });
      using out = device.zeros([m, n], 'f64');
      using last = device.zeros([m, n], 'f64');
      device.stream.launch(inner, [m, n], { a, out, last });
      const planes = Array.from({ length: m * n }, (_, at) => values.slice(at * rows * columns, (at + 1) * rows * columns));
      const weighted = planes.map((plane) => plane.reduce((sum, value, at) => sum + value * (Math.floor(at / columns) + 1), 0));
      expect([...(await out.read())]).toEqual(weighted);
      expect([...(await last.read())]).toEqual(planes.map((plane) => plane.at(-1)));
    });

    rule('S412', 'sums, products, quotients and roots are exact without fused operations', async () => {
      const { device } = chapter;
      const count = 500;
      const a = Float32Array.from({ length: count }, (_, n) => Math.sin(n * 12.9898) * 10 ** ((n % 13) - 6));
      const b = Float32Array.from({ length: count }, (_, n) => Math.cos(n * 78.233) * 10 ** ((n % 7) - 3));
      using x = device.from(a);
      using y = device.from(b);
      using f = device.zeros([count, 3]);
      using d = device.zeros([count, 3], 'f64');
      device.stream.launch(exactly, count, { x, y, f, d });
      const single = Math.fround;
      const ofSingle = [...a].flatMap((p, n) => {
        const q = b[n]!;
        return [single(single(p * q) + q), single(single(p - q) / single(p + 3)), single(Math.sqrt(Math.abs(single(single(p * p) - q))))];
      });
      expect([...(await f.read())]).toEqual(ofSingle);
      const ofDouble = [...a].flatMap((p, n) => [p * b[n]! + b[n]! / 3, (p - b[n]!) / (p + 3), Math.sqrt(Math.abs(p * p - b[n]!))]);
      expect([...(await d.read())]).toEqual(ofDouble);
    });

    rule('S412', 'truncating a negative fraction to 0 gives +0', async () => {
      const { device } = chapter;
      const values = Float64Array.from({ length: 64 }, (_, n) => (n - 40) / 32);
      using x = device.from(values);
      using y = device.from(Float32Array.from(values));
      using d = device.zeros([64, 2], 'f64');
      using f = device.zeros([64, 2]);
      device.stream.launch(cut, 64, { x, y, d, f });
      const expected = [...values].flatMap((value) => [Math.trunc(value) + 0, value % 0.25]);
      expect([...(await d.read())]).toEqual(expected);
      expect([...(await f.read())]).toEqual(expected);
    });

    rule('S412', 'threads leave loops and the kernel at different iterations', async () => {
      const { device } = chapter;
      const counts = Int32Array.from({ length: 333 }, (_, n) => ((n * 31) % 47) - 3);
      for (const block of [1, 16, 100]) {
        using n = device.from(counts);
        using out = device.full([counts.length, 3], 7, 'i32');
        device.stream.launch(exits, { threads: counts.length, block }, { n, out });
        expect([...(await out.read())]).toEqual([...counts].flatMap((count, i) => exited(count, i)));
      }
    });

    rule('S402', 'launches have exactly the requested blocks, of one thread and of the most threads', async () => {
      const { device } = chapter;
      const most = device.info.maxThreadsPerBlock;
      for (const [grid, block] of [
        [5000, 1],
        [17, most],
      ] as const) {
        using out = device.zeros(1, 'u32');
        device.stream.launch(touch, { grid, block }, { out, n: grid * block - 3 });
        expect([...(await out.read())]).toEqual([grid * block - 3]);
      }
    });
  });
});

/** The result of `exits` for one row. */
function exited(n: number, i: number): number[] {
  if (n < 0) return [7, 7, 7];
  const counted = (most: number): number => {
    let count = 0;
    for (let v = n; v > 0; v--) {
      if (v % 3 === 0) continue;
      if (count >= most) return -count;
      count += v;
    }
    return count;
  };
  let [total, second] = [0, 7];
  for (let outer = 0; outer < n; outer++) {
    let v = outer;
    do {
      if (v % 5 === 4) break;
      v++;
      if (v % 7 === 0) continue;
      total += v;
    } while (v < outer + (i & 3));
    if (total > 500) return [counted(40), second, outer];
    while (v > 0) v = v >> 1;
    second = total + v;
  }
  return [counted(40), second, -1];
}

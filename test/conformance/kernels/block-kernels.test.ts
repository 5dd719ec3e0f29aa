// Chapter 4, TypeScript functions whose threads work together: shared memory, barriers, assertions.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  BoundsError,
  CompileError,
  f32,
  i32,
  inout,
  input,
  kernel,
  LaunchError,
  type LaunchShape,
  output,
  u32,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const sum = kernel('block_sum', { x: input(i32), out: output(i32) }, ({ x, out }, t) => {
  const partial = t.shared(i32, 256);
  const at = t.blockIdx.x * t.blockDim.x + t.threadIdx.x;
  partial[t.threadIdx.x] = at < x.length ? x[at]! : 0;
  t.syncthreads();
  for (let half = t.blockDim.x >> 1; half > 0; half >>= 1) {
    if (t.threadIdx.x < half) partial[t.threadIdx.x]! += partial[t.threadIdx.x + half]!;
    t.syncthreads();
  }
  if (t.threadIdx.x === 0) out[t.blockIdx.x] = partial[0]!;
});

// Every thread writes the same, and reads it under another name.
const readWhereWritten = kernel(
  'read_where_written',
  { x: input(i32), y: inout(i32), out: output(i32, 2) },
  ({ x, y, out }, { i, syncthreads }) => {
    y[0] = 11;
    const first = x[0]!;
    let second = 0;
    syncthreads();
    if (i === 0) y[1] = 102;
    syncthreads();
    second = x[1]!;
    const third = x[3]!;
    y[2] = 9;
    syncthreads();
    out[0]![i] = first;
    out[1]![i] = second;
    out[2]![i] = third;
    if (third > 9) syncthreads();
  },
);

const TILE = 8;
const product = kernel(
  'tiled_product',
  { a: input(f32, 2), b: input(f32, 2), c: output(f32, 2) },
  ({ a, b, c }, { T, shared, syncthreads, threadIdx, blockIdx, idiv }) => {
    const left = shared(f32, [T, T]);
    const right = shared(f32, [T, T]);
    const row = blockIdx.y * T + threadIdx.y;
    const column = blockIdx.x * T + threadIdx.x;
    const n = a.shape[1];
    let total = 0.0;
    for (let tile = 0; tile < idiv(n + T - 1, T); tile++) {
      const k = tile * T;
      left[threadIdx.y]![threadIdx.x] = row < a.shape[0] && k + threadIdx.x < n ? a[row]![k + threadIdx.x]! : 0;
      right[threadIdx.y]![threadIdx.x] = k + threadIdx.y < n && column < b.shape[1] ? b[k + threadIdx.y]![column]! : 0;
      syncthreads();
      for (let m = 0; m < T; m++) total += left[threadIdx.y]![m]! * right[m]![threadIdx.x]!;
      syncthreads();
    }
    if (row < c.shape[0] && column < c.shape[1]) c[row]![column] = total;
  },
  { constants: { T: TILE } },
);

// Every thread passes its value to its neighbour, and threads return at different turns.
const blockSum = kernel('block_total', { x: input(f32), y: inout(f32) }, ({ x, y }, { i, shared, syncthreads, threadIdx, blockIdx }) => {
  const p = shared(f32, 256);
  p[threadIdx.x] = i < x.length ? x[i]! : 0;
  syncthreads();
  for (let half = 128; half > 0; half = half >> 1) {
    if (threadIdx.x < half) p[threadIdx.x] = p[threadIdx.x]! + p[threadIdx.x + half]!;
    syncthreads();
  }
  if (threadIdx.x === 0) y[blockIdx.x] = p[0]!;
});
const tileSum = kernel('tile_sum', { y: inout(f32) }, ({ y }, { i, j, k, syncthreads }) => {
  syncthreads();
  if (i + j + k === 0) y[0] = 1;
});

const relay = kernel(
  'relay',
  { until: input(i32), out: output(i32), turns: i32 },
  ({ until, out, turns }, { i, shared, syncthreads, threadIdx, blockIdx, blockDim }) => {
    const slots = shared(i32, 64);
    const width = Math.min(blockDim.x, out.length - blockIdx.x * blockDim.x);
    let mine = i;
    slots[threadIdx.x] = mine;
    for (let turn = 0; turn < turns; turn++) {
      if (turn === until[i]!) {
        out[i] = mine;
        return;
      }
      syncthreads();
      const next = slots[(threadIdx.x + 1) % width]!;
      syncthreads();
      if (turn === 3) continue;
      mine = next + 1;
      slots[threadIdx.x] = mine;
    }
    out[i] = mine;
  },
);

const histogram = kernel('shared_histogram', { x: input(u32), bins: inout(u32) }, ({ x, bins }, t) => {
  const own = t.sharedDynamic(u32);
  for (let k = t.threadIdx.x; k < own.length; k += t.blockDim.x) own[k] = 0;
  t.syncthreads();
  for (let k = t.blockIdx.x * t.blockDim.x + t.threadIdx.x; k < x.length; k += t.gridDim.x * t.blockDim.x) t.atomicAdd(own, x[k]!, 1);
  t.syncthreads();
  for (let k = t.threadIdx.x; k < own.length; k += t.blockDim.x) t.atomicAdd(bins, k, own[k]!);
});

const beyond = kernel('beyond_shared', { out: output(i32), at: i32 }, ({ out, at }, { i, shared, syncthreads, threadIdx }) => {
  const row = shared(i32, [2, 16]);
  row[0]![threadIdx.x & 15] = i;
  syncthreads();
  row[1]![threadIdx.x === 5 ? at : 0] = 1;
  syncthreads();
  out[i] = row[0]![threadIdx.x & 15]!;
});

const asserting = kernel('asserting', { x: input(f32), out: inout(f32) }, ({ x, out }, { i, assert }) => {
  assert(x[i]! >= 0);
  out[i] = Math.sqrt(x[i]!);
});

defineChapter((target) => {
  describe('4 kernels: threads of a block working together', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S430', 'after a barrier all threads of the block see what each wrote before it', async () => {
      const { device } = chapter;
      for (const [n, block] of [
        [1, 1],
        [255, 64],
        [1000, 256],
        [70, 128],
      ] as const) {
        const blocks = Math.ceil(n / block);
        const values = Int32Array.from({ length: n }, (_, at) => (at * 37) % 101);
        using x = device.from(values);
        using out = device.zeros(blocks, 'i32');
        device.stream.launch(sum, { grid: blocks, block }, { x, out });
        const expected = Int32Array.from({ length: blocks }, (_, at) =>
          values.slice(at * block, (at + 1) * block).reduce((a, b) => a + b, 0),
        );
        expect(await out.read()).toEqual(expected);
      }
    });

    rule('S430', 'an array passed both as input and as output is read where the source reads it', async () => {
      const { device } = chapter;
      using both = device.from(Int32Array.of(1, 2, 3, 4));
      using out = device.zeros([3, 40], 'i32');
      device.stream.launch(readWhereWritten, { threads: 40, block: 40 }, { x: both, y: both, out });
      const expected = [11, 102, 4].flatMap((value) => Array.from({ length: 40 }, () => value));
      expect([...(await out.read())]).toEqual(expected);
      expect([...(await both.read())]).toEqual([11, 102, 9, 4]);
    });

    rule('S430', 'tiles in shared memory, in two dimensions, of ragged sizes', async () => {
      const { device } = chapter;
      for (const [m, n, p] of [
        [8, 8, 8],
        [13, 21, 5],
        [1, 30, 17],
      ] as const) {
        const left = Float32Array.from({ length: m * n }, (_, at) => (at % 7) - 3);
        const right = Float32Array.from({ length: n * p }, (_, at) => (at % 5) - 2);
        using a = device.from(left, { shape: [m, n] });
        using b = device.from(right, { shape: [n, p] });
        using c = device.zeros([m, p]);
        device.stream.launch(product, { grid: [Math.ceil(p / TILE), Math.ceil(m / TILE)], block: [TILE, TILE] }, { a, b, c });
        const expected = Float32Array.from({ length: m * p }, (_, at) => {
          let total = 0;
          for (let k = 0; k < n; k++) total += left[Math.floor(at / p) * n + k]! * right[k * p + (at % p)]!;
          return total;
        });
        expect(await c.read()).toEqual(expected);
      }
    });

    rule('S431', 'a barrier does not wait for threads that returned', async () => {
      const { device } = chapter;
      for (const [n, block] of [
        [64, 64],
        [48, 16],
        [50, 25],
        [7, 7],
      ] as const) {
        const ends = Int32Array.from({ length: n }, (_, at) => (at * 5) % 11);
        using until = device.from(ends);
        using out = device.zeros(n, 'i32');
        device.stream.launch(relay, { threads: n, block }, { until, out, turns: 8 });
        expect(await out.read()).toEqual(relayed(ends, block, 8));
      }
    });

    rule('S437', 'a kernel with barriers of the block is launched in whole blocks', async () => {
      const { device } = chapter;
      const { stream } = device;
      using x = device.ones(1000);
      using y = device.zeros(4);
      const refused = (shape: LaunchShape, limit: number): void => {
        const error = thrownBy(() => stream.launch(blockSum, shape, { x, y }));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toMatchObject({ argument: 'threads', limit });
        expect((error as Error).message).toMatch(/The threads along x \(\d+\) do not fill the last block .* of kernel block_total/);
        expect(() => stream.capture((s) => s.launch(blockSum, shape, { x, y }))).toThrow(ArgumentError);
      };
      // Before the kernel is built, and afterwards.
      for (let n = 0; n < 2; n++) {
        refused({ threads: 1000, block: 256 }, 256);
        refused(1000, 256);
        refused([10], 256);
        await device.compile(blockSum, tileSum);
      }
      stream.launch(blockSum, { grid: 4, block: 256 }, { x, y });
      expect(await y.read()).toEqual(new Float32Array([256, 256, 256, 232]));
      stream.launch(blockSum, { threads: 768, block: 256 }, { x, y });
      expect((await y.read()).slice(0, 3)).toEqual(new Float32Array([256, 256, 256]));
      stream.launch(blockSum, 0, { x, y });
      for (const [threads, axis] of [
        [[3, 32, 8], 'z'],
        [[4, 31, 8], 'y'],
        [[4, 32, 9], 'x'],
      ] as const)
        expect(() => stream.launch(tileSum, { threads, block: [8, 4, 2] }, { y })).toThrow(`The threads along ${axis} (`);
      await stream.launch(tileSum, { threads: [4, 32, 8], block: [8, 4, 2] }, { y }).done;
    });

    rule('S432', 'dynamic shared memory has the size that the launch gives', async () => {
      const { device } = chapter;
      for (const bins of [16, 200]) {
        const values = Uint32Array.from({ length: 3000 }, (_, at) => (at * at) % bins);
        using x = device.from(values);
        using counts = device.zeros(bins, 'u32');
        device.stream.launch(histogram, { grid: 3, block: 96, sharedBytes: bins * 4 }, { x, bins: counts });
        const expected = new Uint32Array(bins);
        for (const value of values) expected[value]!++;
        expect(await counts.read()).toEqual(expected);
      }
    });

    rule('S433', 'a barrier that only some threads of a block reach is error K401 of kernel()', () => {
      const error = thrownBy(() =>
        kernel('parted', { x: inout(i32) }, ({ x }, { threadIdx, syncthreads }) => {
          if (threadIdx.x < 3) syncthreads();
          x[threadIdx.x] = 1;
        }),
      ) as CompileError;
      expect(error).toBeInstanceOf(CompileError);
      expect(error.diagnostics[0]!.code).toBe('K401');
      expect(error.message).toContain('threadIdx.x');
    });

    rule('S434', 'an index outside shared memory is a BoundsError with its name; the other threads continue', async () => {
      const { device } = chapter;
      using out = device.zeros(32, 'i32');
      device.stream.launch(beyond, { grid: 2, block: 16 }, { out, at: 15 });
      expect(await out.read()).toEqual(Int32Array.from({ length: 32 }, (_, at) => at));
      const operation = device.stream.launch(beyond, { grid: 2, block: 16 }, { out, at: -3 });
      const error = (await operation.done.then(
        () => undefined,
        (reason: unknown) => reason,
      )) as BoundsError;
      expect(error).toBeInstanceOf(BoundsError);
      expect([error.array, error.dimension, error.index, error.limit, error.thread]).toEqual(['row', 1, -3, 16, [5, 0, 0]]);
      expect(error.message).toContain('beyond_shared');
      using fresh = device.zeros(32, 'i32');
      device.stream.launch(beyond, { grid: 2, block: 16 }, { out: fresh, at: 0 });
      expect((await fresh.read())[31]).toBe(31);
    });

    rule('S435', 'a failed assertion rejects the launch with its condition, block and thread, and the device continues', async () => {
      const { device } = chapter;
      using good = device.from(Float32Array.from({ length: 100 }, (_, at) => at));
      using bad = device.from(Float32Array.from({ length: 100 }, (_, at) => (at === 70 ? -1 : at)));
      using out = device.zeros(100);
      const error = (await device.stream.launch(asserting, { threads: 100, block: 32 }, { x: bad, out }).done.then(
        () => undefined,
        (reason: unknown) => reason,
      )) as LaunchError;
      expect(error).toBeInstanceOf(LaunchError);
      expect(error).not.toBeInstanceOf(BoundsError);
      expect(error.code).toBe('ERR_MILLRACE_ASSERT');
      expect(error.message).toContain('x[i]');
      expect(error.message).toContain('asserting');
      expect(error.message).toContain('thread (6, 0, 0) of block (2, 0, 0)');
      using again = device.zeros(100);
      await device.stream.launch(asserting, { threads: 100, block: 32 }, { x: good, out: again }).done;
      expect((await again.read())[64]).toBe(8);
    });
  });
});

/** The result of `relay`, computed block by block and turn by turn. */
function relayed(ends: Int32Array, block: number, turns: number): Int32Array {
  const out = new Int32Array(ends.length);
  for (let first = 0; first < ends.length; first += block) {
    const slots = new Int32Array(block);
    const here = Array.from({ length: Math.min(block, ends.length - first) }, (_, at) => at);
    const mine = here.map((at) => first + at);
    let left = here;
    for (const at of here) slots[at] = mine[at]!;
    for (let turn = 0; turn < turns; turn++) {
      left = left.filter((at) => ends[first + at] !== turn);
      const next = left.map((at) => slots[(at + 1) % here.length]!);
      if (turn === 3) continue;
      left.forEach((at, n) => {
        mine[at] = next[n]! + 1;
        slots[at] = mine[at]!;
      });
    }
    for (const at of here) out[first + at] = mine[at]!;
  }
  return out;
}

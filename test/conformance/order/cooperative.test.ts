// Chapter 4, launches whose blocks all run at once and wait for each other, against plain loops in JavaScript. Grids have
// more blocks than a machine that runs the tests has cores.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  BoundsError,
  CompileError,
  cudaKernel,
  cudaModule,
  i32,
  inout,
  input,
  kernel,
  LaunchError,
  output,
  u32,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

const BLOCKS = 48;
const WIDTH = 32;

// Each block adds its elements; after the barrier the first block adds the sums.
const total = kernel('grid_total', { x: input(i32), partial: inout(i32), sum: inout(i32) }, ({ x, partial, sum }, t) => {
  const shared = t.shared(i32, 32);
  const threads = t.gridDim.x * t.blockDim.x;
  let mine = 0;
  for (let at = t.blockIdx.x * t.blockDim.x + t.threadIdx.x; at < x.length; at += threads) mine += x[at]!;
  shared[t.threadIdx.x] = mine;
  t.syncthreads();
  if (t.threadIdx.x === 0) {
    let all = 0;
    for (let at = 0; at < t.blockDim.x; at++) all += shared[at]!;
    partial[t.blockIdx.x] = all;
  }
  t.gridSync();
  if (t.blockIdx.x === 0 && t.threadIdx.x === 0) {
    let all = 0;
    for (let at = 0; at < t.gridDim.x; at++) all += partial[at]!;
    sum[0] = all;
  }
});

// A prefix sum with doubling distances. Values that a thread has read, and shared memory, survive the barrier.
const scan = kernel('grid_scan', { x: inout(i32) }, ({ x }, { i, gridSync, shared, threadIdx }) => {
  const before = shared(i32, 64);
  for (let reach = 1; reach < x.length; reach *= 2) {
    const mine = i >= reach ? x[i - reach]! : 0;
    before[threadIdx.x] = x[i]!;
    gridSync();
    x[i] = before[threadIdx.x]! + mine;
    gridSync();
  }
});

const life = kernel('grid_life', { even: inout(u32, 2), odd: inout(u32, 2), generations: i32 }, ({ even, odd, generations }, t) => {
  const { i, j } = t;
  const [height, width] = even.shape;
  for (let generation = 0; generation < generations; generation++) {
    const isEven = generation % 2 === 0;
    let alive = t.u32(0);
    for (let dy = -1; dy <= 1; dy++) {
      for (let dx = -1; dx <= 1; dx++) {
        if (dy === 0 && dx === 0) continue;
        const y = (i + dy + height) % height;
        const x = (j + dx + width) % width;
        alive += isEven ? even[y]![x]! : odd[y]![x]!;
      }
    }
    const self = isEven ? even[i]![j]! : odd[i]![j]!;
    const next = alive === 3 || (alive === 2 && self === 1) ? 1 : 0;
    if (isEven) odd[i]![j] = next;
    else even[i]![j] = next;
    t.gridSync();
  }
});

// Threads return one after the other, and blocks end with their last thread. Each remaining thread counts itself once per turn.
const leaving = kernel('grid_leaving', { until: input(i32), counts: inout(i32), seen: output(i32) }, ({ until, counts, seen }, t) => {
  const { i } = t;
  let last = 0;
  for (let turn = 0; turn < counts.length; turn++) {
    if (until[i]! <= turn) {
      seen[i] = last;
      return;
    }
    t.atomicAdd(counts, turn, 1);
    t.gridSync();
    last = counts[turn]!;
  }
  seen[i] = last;
});

// Thread i makes an out-of-bounds access at turn i / 8, unless that is its last turn.
const straying = kernel('grid_straying', { x: inout(i32), at: input(i32), turns: i32 }, ({ x, at, turns }, t) => {
  const { i } = t;
  for (let turn = 0; turn < turns; turn++) {
    const here = turn === at[i]! ? x.length + i : i;
    t.gridSync();
    x[here] = x[here]! + 1;
  }
});

const module = cudaModule(`#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ void add_down(cg::grid_group grid, int* x, int n) {
  for (int reach = 1; reach < n; reach *= 2) {
    for (unsigned long long i = 2ull * reach * grid.thread_rank(); i + reach < n; i += 2ull * reach * grid.size()) x[i] += x[i + reach];
    grid.sync();
  }
}
extern "C" __global__ void grid_tree(int* x, int n, unsigned* told) {
  __shared__ unsigned own[32];
  extern __shared__ unsigned dynamic[];
  const auto grid = cg::this_grid();
  own[threadIdx.x] = dynamic[threadIdx.x] = grid.thread_rank();
  const unsigned rank = grid.thread_rank();
  add_down(grid, x, n);
  // The shared memory of each block is unchanged.
  if (own[threadIdx.x] != rank || dynamic[threadIdx.x] != rank) atomicAdd(told, 1000000u);
  if (grid.is_valid() && grid.num_blocks() == gridDim.x && grid.block_rank() == blockIdx.x) atomicAdd(told, 1u);
}
// Without a barrier: each block waits for memory that the next block writes.
extern "C" __global__ void grid_handed(int* flags) {
  if (blockIdx.x + 1 < gridDim.x) while (atomicAdd(flags + blockIdx.x + 1, 0) == 0);
  __threadfence();
  atomicExch(flags + blockIdx.x, 1 + (blockIdx.x + 1 < gridDim.x ? atomicAdd(flags + blockIdx.x + 1, 0) : 0));
}`);
const tree = module.kernel('grid_tree', { x: inout(i32), n: i32, told: inout(u32) });
const handed = module.kernel('grid_handed', { flags: inout(i32) });

// CUDA C++ kernels with threads that have returned: only the CPU device does not wait for them.
const departed = cudaKernel(
  'grid_departed',
  { counts: inout(i32), turns: i32 },
  `#include <cooperative_groups.h>
extern "C" __global__ void grid_departed(int* counts, int turns) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  for (int turn = 0; turn < turns; turn++) {
    if (blockIdx.x % 3 + threadIdx.x % 4 <= turn) return;
    atomicAdd(counts + turn, 1);
    grid.sync();
    if (grid.thread_rank() == grid.size() - 1) counts[turns + turn] = counts[turn];
    auto token = grid.barrier_arrive();
    grid.barrier_wait(static_cast<decltype(token)&&>(token));
  }
}`,
);

// Only the template shows that the kernel waits for the grid.
const hidden = cudaKernel(
  'grid_hidden',
  { x: inout(i32) },
  `#include <cooperative_groups.h>
template <class Group> __device__ void meet(Group group) { group.sync(); }
extern "C" __global__ void grid_hidden(int* x) {
  meet(cooperative_groups::this_grid());
  x[blockIdx.x] += 1;
}`,
);

/** A new kernel each time, so that it is not built yet. Its blocks need a large part of a multiprocessor. */
const crowded = () =>
  kernel('grid_crowded', { out: inout(i32) }, ({ out }, t) => {
    const shared = t.shared(i32, 8192);
    shared[t.threadIdx.x] = t.threadIdx.x;
    t.gridSync();
    if (t.threadIdx.x === 0) out[t.blockIdx.x] = shared[0]! + 1;
  });

function lifeOf(cells: Uint32Array, height: number, width: number, generations: number): Uint32Array {
  let now = cells;
  for (let generation = 0; generation < generations; generation++) {
    const before = now;
    now = before.map((self, at) => {
      const [i, j] = [Math.floor(at / width), at % width];
      let alive = 0;
      for (const dy of [-1, 0, 1]) {
        for (const dx of [-1, 0, 1]) {
          if (dy !== 0 || dx !== 0) alive += before[((i + dy + height) % height) * width + ((j + dx + width) % width)]!;
        }
      }
      return alive === 3 || (alive === 2 && self === 1) ? 1 : 0;
    });
  }
  return now;
}

defineChapter((target) => {
  describe('4 kernels: cooperative launches', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const line = { grid: BLOCKS, block: WIDTH, cooperative: true } as const;

    rule('S450', 'a block waits for memory that another block writes', async () => {
      // On a CPU, spinning blocks occupy the cores that the awaited block needs.
      const blocks = 10;
      using flags = chapter.device.zeros(blocks, 'i32');
      await chapter.device.stream.launch(handed, { grid: blocks, block: 1, cooperative: true }, { flags }).done;
      expect(await flags.read()).toEqual(Int32Array.from({ length: blocks }, (_, block) => blocks - block));
    });

    rule('S450', 'launches of several streams run in any order, each as a whole', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 5 }, () => device.createStream());
      const arrays = streams.map((stream) => stream.from(Int32Array.from({ length: 700 }, (_, i) => i % 9)));
      for (let turn = 0; turn < 3; turn++) {
        for (const [n, stream] of streams.entries()) stream.launch(scan, { threads: 700, block: 64, cooperative: true }, { x: arrays[n]! });
      }
      const expected = Int32Array.from({ length: 700 }, (_, i) => i % 9);
      for (let turn = 0; turn < 3; turn++) for (let i = 1; i < 700; i++) expected[i]! += expected[i - 1]!;
      for (const array of arrays) {
        expect(await array.read()).toEqual(expected);
        array[Symbol.dispose]();
      }
      for (const stream of streams) await stream.close();
    });

    rule('S451', 'a sum over the whole grid in one launch', async () => {
      const { device } = chapter;
      for (const n of [1, 1000, 12_345]) {
        using x = device.from(Int32Array.from({ length: n }, (_, i) => (i % 17) - 5));
        using partial = device.zeros(BLOCKS, 'i32');
        using sum = device.zeros(1, 'i32');
        device.stream.launch(total, line, { x, partial, sum });
        expect(await sum.item(0)).toBe(Array.from({ length: n }, (_, i) => (i % 17) - 5).reduce((a, b) => a + b, 0));
      }
    });

    rule('S451', 'prefix sums over the whole grid in one launch, with a tail', async () => {
      const { device } = chapter;
      for (const n of [1, 64, 1000, 1537]) {
        using x = device.from(Int32Array.from({ length: n }, (_, i) => (i * 7) % 11));
        device.stream.launch(scan, { threads: n, block: 64, cooperative: true }, { x });
        let sum = 0;
        expect(await x.read()).toEqual(Int32Array.from({ length: n }, (_, i) => (sum += (i * 7) % 11)));
      }
    });

    rule('S451', 'generations of cells in one launch', async () => {
      const { device } = chapter;
      const [height, width] = [37, 53];
      const cells = Uint32Array.from({ length: height * width }, (_, i) => ((i * 7919 + (i >> 3)) % 3) & 1);
      for (const generations of [0, 1, 6]) {
        using even = device.from(cells, { shape: [height, width] });
        using odd = device.zeros([height, width], 'u32');
        device.stream.launch(life, { threads: [height, width], block: [8, 8], cooperative: true }, { even, odd, generations });
        expect(await (generations % 2 === 0 ? even : odd).read()).toEqual(lifeOf(cells, height, width, generations));
      }
    });

    rule('S451', 'a CUDA C++ kernel synchronises its grid, and blocks keep their shared memory', async () => {
      const { device } = chapter;
      for (const n of [1, 777, 5000]) {
        using x = device.from(Int32Array.from({ length: n }, (_, i) => (i % 23) - 4));
        using told = device.zeros(1, 'u32');
        device.stream.launch(tree, { ...line, sharedBytes: 4 * WIDTH }, { x, n, told });
        expect(await told.item(0)).toBe(BLOCKS * WIDTH);
        expect((await x.read())[0]).toBe(Array.from({ length: n }, (_, i) => (i % 23) - 4).reduce((a, b) => a + b, 0));
      }
    });

    rule('S452', 'a grid barrier does not wait for threads and blocks that have returned', async () => {
      const { device } = chapter;
      const turns = 9;
      // Whole blocks return, parts of others, and all threads but one of one block at once.
      const until = Int32Array.from({ length: 20 * WIDTH }, (_, i) => {
        const block = Math.floor(i / WIDTH);
        return block % 4 === 0 ? block % (turns + 1) : block === 7 && i % WIDTH > 0 ? 0 : (i * 5) % (turns + 2);
      });
      using counts = device.zeros(turns, 'i32');
      using seen = device.zeros(until.length, 'i32');
      using ends = device.from(until);
      // Again in the same stream: the first launch must leave no state.
      for (let launch = 0; launch < 3; launch++) {
        device.stream.fill(counts, 0);
        device.stream.launch(leaving, { threads: until.length, block: WIDTH, cooperative: true }, { until: ends, counts, seen });
        const expected = Int32Array.from({ length: turns }, (_, turn) => until.filter((end) => end > turn).length);
        expect(await counts.read()).toEqual(expected);
        expect(await seen.read()).toEqual(until.map((end) => (end === 0 ? 0 : expected[Math.min(end, turns) - 1]!)));
      }
    });

    const ofCpu = { unless: !target.name.startsWith('cpu') && 'On CUDA this waits without end, or loses the device.' };

    rule(
      'S452',
      'nor does that of a CUDA C++ kernel on the CPU device',
      async () => {
        using counts = chapter.device.zeros(14, 'i32');
        chapter.device.stream.launch(departed, line, { counts, turns: 7 });
        const threads = Array.from({ length: BLOCKS * WIDTH }, (_, i) => (Math.floor(i / WIDTH) % 3) + (i % 4));
        const expected = Array.from({ length: 7 }, (_, turn) => threads.filter((end) => end > turn).length);
        // The last thread of the grid stays for this number of turns.
        const last = threads.at(-1)!;
        expect([...(await counts.read())]).toEqual([...expected, ...expected.map((count, turn) => (turn < last ? count : 0))]);
      },
      ofCpu,
    );

    rule('S453', 'a grid barrier that not all threads reach is refused', () => {
      const params = { x: inout(i32) };
      const code = (make: () => unknown): string => (thrownBy(make) as CompileError).diagnostics[0]!.code;
      const ofBlocks = () =>
        kernel('of_blocks', params, ({ x }, { blockIdx, gridSync }) => {
          if (blockIdx.x > 1) gridSync();
          x[0] = 1;
        });
      const ofThreads = () =>
        kernel('of_threads', params, ({ x }, { i, gridSync }) => {
          for (let turn = 0; turn < i; turn++) gridSync();
          x[0] = 1;
        });
      expect(thrownBy(ofBlocks)).toBeInstanceOf(CompileError);
      expect(code(ofBlocks)).toBe('K401');
      expect(code(ofThreads)).toBe('K401');
    });

    rule('S454', 'a kernel whose blocks wait for each other needs a cooperative launch', async () => {
      const { device } = chapter;
      using x = device.from(Int32Array.from({ length: 64 }, (_, i) => i));
      using told = device.zeros(1, 'u32');
      for (const shape of [64, { threads: 64 }, { grid: 2, block: 32 }, { grid: 2, block: 32, cooperative: false }]) {
        const error = thrownBy(() => device.stream.launch(scan, shape, { x })) as ArgumentError;
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.argument).toBe('cooperative');
        expect(error.message).toMatch(/blocks of kernel grid_scan wait for each other.*\{ cooperative: true \}/);
      }
      const error = thrownBy(() => device.stream.launch(tree, { grid: 2, block: 32, sharedBytes: 128 }, { x, n: 64, told }));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(await x.read()).toEqual(Int32Array.from({ length: 64 }, (_, i) => i));
      const notOne = { grid: 1, block: 1, cooperative: 1 as unknown as boolean };
      expect(thrownBy(() => device.stream.launch(scan, notOne, { x }))).toBeInstanceOf(ArgumentError);
    });

    rule(
      'S454',
      'a grid wait that the source hides fails the launch on the CPU device',
      async () => {
        const stream = chapter.device.createStream();
        using x = stream.zeros(4, 'i32');
        const error = await rejectionOf(stream.launch(hidden, { grid: 4, block: 8 }, { x }).done);
        expect(error).toBeInstanceOf(LaunchError);
        expect(error.message).toMatch(/this_grid\(\)\.is_valid\(\), which a launch with \{ cooperative: true \} makes true/);
        stream.fill(x, 5);
        await stream.launch(hidden, { grid: 4, block: 1, cooperative: true }, { x }).done;
        expect(await x.read()).toEqual(Int32Array.of(6, 6, 6, 6));
        await stream.close();
      },
      ofCpu,
    );

    rule('S455', 'too many blocks fail the launch until the kernel is built, and are refused at the call afterwards', async () => {
      const { device } = chapter;
      const kernelOfNow = crowded();
      const stream = device.createStream();
      using out = stream.zeros(100_000, 'i32');
      const shape = { grid: 100_000, block: 1024, cooperative: true } as const;
      const failed = await rejectionOf(stream.launch(kernelOfNow, shape, { out }).done);
      expect(failed).toBeInstanceOf(LaunchError);
      expect(failed.message).toMatch(/blocks of a cooperative launch \(100000\) exceed the limit of kernel grid_crowded \((\d+)\)/);
      const limit = Number(/kernel grid_crowded \((\d+)\)/.exec(failed.message)![1]);
      expect(limit).toBeGreaterThanOrEqual(device.info.multiprocessors);
      stream.fill(out, 0);
      await device.compile(kernelOfNow);
      const error = thrownBy(() => stream.launch(kernelOfNow, { ...shape, grid: limit + 1 }, { out })) as ArgumentError;
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error).toMatchObject({ argument: 'grid', limit });
      // The limit itself is accepted.
      stream.launch(kernelOfNow, { ...shape, grid: limit }, { out });
      const values = await out.read();
      expect(values.subarray(0, limit).every((value) => value === 1)).toBe(true);
      expect(values[limit]).toBe(0);
      await stream.close();
    });

    rule('S456', 'an index out of bounds ends its thread, and the others still meet at their barriers', async () => {
      const { device } = chapter;
      const n = 10 * WIDTH;
      const stream = device.createStream();
      using x = stream.zeros(n, 'i32');
      // A whole block leaves, parts of others, and some threads never.
      using at = stream.from(Int32Array.from({ length: n }, (_, i) => (i < WIDTH ? 1 : i % 5 === 0 ? 3 : 99)));
      const launch = stream.launch(straying, { threads: n, block: WIDTH, cooperative: true }, { x, at, turns: 6 });
      const error = await rejectionOf(launch.done);
      expect(error).toBeInstanceOf(BoundsError);
      expect(error.message).toContain('grid_straying');
      // Its outputs are poisoned, and the device continues.
      stream.fill(x, 0);
      using never = stream.from(new Int32Array(n).fill(99));
      stream.launch(straying, { threads: n, block: WIDTH, cooperative: true }, { x, at: never, turns: 6 });
      expect(await x.read()).toEqual(new Int32Array(n).fill(6));
      await stream.close();
    });
  });
});

// Chapter 4, second half: kernels written as TypeScript functions, against the same computation in JavaScript.
import { describe, expect } from 'vitest';
import { ArgumentError, CompileError, cudaKernel, f32, i32, inout, input, kernel, output, u32, u8 } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const saxpy = kernel('saxpy_ts', { a: f32, x: input(f32), y: inout(f32) }, ({ a, x, y }, { i }) => {
  y[i] = a * x[i]! + y[i]!;
});

const transpose = kernel('transpose', { src: input(f32, 2), dst: output(f32, 2) }, ({ src, dst }, { i, j }) => {
  dst[j]![i] = src[i]![j]!;
});

const blur = kernel('blur', { src: input(u8, 2), dst: output(u8, 2), radius: i32 }, ({ src, dst, radius }, { i, j, clamp, idiv }) => {
  let sum = 0;
  let count = 0;
  for (let di = -radius; di <= radius; di++) {
    for (let dj = -radius; dj <= radius; dj++) {
      const row = clamp(i + di, 0, src.shape[0] - 1);
      const column = clamp(j + dj, 0, src.shape[1] - 1);
      sum += src[row]![column]!;
      count++;
    }
  }
  dst[i]![j] = idiv(sum, count);
});

const collatz = kernel('collatz', { start: input(u32), steps: output(i32) }, ({ start, steps }, { i }) => {
  let n = start[i]!;
  let count = 0;
  while (n !== 1 && count < 1000) {
    if ((n & 1) === 0) n = n >>> 1;
    else n = 3 * n + 1;
    count++;
  }
  steps[i] = count;
});

const maths = kernel('maths', { x: input(f32), out: output(f32, 2) }, ({ x, out }, { i }) => {
  const v = x[i]!;
  out[i]![0] = Math.sqrt(v);
  out[i]![1] = Math.sin(v);
  out[i]![2] = Math.exp(-v);
  out[i]![3] = Math.floor(v);
  out[i]![4] = Math.min(v, 2);
  out[i]![5] = Math.hypot(v, 1);
  out[i]![6] = v > 1.5 ? Math.log(v) : Math.abs(v - 3);
  out[i]![7] = Math.pow(v, 1.5);
});

const indices = kernel('indices', { out: output(i32) }, ({ out }, { i, threadIdx, blockIdx, blockDim }) => {
  out[i] = blockIdx.x * blockDim.x + threadIdx.x - i;
});

defineChapter((target) => {
  describe('4 kernels: TypeScript functions', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S410', 'a function runs once for each index, without a tail guard in its source', async () => {
      const { device } = chapter;
      for (const n of [1, 255, 256, 1000]) {
        using x = device.from(Float32Array.from({ length: n }, (_, i) => i));
        using y = device.ones(n);
        device.stream.launch(saxpy, n, { a: 0.5, x, y });
        expect(await y.read()).toEqual(Float32Array.from({ length: n }, (_, i) => 0.5 * i + 1));
      }
    });

    rule('S410', 'a kernel whose body does nothing runs, in TypeScript and in CUDA C++', async () => {
      const { device } = chapter;
      const params = { y: inout(f32) };
      const { done } = device.stream.launch(
        kernel('no_parameter', {}, () => {}),
        64,
        {},
      );
      using y = device.ones(64);
      for (const idle of [
        kernel('empty', params, () => {}),
        kernel('leaves', params, (_, { i }) => {
          if (i > 3) return;
        }),
        kernel('loops', params, () => {
          for (let k = 0; k < 3; k++) {}
        }),
        kernel('waits', params, (_, { syncthreads }) => {
          syncthreads();
        }),
        cudaKernel('idle', params, '__global__ void idle(float* y) { 1; }'),
        cudaKernel('waits', params, '__global__ void waits(float* y) { __syncthreads(); return; }'),
      ])
        device.stream.launch(idle, { grid: 2, block: 32 }, { y });
      await done;
      expect(await y.read()).toEqual(new Float32Array(64).fill(1));
    });

    rule('S410', 'a block with threads along an axis without an index is refused, and the stream continues', async () => {
      const { device } = chapter;
      using x = device.ones(100);
      using y = device.zeros(100);
      for (const block of [
        [8, 8],
        [8, 1, 2],
      ] as const) {
        const error = thrownBy(() => device.stream.launch(saxpy, { threads: 100, block }, { a: 1, x, y }));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toBe(`Block size ${block[1] === 8 ? 'y (8)' : 'z (2)'} exceeds the limit for threads of 1 dimension (1).`);
      }
      const flat = thrownBy(() => device.stream.launch(transpose, { threads: [4, 4], block: [4, 4, 4] }, { src: x, dst: y } as never));
      expect(flat.message).toContain('Block size z (4) exceeds the limit for threads of 2 dimensions (1)');
      device.stream.launch(saxpy, { threads: 100, block: [8, 1, 1] }, { a: 1, x, y });
      expect(await y.read()).toEqual(new Float32Array(100).fill(1));
    });

    rule('S411', 'i and j follow the order of the array: the last one varies fastest', async () => {
      const { device } = chapter;
      using src = device.from(
        Float32Array.from({ length: 6 * 11 }, (_, n) => n),
        { shape: [6, 11] },
      );
      using dst = device.zeros([11, 6]);
      device.stream.launch(transpose, { threads: src.shape }, { src, dst });
      expect(await dst.read()).toEqual(Float32Array.from({ length: 66 }, (_, n) => (n % 6) * 11 + Math.floor(n / 6)));
    });

    rule('S411', 'threadIdx, blockIdx and blockDim agree with the global index', async () => {
      using out = chapter.device.full(777, 1, 'i32');
      chapter.device.stream.launch(indices, { threads: 777, block: 64 }, { out });
      expect((await out.read()).every((value) => value === 0)).toBe(true);
    });

    rule('S412', 'nested loops and integer arithmetic give what JavaScript gives', async () => {
      const { device } = chapter;
      const [height, width] = [17, 23];
      const image = Uint8Array.from({ length: height * width }, (_, n) => (n * 37) % 251);
      using src = device.from(image, { shape: [height, width] });
      using dst = device.zeros([height, width], 'u8');
      device.stream.launch(blur, { threads: src.shape }, { src, dst, radius: 2 });
      const expected = image.map((_, n) => boxMean(image, height, width, Math.floor(n / width), n % width, 2));
      expect(await dst.read()).toEqual(expected);
    });

    rule('S412', 'while loops and branches diverge per thread', async () => {
      const { device } = chapter;
      const starts = Uint32Array.from({ length: 500 }, (_, n) => n + 1);
      using start = device.from(starts);
      using steps = device.zeros(500, 'i32');
      device.stream.launch(collatz, 500, { start, steps });
      expect(await steps.read()).toEqual(Int32Array.from(starts, collatzSteps));
    });

    rule('S412', 'Math gives what JavaScript gives, in single precision', async () => {
      const { device } = chapter;
      const values = Float32Array.from({ length: 64 }, (_, n) => 0.05 + n / 16);
      using x = device.from(values);
      using out = device.zeros([64, 8]);
      device.stream.launch(maths, 64, { x, out });
      const seen = await out.read();
      for (const [n, v] of values.entries()) {
        const branch = v > 1.5 ? Math.log(v) : Math.abs(v - 3);
        const row = [Math.sqrt(v), Math.sin(v), Math.exp(-v), Math.floor(v), Math.min(v, 2), Math.hypot(v, 1), branch, v ** 1.5];
        for (const [column, expected] of row.entries()) expect(seen[n * 8 + column], `maths(${v})[${column}]`).toBeCloseTo(expected, 4);
      }
    });

    rule('S413', 'a function outside the language is a CompileError at kernel(), with its line', () => {
      const error = thrownBy(() =>
        kernel('ambiguous', { x: inout(i32) }, ({ x }, { i }) => {
          x[i] = x[i]! / 2;
        }),
      ) as CompileError;
      expect(error).toBeInstanceOf(CompileError);
      expect(error.message).toContain('ambiguous');
      expect(error.diagnostics.length).toBeGreaterThan(0);
      expect(error.diagnostics[0]!.line).toBeGreaterThan(0);
      expect(thrownBy(() => kernel('outside', { x: inout(f32) }, ({ x }, { i }) => void (x[i] = performance.now())))).toBeInstanceOf(
        CompileError,
      );
    });

    rule('S414', 'the rank of an array argument must be that of the parameter', () => {
      const { device } = chapter;
      using flat = device.zeros(4);
      using square = device.zeros([2, 2]);
      const error = thrownBy(() => device.stream.launch(transpose, [2, 2], { src: square, dst: flat }));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain('dst');
    });
  });
});

function boxMean(image: Uint8Array, height: number, width: number, row: number, column: number, radius: number): number {
  let sum = 0;
  for (let y = row - radius; y <= row + radius; y++) {
    for (let x = column - radius; x <= column + radius; x++) {
      sum += image[Math.min(Math.max(y, 0), height - 1) * width + Math.min(Math.max(x, 0), width - 1)]!;
    }
  }
  return Math.trunc(sum / (2 * radius + 1) ** 2);
}

function collatzSteps(start: number): number {
  let count = 0;
  for (let n = start; n !== 1; count++) n = n % 2 === 0 ? n / 2 : 3 * n + 1;
  return count;
}

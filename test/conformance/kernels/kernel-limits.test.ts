// Chapter 4: the limits of a kernel's launches, which are known after its build.
import { describe, expect } from 'vitest';
import { ArgumentError, cudaKernel, i32, LaunchError, output } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

/** A new kernel each time, so that it is not built yet. The bound is a macro that is redefined afterwards. */
const narrow = () =>
  cudaKernel(
    'narrow',
    { out: output(i32), n: i32 },
    `#define WIDTH (8 * 8)
extern "C" __global__ void __launch_bounds__(WIDTH, 1) narrow(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i * 3;
}
#undef WIDTH
#define WIDTH "none"
`,
  );

/** Each thread writes its part of the block's memory, then reads the part of another. */
const mirrored = cudaKernel(
  'mirrored',
  { out: output(i32), n: i32 },
  `extern "C" __global__ void mirrored(int* out, int n) {
  extern __shared__ int numbers[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) numbers[i] = i * 7;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = numbers[n - 1 - i];
}`,
);

/** Each thread writes the size of its block. */
const sizes = (body: string) =>
  cudaKernel(
    'sizes',
    { out: output(i32), x: i32, y: i32, z: i32 },
    `extern "C" __global__ void sizes(int* out, int x, int y, int z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z * blockDim.z + threadIdx.z;
  int size = blockDim.x * blockDim.y * blockDim.z;
  ${body}
  if (i < x && j < y && k < z) out[(k * y + j) * x + i] = size;
}`,
  );
const ALONE = '';
const TOGETHER = '__shared__ int shared; shared = size; __syncthreads(); size = shared;';

defineChapter((target) => {
  describe('4 kernels: limits', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S416', 'a block beyond the limit of its kernel fails the launch until the kernel is built', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const kernel = narrow();
      using out = stream.zeros(256, 'i32');
      const error = await rejectionOf(stream.launch(kernel, { grid: 2, block: 128 }, { out, n: 256 }).done);
      expect(error).toBeInstanceOf(LaunchError);
      expect(error.message).toMatch(/threads of a block \(128\) exceed the limit of kernel narrow \(64\)/);
      await stream.launch(kernel, { grid: 4, block: 64 }, { out, n: 256 }).done;
      expect(await out.read()).toEqual(Int32Array.from({ length: 256 }, (_, i) => i * 3));
      await stream.close();
    });

    rule('S416', 'a block beyond the limit of its kernel is refused at the call when the kernel is built', async () => {
      const { device } = chapter;
      const kernel = narrow();
      await device.compile(kernel);
      using out = device.zeros(1000, 'i32');
      const error = thrownBy(() => device.stream.launch(kernel, { grid: 1, block: [13, 5] }, { out, n: 1000 })) as ArgumentError;
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error).toMatchObject({ argument: 'block', limit: 64 });
      expect(error.message).toMatch(/\(65\) exceeds the limit of kernel narrow \(64\)/);
      // The block that the library chooses does not exceed it.
      device.stream.launch(kernel, 1000, { out, n: 1000 });
      expect(await out.read()).toEqual(Int32Array.from({ length: 1000 }, (_, i) => i * 3));
    });

    rule('S417', 'a block has more shared memory than the driver gives unasked', async () => {
      const { device } = chapter;
      const n = 25_000;
      using out = device.zeros(n, 'i32');
      device.stream.launch(mirrored, { grid: 1, block: 256, sharedBytes: 4 * n }, { out, n });
      expect(await out.read()).toEqual(Int32Array.from({ length: n }, (_, i) => (n - 1 - i) * 7));
    });

    rule('S417', 'more shared memory than a block of the device has is refused with the limit', () => {
      const { device } = chapter;
      using out = device.zeros(1, 'i32');
      const sharedBytes = 2 ** 20;
      const error = thrownBy(() => device.stream.launch(mirrored, { grid: 1, block: 1, sharedBytes }, { out, n: 1 })) as ArgumentError;
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.argument).toBe('sharedBytes');
      expect(error.limit).toBeGreaterThanOrEqual(64 * 1024);
      expect(error.message).toContain(`(${sharedBytes}) exceeds the limit (${String(error.limit)})`);
    });

    rule('S418', 'a block that the library chooses covers all threads, before and after the kernel is built', async () => {
      const { device } = chapter;
      for (const body of [ALONE, TOGETHER]) {
        const kernel = sizes(body);
        for (const [x, y, z] of [
          [3000, 1, 1],
          [61, 47, 1],
          [13, 11, 17],
        ] as const) {
          using out = device.zeros(x * y * z, 'i32');
          const threads = z > 1 ? [z, y, x] : y > 1 ? [y, x] : x;
          device.stream.launch(kernel, threads, { out, x, y, z });
          const values = await out.read();
          expect(new Set(values).size).toBe(1);
          const size = values[0]!;
          expect(size % 32).toBe(0);
          expect(size).toBeGreaterThanOrEqual(256);
          if (body === TOGETHER) expect(size).toBe(256);
        }
      }
    });
  });
});

// Chapter 4, assertions of CUDA C++ kernels. A failed one destroys the context of a CUDA device, so only the CPU device runs it.
import { describe, expect } from 'vitest';
import { cudaKernel, f32, i32, inout, LaunchError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

const PARAMS = { x: inout(i32), bad: i32 };

const loops = cudaKernel(
  'loops',
  PARAMS,
  `__device__ int twice(int i, int bad) {
  assert(i != bad && "is (not) bad");
  return 2 * i;
}
extern "C" __global__ void loops(int* x, int bad) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = twice(i, bad);
}`,
);
const waits = cudaKernel(
  'waits',
  PARAMS,
  `__device__ int passed_on(int i, int bad) {
  const int v = __shfl_xor_sync(0xffffffffu, i, 1);
  assert(i != bad);
  __syncthreads();
  return v;
}
extern "C" __global__ void waits(int* x, int bad) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int v = passed_on(i, bad);
  __syncthreads();
  x[i] = 2 * (v ^ 1);
}`,
);
const cut = cudaKernel(
  'cut',
  PARAMS,
  `#define CHECK(c) assert(c)
extern "C" __global__ void cut(int* x, int bad) {
  __shared__ int s[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i;
  CHECK(i != bad);
  __syncthreads();
  x[i] = s[threadIdx.x] * 2;
}`,
);

const quiet = `extern "C" __global__ void quiet(float* y, float limit) {
  assert(y[threadIdx.x] < limit);
  y[threadIdx.x] += 1;
}`;

defineChapter((target) => {
  describe('4 kernels: assertions of CUDA C++', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const unless = target.spec === 'cpu' ? false : 'a failed assertion costs a CUDA device its context';

    rule(
      'S442',
      'a failed assertion rejects the launch with line, block and thread, and the device continues',
      async () => {
        const { device } = chapter;
        for (const [made, assertion] of [
          [loops, 'i != bad && "is (not) bad" (line 2 of the source)'],
          [waits, 'i != bad (line 3 of the source)'],
          [cut, 'on line 6 of the source'],
        ] as const) {
          using poisoned = device.full(96, -1, 'i32');
          const error = await rejectionOf(device.stream.launch(made, { grid: 3, block: 32 }, { x: poisoned, bad: 41 }).done);
          expect(error).toBeInstanceOf(LaunchError);
          expect((error as LaunchError).code).toBe('ERR_MILLRACE_ASSERT');
          expect(error.message).toContain(`The assertion ${assertion} of kernel ${made.name} `);
          expect(error.message).toContain('failed in thread (9, 0, 0) of block (1, 0, 0).');
          using x = device.full(96, -1, 'i32');
          await device.stream.launch(made, { grid: 3, block: 32 }, { x, bad: -5 }).done;
          expect(await x.read()).toEqual(Int32Array.from({ length: 96 }, (_, i) => 2 * i));
        }
      },
      { unless },
    );

    rule('S442', 'an assertion that holds changes nothing, and NDEBUG removes assertions', async () => {
      const { device } = chapter;
      for (const [options, head, limit] of [
        [[], '', 1],
        [['-DNDEBUG'], '', -1],
        // NVRTC defines assert itself and has no headers.
        ...(target.spec === 'cpu' ? [[[], '#define NDEBUG\n#include <assert.h>\n', -1] as const] : []),
      ] as const) {
        const made = cudaKernel('quiet', { y: inout(f32), limit: f32 }, `${head}${quiet}`, { options });
        using y = device.zeros(64);
        await device.stream.launch(made, { grid: 1, block: 64 }, { y, limit }).done;
        expect(await y.read()).toEqual(new Float32Array(64).fill(1));
      }
    });
  });
});

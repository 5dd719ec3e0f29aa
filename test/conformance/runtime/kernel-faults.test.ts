// Chapter 6: CUDA C++ kernels that divide by zero, and kernels that fault. The latter may lose the device for the process, so each runs in
// a separate process.
import { describe, expect } from 'vitest';
import { cudaKernel, i32, inout } from 'millrace';
import { linesOf, runProgram } from '../../process/child.js';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const divided = cudaKernel(
  'divided',
  { x: inout(i32) },
  `template <class T>
__device__ T all_of(T a, T b) { return a / b + a % b; }
extern "C" __global__ void divided(int* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int zero = x[0] - 7, minus_one = zero - 1, least = (int)(0x80000000u + zero);
  int sum = all_of<int>(i, zero) + (int)all_of<unsigned>(i, zero) + (int)all_of<long long>(i, zero) +
            (int)all_of<unsigned long long>(i, zero) + all_of<short>(i, zero) + all_of<unsigned char>(i, zero);
  sum += all_of<int>(least, minus_one) + (int)all_of<long long>((long long)least << 32, minus_one);
  int chosen = x[0] == 7 ? 0 : 3;
  sum += i / chosen;
  // The quotient is unspecified, so the result does not use it.
  if (i > 0) x[i] = (sum & 0) + i;
}`,
);

defineChapter((target) => {
  const noTraps =
    target.name === 'fake-cuda' && 'the driver for tests runs kernels as functions of its own, and sees to none of their faults';
  describe('6 failure: aborted kernels', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule(
      'S620',
      'integers may be divided by zero, and the smallest by -1',
      async () => {
        for (const [grid, block] of [[1, 4] as const, [200, 256] as const]) {
          const x = chapter.device.full(grid * block, 7, 'i32');
          await chapter.device.stream.launch(divided, { grid, block }, { x }).done;
          expect(await x.read()).toEqual(Int32Array.from({ length: grid * block }, (_, i) => (i === 0 ? 7 : i)));
          x[Symbol.dispose]();
        }
      },
      { unless: noTraps },
    );

    for (const which of ['stack', 'no memory', 'trap']) {
      rule(
        'S621',
        `a kernel that faults (${which}) costs its launch or its device, and the process and other devices go on`,
        async () => {
          const ending = await runProgram('kernel-faults', [target.spec as string, which], { env: { MILLRACE_CPU_DEVICES: '2' } });
          expect(ending).toMatchObject({ code: 0, signal: null });
          const [failure, beside, ...after] = linesOf(ending);
          expect(['DeviceLostError fault', 'LaunchError ']).toContain(failure);
          expect([beside, after.at(-1)]).toEqual(['2 2 2 2 2 2 2 2', 'closed']);
        },
        { unless: noTraps },
      );
    }

    rule(
      'S641',
      'a wait for the operation that lost the device rejects, and says which it was, also if nothing was submitted after it',
      async () => {
        const isCpu = (target.spec as string).startsWith('cpu');
        const ending = await runProgram('told-losses', [target.spec as string, ...(isCpu ? ['thread', 'process'] : ['thread'])]);
        expect(ending).toMatchObject({ code: 0, signal: null });
        const lines = linesOf(ending);
        expect(lines).toHaveLength(isCpu ? 7 : 1);
        // A GPU names no kernel: it is the one that had not ended.
        const cause = isCpu ? 'true faulty' : 'no cause ';
        for (const line of lines) expect(line).toContain(` | DeviceLostError fault faulty ${cause} | true | true | lost`);
      },
      { unless: noTraps },
    );
  });
});

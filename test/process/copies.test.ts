// Copies of every kind on the real devices, with the built library.
import { listDevices } from 'millrace';
import { describe, expect } from 'vitest';
import { linesOf, runProgram, testOn } from './child.js';

const gpus = (await listDevices()).filter(({ backend }) => backend === 'cuda').map(({ id }) => id);
const noGpu = gpus.length > 0 ? undefined : 'this machine has no CUDA device';

describe('copies of every kind', () => {
  for (const [title, specs, absent] of [
    ['on one CPU device', ['cpu'], undefined],
    ['between two CPU devices', ['cpu:0', 'cpu:1'], undefined],
    ['on one GPU', gpus.slice(0, 1), noGpu],
    ['between a GPU and the CPU device', [...gpus.slice(0, 1), 'cpu'], noGpu],
    ['between the CPU device and a GPU', ['cpu', ...gpus.slice(0, 1)], noGpu],
    ['between two GPUs', gpus.slice(0, 2), gpus.length > 1 ? undefined : 'this machine has no two CUDA devices'],
  ] as const) {
    testOn(absent)(
      title,
      async () => {
        const ending = await runProgram('copies', specs, { timeoutMs: 60_000, env: { MILLRACE_CPU_DEVICES: '2' } });
        expect([ending.stderr, ending.code, linesOf(ending)]).toEqual(['', 0, ['done']]);
      },
      70_000,
    );
  }
});

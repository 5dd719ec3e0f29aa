// A CUDA C++ kernel that faults fails its launch or loses its device, and never ends the process.
import { describe, expect, test } from 'vitest';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';

const TWO = { MILLRACE_CPU_DEVICES: '2' };
/** Faults that lose the CPU device. Each of the faults loses a GPU. */
const LOSING = ['no address'];

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  const run = testOn(absent);
  const frames = spec === 'cpu' ? ['large frames of threads that wait'] : [];
  // S621 shows those of the stack, of an address near zero and of a trap.
  for (const which of ['stack while it prints', 'calls of threads that wait', ...frames, ...LOSING]) {
    run(`a kernel that cannot go on (${which}) ends alone`, async () => {
      const ending = await runProgram('kernel-faults', [spec, which], { env: TWO });
      expect(ending).toMatchObject({ code: 0, signal: null });
      const isLost = spec !== 'cpu' || LOSING.includes(which);
      const after = isLost ? [] : ['1 1 1 1 1 1 1 1'];
      expect(linesOf(ending)).toEqual([isLost ? 'DeviceLostError fault' : 'LaunchError ', '2 2 2 2 2 2 2 2', ...after, 'closed']);
      if (spec === 'cpu') expect(ending.stderr).toContain(which.startsWith('stack') ? 'in block (2, 0, 0)' : 'in block (0, 0, 0)');
      if (spec === 'cpu') expect(ending.stderr).toContain('ernel k on stream');
    });
  }
});

test('kernels that write outside of their arrays reach other arrays at most, or fail their launches', async () => {
  const ending = await runProgram('stray-writes', []);
  expect(ending).toMatchObject({ code: 0, signal: null });
  expect(linesOf(ending)).toEqual(['LaunchError done 65 1000', 'closed']);
  expect(ending.stderr).toMatch(/Kernel put on stream default of device cpu:# accessed byte # of array y, which has # bytes, in block/);
});

test('kernels that index outside of their shared or local arrays change no memory of the process', async () => {
  const ending = await runProgram('stray-shared', []);
  expect(ending).toMatchObject({ code: 0, signal: null });
  const outside = 'LaunchError: accessed memory before or behind its __shared__ or local variables';
  expect(linesOf(ending)).toEqual([
    `local, far: ${outside}`,
    `shared, far: ${outside}`,
    `shared: ${outside}`,
    'shared: done',
    'open 3 1000',
    'closed',
  ]);
});

test('WebAssembly still handles its own traps after kernels have run', async () => {
  const ending = await runProgram('handlers', ['wasm']);
  expect(ending).toMatchObject({ code: 0, signal: null });
  expect(linesOf(ending)).toEqual(['divided 5', '0', 'RuntimeError', 'closed']);
});

test('a handler installed before the device was opened still gets signals that kernels did not cause', async () => {
  const ending = await runProgram('handlers', ['own handler']);
  expect(ending).toMatchObject({ code: 0, signal: null });
  expect(linesOf(ending)).toEqual(['divided 5', 'heard', 'closed']);
});

for (const signal of ['SIGSEGV', 'SIGFPE']) {
  test(`${signal} of another cause still ends the process`, async () => {
    const ending = await runProgram('handlers', [signal]);
    expect(ending).toMatchObject({ code: null, signal });
    expect(linesOf(ending)).toEqual(['divided 5']);
  });
}

// A GPU, here the fake driver's, that is destroyed while its kernel never ends: docs/ends.md, destroy. CPU devices: runaway.test.ts.
import { expect, test } from 'vitest';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { linesOf, runProgram } from './child.js';

interface Facts {
  readonly name: string;
  readonly reason: string;
  readonly restartNeeds: string;
  readonly operation?: string;
  readonly message: string;
}

// It waits for the 5 s that `destroy` gives to a kernel.
test('destroy of a GPU whose kernel never ends rejects after 5 s, names the kernel, and the process does not open the GPU again', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const ending = await runProgram('hung-gpu', [], { timeoutMs: 40_000 });
  // 3: process.exit ends the process although the kernel runs on.
  expect(ending).toMatchObject({ code: 3, signal: null, stderr: '' });
  const [line, ...rest] = linesOf(ending);
  expect(rest).toEqual([]);
  const { pending, pendingMs, hung, ms, state, again, elsewhere } = JSON.parse(line!) as {
    pending: Facts;
    pendingMs: number;
    hung: Facts;
    ms: number;
    state: string;
    again: Facts;
    elsewhere: Facts;
  };
  expect(pending).toMatchObject({ name: 'DeviceLostError', reason: 'closed' });
  expect(pendingMs).toBeLessThan(4000);
  expect(hung).toMatchObject({
    name: 'DeviceLostError',
    reason: 'hung',
    restartNeeds: 'process',
    operation: 'forever',
    device: 'cuda:0',
    message: expect.stringMatching(/^Device cuda:0 was destroyed, and launch forever on stream lane has not ended within 5000 ms: /),
  });
  expect(ms).toBeGreaterThan(4900);
  expect(ms).toBeLessThan(9000);
  expect(state).toBe('lost');
  const refusal = 'Device cuda:0 cannot be opened: openDevice: a kernel of a destroyed device of this process still runs on the GPU';
  const refused = { name: 'DeviceLostError', reason: 'hung', restartNeeds: 'process' };
  expect(again).toMatchObject({ ...refused, operation: 'forever', message: `${refusal}. ${hung.message}` });
  expect(elsewhere).toEqual({ ...refused, message: refusal });
}, 60_000);

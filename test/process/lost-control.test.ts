// Calls that the worker of a lost GPU answers, on the fake driver.
import { expect, test } from 'vitest';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { linesOf, runProgram } from './child.js';

test('a call that the driver answers with a fault rejects with DeviceLostError', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  // 700: an illegal address.
  const env = { MILLRACE_FAKE_CUDA_FAIL: 'cuMemPoolGetAttribute:1:700' };
  const ending = await runProgram('lost-control', [], { env });
  expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(linesOf(ending)).toEqual(['DeviceLostError fault cuda:0']);
});

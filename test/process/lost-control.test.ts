// Driver calls that fail, on the fake driver.
import { expect, test } from 'vitest';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { linesOf, runProgram } from './child.js';

test('a call that the driver answers with a fault rejects with DeviceLostError', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  // 700: an illegal address, at the call behind that of the opening.
  const env = { MILLRACE_FAKE_CUDA_FAIL: 'cuMemPoolGetAttribute:2:700' };
  const ending = await runProgram('lost-control', [], { env });
  expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(linesOf(ending)).toEqual(['DeviceLostError fault cuda:0']);
});

test('a graph with a copy whose pinned memory could not be page-locked rejects with a StateError that names the node', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  // 2: out of memory, at the fifth registration, which is that of the pinned array.
  const env = { MILLRACE_FAKE_CUDA_FAIL: 'cuMemHostRegister:5:2' };
  const lines = linesOf(await runProgram('unlocked-graph', [], { env }));
  expect(lines).toHaveLength(3);
  for (const line of lines) expect(line).toMatch(/^StateError Node 1 \(copy\) of graph default .*could not be page-locked/);
});

test('memory that cannot be page-locked: copies work, and one warning names the limit; a device that needs some says so', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const failing = (call: number): string => `cuMemHostRegister:${call}:2`;
  const ending = await runProgram('unlocked-copies', [], { env: { MILLRACE_FAKE_CUDA_FAIL: `${failing(5)},${failing(6)}` } });
  expect(ending).toMatchObject({ code: 0, signal: null });
  expect(linesOf(ending)).toEqual(['7 7']);
  expect(ending.stderr.match(/MillraceWarning/g)).toHaveLength(1);
  expect(ending.stderr).toMatch(
    /201326592 bytes cannot be page-locked: .* The limit of locked memory \(RLIMIT_MEMLOCK\) is [^.]+\. Raise it: (?:ulimit -l|as root)/,
  );
  // From the third on: also that of the slots through which memory is copied that is not locked.
  const all = Array.from({ length: 60 }, (_, n) => failing(n + 3)).join(',');
  const without = await runProgram('unlocked-copies', [], { env: { MILLRACE_FAKE_CUDA_FAIL: all } });
  expect(linesOf(without)).toEqual(['7 7']);
  expect(without.stderr.match(/MillraceWarning/g)).toHaveLength(1);
  const refused = await runProgram('unlocked-copies', [], { env: { MILLRACE_FAKE_CUDA_FAIL: failing(0) } });
  expect(linesOf(refused)[0]).toMatch(/^UnavailableError Device cuda:0 cannot be opened: .*page-locking host memory .*RLIMIT_MEMLOCK/);
});

test('memory that the driver does not unlock stays with the device, which goes on', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  // 1: an invalid value.
  const env = { MILLRACE_FAKE_CUDA_FAIL: 'cuMemHostUnregister:1:1' };
  const ending = await runProgram('refused-unlock', [], { env });
  expect(ending).toMatchObject({ code: 0, signal: null });
  expect(linesOf(ending)).toEqual(['1 1', '2 2', '3 3', 'open', 'closed']);
});

// Devices, threads and processes that end while a kernel runs forever or for minutes: each ends within a stated time and names the kernel.
import { describe, expect, test } from 'vitest';
import { linesOf, runProgram } from './child.js';

const FOUR = { env: { MILLRACE_CPU_DEVICES: '4' }, timeoutMs: 60_000 };
const NAMED = /launch forever on stream lane has not ended within 5000 ms/;

// Side by side: most of it is the 5 s that destroy gives to a kernel.
describe.concurrent('a CPU device whose kernel never ends', () => {
  test('four destroyed devices: each rejects and names the kernel, file reads still work, and the device opens again', async () => {
    const ending = await runProgram('runaway', ['destroy four'], FOUR);
    expect(ending).toMatchObject({ code: 3, signal: null, stderr: '' });
    const [first, ...rest] = linesOf(ending);
    expect(first).toBe('file read');
    for (let n = 0; n < 4; n++) {
      expect(rest[2 * n]).toBe('true hung reopen forever true');
      expect(rest[2 * n + 1]).toMatch(NAMED);
      expect(rest[2 * n + 1]).toContain(`Device cpu:${n} was destroyed`);
    }
    expect(rest.slice(8)).toEqual(['lost lost lost lost 4', 'works']);
  }, 90_000);

  test('close and openDevice time out and name the kernel; after destroy the device opens again; a process with nothing left ends', async () => {
    const ending = await runProgram('runaway', ['open again'], { timeoutMs: 60_000 });
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    const [closing, opening, again, reason] = linesOf(ending);
    expect(closing).toMatch(
      /^true The wait for device cpu:0 to close took longer than its timeout \(200 ms\): stream lane is at launch forever\.$/,
    );
    expect(opening).toMatch(/^true true The wait for device cpu:0 to close .*: stream lane is at launch forever\.$/);
    expect([again, reason]).toEqual(['true open closed 1', 'hung']);
  }, 90_000);

  for (const [how, line, code] of [
    ['destroy, exit', 'exits', 3],
    ['destroy, throw', 'throws', 1],
    ['destroy, terminate', 'true', 3],
  ] as const) {
    test(`${how}: the process ends`, async () => {
      const ending = await runProgram('runaway', [how], { timeoutMs: 40_000 });
      expect(ending).toMatchObject({ code, signal: null });
      expect(linesOf(ending)).toEqual([line]);
    }, 60_000);
  }
});

describe('a CPU device with minutes of work', () => {
  test('destroyed, drops operations that have not begun and stops at the next block', async () => {
    const ending = await runProgram('runaway', ['destroy a flood'], { timeoutMs: 60_000 });
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(linesOf(ending)).toEqual(['undefined true 1 true', 'undefined true 1 true']);
  }, 90_000);

  test('whose owner is terminated does the same', async () => {
    const ending = await runProgram('runaway', ['terminate a flood'], { timeoutMs: 60_000 });
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(linesOf(ending)).toEqual(['true']);
  }, 90_000);
});

// Every way a process or a thread can end while the device works. Ends are asserted by exit code and signal: a crash in a
// native thread shows as SIGSEGV or SIGABRT, a hang as SIGKILL from the harness.
import { describe, expect, test } from 'vitest';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';
import { IS_LONG } from '../support/long.js';

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  const run = testOn(absent);

  for (const how of ['exit', 'exit, awaited']) {
    run(`process.exit with work in flight (${how})`, async () => {
      const ending = await runProgram('end-in-flight', [spec, how]);
      expect(ending).toMatchObject({ code: 7, signal: null, stderr: '' });
      expect(linesOf(ending)).toEqual(['started', 'in flight']);
    });
  }

  for (const how of ['throw', 'reject']) {
    run(`an uncaught failure with work in flight (${how})`, async () => {
      const ending = await runProgram('end-in-flight', [spec, how]);
      expect(ending).toMatchObject({ code: 1, signal: null });
      expect(ending.stderr).toContain('on purpose');
      expect(linesOf(ending)).toEqual(['started', 'in flight']);
    });
  }

  for (const [mode, rounds] of [
    ['busy', IS_LONG ? 10 : 4],
    ['long', IS_LONG ? 4 : 2],
  ] as const) {
    run(`worker.terminate of an owner with work in flight (${mode}), ${rounds} times`, async () => {
      const ending = await runProgram('terminate-owner', [spec, mode, String(rounds)]);
      expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
      const [slowest, works] = linesOf(ending);
      expect(works).toBe('works');
      expect(Number(slowest?.split(' ')[1])).toBeLessThan(2000);
    });
  }
});

// A GPU's driver keeps the pages of its copies; a CPU device reads and writes JavaScript's memory directly.
test('worker.terminate of CPU devices whose copies wait for a long kernel', async () => {
  const modes = ['transfer', 'shared, on another device', 'shared', 'transfer, on another device'];
  const ending = await runProgram('terminate-uploads', IS_LONG ? [...modes, ...modes, ...modes] : modes.slice(0, 2), { timeoutMs: 60_000 });
  expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(linesOf(ending)).toEqual(['still running', 'works']);
}, 70_000);

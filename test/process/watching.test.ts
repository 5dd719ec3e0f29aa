// Readers of a stream's operations, in processes that have nothing else to do.
import { describe, expect } from 'vitest';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  const run = testOn(absent);

  describe.each(['stream', 'operations of the stream', 'device'])('for await over the %s', (how) => {
    run('keeps the process alive until the pending operations were given', async () => {
      const ending = await runProgram('watching', [spec, how, 'busy']);
      expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
      expect(linesOf(ending)).toEqual(['launch', 'launch', 'launch', 'exit']);
    });

    run('gives them all when the device is closed meanwhile, and ends', async () => {
      const ending = await runProgram('watching', [spec, how, 'closed']);
      expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
      expect(linesOf(ending)).toEqual(['launch', 'launch', 'launch', 'the end', 'exit']);
    });

    run('keeps no process alive that has nothing more to submit', async () => {
      const ending = await runProgram('watching', [spec, how, 'idle']);
      expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
      expect(linesOf(ending)).toEqual(['exit']);
    });
  });
});

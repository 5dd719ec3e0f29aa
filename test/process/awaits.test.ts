// No await is lost, in any order of awaits and completions.
import { describe, expect } from 'vitest';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';

/** More of them: node test/process/programs/random-awaits.mjs cpu 1000000 1. The program ends by itself when a wait takes longer than 20 s. */
const AWAITS = 15_000;

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  testOn(absent)(
    'awaits in random order on two streams are all settled',
    async () => {
      const ending = await runProgram('random-awaits', [spec, String(AWAITS)], { timeoutMs: 110_000 });
      expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
      expect(linesOf(ending)).toEqual([`settled ${AWAITS}`]);
    },
    120_000,
  );
});

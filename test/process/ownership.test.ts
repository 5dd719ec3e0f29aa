// Results of `overlap` belong to their receiver alone, after any RxJS operators, and a run leaves no memory on the device.
import { describe, expect } from 'vitest';
import { deviceCases, runProgram, testOn } from './child.js';

/** About 6 s on two cores. MILLRACE_OWNERSHIP_CHAINS names another number, of which 1000 take about 40 s. */
const CHAINS = Number(process.env['MILLRACE_OWNERSHIP_CHAINS'] ?? 150);
const TIMEOUT_MS = 60_000 + 200 * CHAINS;

/** Other chains each time. A failure shows its seed, which MILLRACE_OWNERSHIP_SEED repeats. */
const SEED = Number(process.env['MILLRACE_OWNERSHIP_SEED'] ?? Math.floor(Math.random() * 1e6));

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  testOn(absent)(
    'arrays behind random chains of operators keep their bytes, and memory and streams are given back',
    async () => {
      const ending = await runProgram('ownership', [spec, String(CHAINS), String(SEED)], { timeoutMs: TIMEOUT_MS });
      expect(ending, ending.stdout).toMatchObject({ code: 0, signal: null, stderr: '' });
      const [, chains, operators, arrays] = /^checked (\d+) chains, (\d+) operators, (\d+) arrays\n$/.exec(ending.stdout)!.map(Number);
      expect(chains).toBe(CHAINS);
      // The chains are not all alike, and most of them have arrays to look at.
      if (CHAINS >= 150) {
        expect(operators).toBeGreaterThan(60);
        expect(arrays).toBeGreaterThan(2 * CHAINS);
      }
    },
    TIMEOUT_MS + 10_000,
  );
});

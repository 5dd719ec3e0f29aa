// Workers that are terminated wherever they have come to leave nothing behind, and take nothing down.
import { describe, expect } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';

interface Held {
  readonly descriptors: number;
  readonly threads: number;
  readonly children: number;
  readonly folders: number;
}

interface Told {
  readonly ended: Readonly<Record<string, number>>;
  readonly before: Held;
  readonly after: Held;
  /** New descriptors that are still open. */
  readonly open: readonly string[];
}

const WORKING = ['loading', 'opening', 'building', 'working', 'closing'];

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  const run = testOn(absent);

  // For longer: node --expose-gc test/process/programs/terminate-anywhere.mjs cpu 1500 1
  for (const [workers, phases] of [
    [IS_LONG ? 40 : 15, WORKING],
    [IS_LONG ? 150 : 30, ['addon']],
  ] as const) {
    run(
      `${workers} workers terminated at random moments of: ${phases.join(', ')}`,
      async () => {
        const ending = await runProgram('terminate-anywhere', [spec, String(workers), '1', phases.join()], { timeoutMs: 170_000 });
        expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
        const lines = linesOf(ending);
        expect(lines.slice(0, -1)).toEqual([]);
        const { ended, before, after, open } = JSON.parse(lines.at(-1) as string) as Told;
        // On a loaded machine a worker can be in another phase than the one that was meant.
        expect(phases.filter((phase) => ended[phase] !== 0).length).toBeGreaterThan(phases.length / 2);
        expect(open).toEqual([]);
        expect(after.descriptors).toBeLessThanOrEqual(before.descriptors);
        expect(after.threads).toBeLessThanOrEqual(before.threads);
        expect(after).toMatchObject({ children: 0, folders: 0 });
      },
      180_000,
    );
  }
});

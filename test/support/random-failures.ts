// Random programs whose kernels fail by chance: a value is delivered if and only if nothing that it derives from failed. The model also runs
// without failures, so that a mistake of the model is not taken for one of the library. test/process/programs/random-failures.ts runs more.
import { expect } from 'vitest';
import type { Device } from 'millrace';
import { programOf } from './failing-programs.js';
import { makeFailingBench } from './failing-bench.js';
import { differencesOf } from './failing-run.js';
import { reportOf, shortened } from './failing-shorten.js';
import { rulesOf } from './rule.js';
import type { Target } from './target.js';

const SEED = Number(process.env['MILLRACE_PROGRAM_SEED'] ?? 1);
const PROGRAMS = process.env['MILLRACE_PROGRAMS'];
/** Limits the time of the default number on a slow machine. A requested number runs in full. */
const LIMIT_MS = PROGRAMS === undefined ? 1000 : Infinity;
const TIMEOUT_MS = Math.max(60_000, Number(PROGRAMS ?? 0) * 100);

export function failureRules(target: Target, devicesOf: () => readonly Device[]): void {
  const rule = rulesOf(target);

  for (const [failing, usual, title] of [
    [0, 100, 'without failures every value of a program is delivered'],
    [15, 400, 'a value is delivered if and only if nothing that it derives from failed'],
  ] as const) {
    rule(
      'S605',
      title,
      async () => {
        const devices = devicesOf();
        const bench = await makeFailingBench(devices);
        const count = Number(PROGRAMS ?? usual);
        const end = performance.now() + LIMIT_MS;
        for (let n = 0; n < count && performance.now() < end; n++) {
          const program = programOf(SEED + n, devices.length, failing);
          const differences = await differencesOf(bench, program);
          if (differences.length === 0) continue;
          const [least, difference] = await shortened(bench, program, 20);
          const first = reportOf(program, differences.join('\n'));
          expect.fail(`Program of seed ${SEED + n} differs:\n${first}\n\nshortened:\n${reportOf(least, difference)}`);
        }
        await bench.close();
      },
      { timeoutMs: TIMEOUT_MS },
    );
  }
}

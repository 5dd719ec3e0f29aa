// Random programs on several streams against a model that runs the calls one after another and tracks their order. Tracked
// arrays must give exactly the model's result, and checked streams must refuse exactly the calls that race.
import { expect } from 'vitest';
import fc from 'fast-check';
import type { Device } from 'millrace';
import { IS_LONG } from './long.js';
import { makeBench, program, runProgram, type Bench } from './programs.js';
import { rulesOf } from './rule.js';
import type { Target } from './target.js';

/** The number of programs of each kind in each run of the suite; a soak runs more. */
const PROGRAMS = Number(process.env['MILLRACE_PROGRAMS'] ?? (IS_LONG ? 150 : 50));
/** Limits the time of the default number on a slow machine. A requested number runs in full. */
const TIME_LIMIT = process.env['MILLRACE_PROGRAMS'] === undefined ? { interruptAfterTimeLimit: 25_000 } : {};
const TIMEOUT_MS = Math.max(60_000, PROGRAMS * 1000);

export function programRules(target: Target, devices: () => readonly Device[]): void {
  const rule = rulesOf(target);
  const options = { timeoutMs: TIMEOUT_MS };

  rule(
    'S104',
    'with tracked arrays a program on any streams gives the results of its calls in sequence',
    async () => {
      await check(target, devices(), async (bench) => {
        await fc.assert(
          fc.asyncProperty(program, async (one) => {
            const { seen, expected, hazards } = await runProgram(bench, one, 'tracked');
            expect(seen).toEqual(expected);
            expect(hazards).toBe(0);
          }),
          { numRuns: target.programs ?? PROGRAMS, ...TIME_LIMIT },
        );
      });
    },
    options,
  );

  rule(
    'S122',
    'checked streams refuse exactly the calls that race, in any program',
    async () => {
      let [refused, clean] = [0, 0];
      await check(target, devices(), async (bench) => {
        await fc.assert(
          fc.asyncProperty(program, async (one) => {
            const { seen, expected, hazards } = await runProgram(bench, one, 'checked');
            expect(seen).toEqual(expected);
            if (hazards > 0) refused++;
            else clean++;
          }),
          { numRuns: target.programs ?? PROGRAMS, ...TIME_LIMIT },
        );
      });
      // If all programs were of one kind, the test would be useless; with few programs that may happen by chance.
      if (refused + clean >= 100) expect(Math.min(refused, clean)).toBeGreaterThan(0);
    },
    options,
  );
}

async function check(target: Target, devices: readonly Device[], body: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await makeBench(target, devices);
  await body(bench);
  await Promise.all(devices.map((device) => device.synchronize()));
  await bench.close();
}

// Workers that are terminated at any point leak nothing and do not crash the process.
import { describe, expect } from 'vitest';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';

interface Held {
  readonly descriptors: number;
  readonly threads: number;
  readonly children: number;
}

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  const run = testOn(absent);

  // `terminate-anywhere.mjs cpu 1500 1` is the same for longer.
  for (const [mode, workers] of [
    ['open', 40],
    ['load', 150],
  ] as const) {
    run(
      `${workers} workers terminated at random moments (${mode})`,
      async () => {
        const ending = await runProgram('terminate-anywhere', [spec, String(workers), '1', mode], { timeoutMs: 170_000 });
        expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
        const lines = linesOf(ending);
        expect(lines.slice(0, -1)).toEqual([]);
        const { before, after } = JSON.parse(lines.at(-1) as string) as { readonly before: Held; readonly after: Held };
        // A device's worker is one file, and Node leaks its descriptor only if the worker ends while it is read. With many files each termination leaked some.
        expect(after.descriptors).toBeLessThanOrEqual(before.descriptors + workers / 10);
        expect(after.threads).toBeLessThanOrEqual(before.threads);
        expect(after.children).toBe(0);
      },
      180_000,
    );
  }
});

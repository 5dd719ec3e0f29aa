// Resources of a process while a device is open, and that none remain afterwards.
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';

const OPENINGS = IS_LONG ? 20 : 10;
const EXITS = IS_LONG ? 20 : 8;
const MIXED = IS_LONG ? 60_000 : 30_000;

interface Held {
  readonly descriptors: number;
  readonly threads: number;
  readonly rssMiB: number;
}

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  const run = testOn(absent);

  for (const mode of ['check', 'leave open']) {
    run(`the addon loaded first in a worker (${mode})`, async () => {
      const ending = await runProgram('first-in-worker', [spec, mode]);
      expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
      expect(linesOf(ending)).toEqual(['checked', 'checked', 'works here']);
    });
  }

  run('a device in three environments, opened twice in one of them: each opener has its own', async () => {
    const ending = await runProgram('several-owners', [spec]);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(linesOf(ending)).toEqual(['two devices', 'three owners', 'still open', 'closed']);
  });

  run('an opening that fails between two others does not keep the process', async () => {
    const ending = await runProgram('failed-opening', [spec]);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(linesOf(ending)).toEqual(['refused', 'open']);
  });

  run('close() drains, refuses what comes after, and is one promise', async () => {
    const ending = await runProgram('close-drains', [spec]);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(linesOf(ending)).toEqual(['one promise', 'refused', 'complete', 'same', 'closed']);
  });

  run(
    `${OPENINGS} openings leave no descriptor, no thread and no memory behind`,
    async () => {
      const ending = await runProgram('churn', [spec, String(OPENINGS + 5), '5'], { timeoutMs: 110_000 });
      expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
      const { before, after } = JSON.parse(ending.stdout) as { readonly before: Held; readonly after: Held };
      expect(after.descriptors).toBeLessThanOrEqual(before.descriptors);
      expect(after.threads).toBeLessThanOrEqual(before.threads);
      // A leaked worker has over 8 MiB; the allocator keeps some pages of its own.
      expect(after.rssMiB - before.rssMiB).toBeLessThan(48);
    },
    120_000,
  );

  run('mixed operations of eight streams compute what a model says', async () => {
    const devices = spec === 'cpu' ? ['cpu:0', 'cpu:1'] : [spec, spec];
    const ending = await runProgram('endurance', [...devices, String(MIXED), '1'], { env: { MILLRACE_CPU_DEVICES: '2' } });
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(JSON.parse(linesOf(ending).at(-1)!)).toMatchObject({ operations: expect.toSatisfy((count: number) => count >= MIXED) });
  });

  run('an idle open device uses no processor time', async () => {
    const ending = await runProgram('idle', [spec, '1500']);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    // Of 150 ticks: a polling thread would use all of them, a 1 ms timer about ten.
    expect((JSON.parse(ending.stdout) as { readonly ticks: number }).ticks).toBeLessThanOrEqual(4);
  });

  for (const kind of ['bounds', 'build']) {
    run(`a failure that nobody reads is told although the process ends at once (${kind})`, async () => {
      const ending = await runProgram('unasked-failure', [spec, kind]);
      expect(ending).toMatchObject({ code: 0, signal: null });
      const code = kind === 'bounds' ? 'ERR_MILLRACE_BOUNDS' : 'ERR_MILLRACE_COMPILE';
      expect(linesOf(ending).toSorted()).toEqual(['ended at once', 'listeners 1', `warning ${code}`]);
    });
  }
});

test('a thread that ends while a compilation runs does not crash the process', async () => {
  const addon = fileURLToPath(new URL('../../build/Release/millrace.node', import.meta.url));
  const ending = await runProgram('exit-while-compiling', [addon, String(EXITS)]);
  expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(linesOf(ending)).toEqual([`ended ${EXITS} times`]);
});

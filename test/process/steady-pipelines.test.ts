// Long-running pipelines: they pull no more than their lanes take, keep their busiest part busy, and use little memory.
import { describe, expect } from 'vitest';
import { deviceCases, runProgram, testOn } from './child.js';

const FRAMES = 1000;
/** MiB of JavaScript's heap and array buffers. A leaked frame has 64 KiB, so 900 of them have 56 MiB. */
const MOST_GROWN_MIB = 8;
/** On a quiet machine it is below 2. */
const MOST_DELAY_MS = 20;
/** An idle process whose event loop is later than this has to share its cores, and then the delay says nothing about pipelines. */
const QUIET_MS = 3;

interface Figures {
  readonly items: number;
  readonly bottleneckBusy: number;
  readonly grownMiB: number;
  readonly delayP99Ms: number;
  readonly idleP99Ms: number;
}

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  const test = testOn(absent);

  test('an endless source is never more than depth items ahead', async () => {
    const ending = await runProgram('endless-sources', [spec], { timeoutMs: 60_000 });
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '', stdout: 'done\n' });
  }, 70_000);

  test(`${FRAMES} frames keep the busiest of three equal parts busy, memory flat and the event loop free`, async () => {
    const ending = await runProgram('steady-frames', [spec, String(FRAMES), '4'], { timeoutMs: 150_000 });
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    const figures = JSON.parse(ending.stdout) as Figures;
    expect(figures.items).toBe(FRAMES);
    expect(figures.bottleneckBusy).toBeGreaterThanOrEqual(0.9);
    expect(figures.grownMiB).toBeLessThan(MOST_GROWN_MIB);
    if (figures.idleP99Ms < QUIET_MS) expect(figures.delayP99Ms).toBeLessThan(MOST_DELAY_MS);
  }, 160_000);
});

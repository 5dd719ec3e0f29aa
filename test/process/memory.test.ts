// Host memory of copies is freed: a program that moves many large buffers stays small.
import { availableParallelism } from 'node:os';
import { describe, expect } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { deviceCases, runProgram, testOn } from './child.js';

/** The size of each buffer, in MiB. */
const SIZE = 8;
const COUNT = IS_LONG ? 40 : 28;
/**
 * In MiB, beyond the use of one buffer. Detached memory is freed at once. A SharedArrayBuffer cannot be detached: V8 lets about 64 MiB of
 * them accumulate in each thread before it collects. With more cores the allocator keeps more free pages.
 */
const MOST = { transferred: 88 + 4 * availableParallelism(), read: 40, pinned: 40, shared: 160, pin: 160 } as const;

describe.each(deviceCases)('host memory of $spec', ({ spec, absent }) => {
  const test = testOn(absent);

  async function move(way: string, count: number, mib: number, how: string): Promise<number> {
    const ending = await runProgram('memory-given-back', [spec, way, String(count), String(mib), how], { timeoutMs: 60_000 });
    expect([ending.stderr, ending.code]).toEqual(['', 0]);
    return Number(ending.stdout);
  }

  for (const [way, limit] of Object.entries(MOST)) {
    test(`is given back when ${COUNT} buffers of ${SIZE} MiB were moved: ${way}`, async () => {
      const most = await move(way, COUNT, SIZE, 'collected');
      expect(most).toBeLessThan(limit);
    }, 70_000);
  }

  // 1 GiB (1.5 in the long form) if none were collected.
  test('of dropped SharedArrayBuffers is collected without an explicit collection', async () => {
    const most = await move('shared', IS_LONG ? 48 : 32, 32, 'as it comes');
    expect(most).toBeLessThan(700);
  }, 70_000);
});

// Chapter 5, last part: foreign work in the stages of pipelines that end at any moment.
import { describe, expect } from 'vitest';
import { i32, overlap, type Device, type Lane } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { foreignOf } from '../../support/foreign.js';
import { randomOf } from '../../support/failing-programs.js';
import { IS_LONG } from '../../support/long.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { turn } from '../../support/wait.js';

const ITEMS = IS_LONG ? 1000 : 250;
const LENGTH = 256;
const RUNS = 8;

async function leftOf(device: Device): Promise<readonly number[]> {
  await device.synchronize();
  const { usedBytes, pinnedBytes } = await device.pool.stats();
  const { streams } = device.inspect();
  return [usedBytes, pinnedBytes, streams.length, streams.reduce((sum, { pending }) => sum + pending, 0)];
}

defineChapter((target) => {
  describe('5 waiting: foreign work in pipelines', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S530', `${ITEMS} items with foreign work, aborted at random, leave nothing behind`, async () => {
      const { device } = chapter;
      const foreign = foreignOf(device);
      const next = randomOf(1234);
      const work = async (item: number, lane: Lane): Promise<number> => {
        const { stream, signal } = lane;
        const x = lane.empty(LENGTH, i32);
        const y = lane.empty(LENGTH, i32);
        stream.external({ writes: { x }, ...(item % 3 === 0 && { signal }) }, (raw) => foreign.fill(raw, raw.pointers.x, item, LENGTH));
        // Some functions are still running when the run is aborted.
        stream.external({ reads: { x }, writes: { y }, label: 'copy' }, async (raw) => {
          if (item % 2 === 0) await turn();
          foreign.within(raw, () => foreign.copy(raw, raw.pointers.y, raw.pointers.x, x.byteLength));
        });
        return (await y.read())[LENGTH - 1]!;
      };
      const items = Array.from({ length: ITEMS }, (_, n) => n);
      const run = async (most: number): Promise<number> => {
        const aborter = new AbortController();
        let seen = 0;
        try {
          for await (const value of overlap(device, items, { depth: 4, signal: aborter.signal }, work)) {
            expect(value).toBe(seen++);
            if (seen < most) continue;
            // At once, or while the next items are under way.
            if (next(2) === 0) aborter.abort('enough');
            else setImmediate(() => aborter.abort('enough'));
          }
        } catch (error) {
          expect(error).toMatchObject({ name: 'AbortError', cause: 'enough' });
        }
        return seen;
      };
      expect(await run(ITEMS + 1)).toBe(ITEMS);
      const before = await leftOf(device);
      for (let n = 0; n < RUNS; n++) await run(1 + next(ITEMS - 1));
      const end = performance.now() + 10_000;
      while (String(await leftOf(device)) !== String(before) && performance.now() < end) await turn();
      expect(await leftOf(device)).toEqual(before);
    });
  });
});

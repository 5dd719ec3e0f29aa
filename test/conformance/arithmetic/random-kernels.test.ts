// Chapter 4, random TypeScript kernels over all types, against an interpreter of their IR in plain JavaScript: bit for bit,
// except for functions that devices round differently. MILLRACE_KERNELS is their number, MILLRACE_KERNEL_SEED their seed.
import { describe, expect } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { decided } from '../../support/oracle/cases.js';
import { differenceOn } from '../../support/oracle/compare.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const KERNELS = 16;
/** Of the first two kernels, one waits and leaves an array, and one does neither. */
const SEED = Number(process.env['MILLRACE_KERNEL_SEED'] ?? 2);
/** The number of kernels built at once, per core. */
const AT_ONCE = 8;

defineChapter((target) => {
  describe('4 kernels: random TypeScript functions', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const count = Number(process.env['MILLRACE_KERNELS'] ?? target.kernels ?? KERNELS);

    rule(
      'S412',
      'random kernels over all types give the results of an interpreter of their IR, and threads that leave an array stop',
      async () => {
        const { device } = chapter;
        const source = decided(SEED);
        let [waiting, stopped] = [0, 0];
        for (let checked = 0; checked < count; checked += AT_ONCE) {
          const batch = Array.from({ length: Math.min(AT_ONCE, count - checked) }, () => source.next().value);
          await device.compile(...batch.map(({ one }) => one.made));
          for (const each of batch) {
            const { seed, text, made } = each.one;
            const difference = await differenceOn(target, device, each);
            if (difference !== undefined) expect.fail(`${difference}, of seed ${seed}:\n${text.text}`);
            if (made.source.includes('MR_SYNCTHREADS();')) waiting++;
            if (each.outcome.faults.length > 0) stopped++;
          }
        }
        expect(waiting).toBeGreaterThan(0);
        expect(stopped).toBeGreaterThan(0);
      },
      { timeoutMs: 60_000 + count * 2000 },
    );
  });
});

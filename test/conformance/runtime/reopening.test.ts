// Chapter 3: the memory statistics of a device that was closed and is opened again.
import { describe, expect } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { rulesOf, withDevice } from '../../support/rule.js';

const MIB = 1 << 20;

defineChapter((target) => {
  describe('3 memory of a device that is opened again', () => {
    const rule = rulesOf(target);

    rule('S356', 'arrays that existed when the device closed are freed and no longer counted', async () => {
      const begun: unknown[] = [];
      for (let round = 0; round < 3; round++) {
        await withDevice(target, {}, async (device) => {
          const { usedBytes, usedHighBytes, reservedBytes } = await device.pool.stats();
          expect(usedBytes).toBeLessThanOrEqual(reservedBytes);
          begun.push([usedBytes, usedHighBytes]);
          const arrays = [device.zeros(16 * MIB, 'u8'), device.zeros(1000)];
          await device.synchronize();
          expect((await device.pool.stats()).usedBytes).toBeGreaterThanOrEqual(16 * MIB);
          expect(arrays.some(({ isDisposed }) => isDisposed)).toBe(false);
        });
      }
      // Memory that the device itself needs is the same each time.
      expect(begun).toEqual([begun[0], begun[0], begun[0]]);
    });
  });
});

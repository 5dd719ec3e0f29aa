// Chapter 13: what devices measure of themselves. fake-cuda-telemetry.test.ts has known values of GPUs.
import { spawnSync } from 'node:child_process';
import { describe, expect } from 'vitest';
import { ArgumentError } from 'millrace';
import { firstValueFrom, take, toArray } from 'rxjs';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const QUERY = ['uuid', 'memory.total', 'memory.used', 'temperature.gpu', 'power.draw', 'clocks.mem', 'enforced.power.limit'];

/** What `nvidia-smi` says of the GPU with this UUID, in the units of its query; undefined without it. */
function smiOf(uuid: string): readonly number[] | undefined {
  const { stdout } = spawnSync('nvidia-smi', [`--query-gpu=${QUERY.join(',')}`, '--format=csv,noheader,nounits'], {
    encoding: 'utf8',
  });
  const row = ((stdout as string | null) ?? '')
    .split('\n')
    .map((line) => line.split(', '))
    .find(([one]) => one === uuid);
  return row?.slice(1).map(Number);
}

defineChapter((target) => {
  describe('13 telemetry', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1240', 'a device tells its load and its memory', async () => {
      const { device } = chapter;
      const values = await device.telemetry();
      expect(values.device).toBe(device.info.id);
      expect(values.isSlice).toBe(/ MIG /.test(device.info.name));
      expect(values.memoryUsedBytes).toBeGreaterThan(0);
      expect(values.memoryTotalBytes).toBeGreaterThan(values.memoryUsedBytes!);
      const shares = [values.busyPercent, values.memoryBusyPercent].filter((one) => one !== undefined);
      expect(shares.length).toBeGreaterThan(0);
      for (const share of shares) {
        expect(share).toBeGreaterThanOrEqual(0);
        expect(share).toBeLessThanOrEqual(100);
      }
    });

    rule('S1240', 'the CPU device tells the processor time of the process since the last answer', async () => {
      if (device().info.backend !== 'cpu') return;
      await device().telemetry();
      const idle = await afterMs(60, false);
      const busy = await afterMs(60, true);
      expect(busy).toBeGreaterThan(idle);
    });

    rule('S1240', 'telemetry agrees with nvidia-smi', async () => {
      const values = await device().telemetry();
      const smi = values.uuid === undefined || values.isSlice ? undefined : smiOf(values.uuid);
      if (smi === undefined) return;
      const [total, used, temperature, power, memoryClock, limit] = smi as [number, number, number, number, number, number];
      console.log('telemetry', JSON.stringify(values), 'nvidia-smi', QUERY.join(), smi.join());
      expect(values.memoryTotalBytes! / 2 ** 20).toBeCloseTo(total, -1);
      // Other processes of the GPU come and go.
      expect(Math.abs(values.memoryUsedBytes! / 2 ** 20 - used)).toBeLessThan(1024);
      expect(Math.abs(values.temperatureC! - temperature)).toBeLessThan(5);
      expect(Math.abs(values.powerW! - power)).toBeLessThan(200);
      expect(values.memoryClockMHz).toBe(memoryClock);
      expect(values.powerLimitW).toBeCloseTo(limit, 0);
    });

    rule('S1243', 'telemetry$ reads at once and then at its interval, for each subscriber', async () => {
      const startMs = performance.now();
      const [few, many] = await Promise.all([
        firstValueFrom(device().telemetry$(20).pipe(take(2), toArray())),
        firstValueFrom(device().telemetry$(5).pipe(take(4), toArray())),
      ]);
      expect([few.length, many.length]).toEqual([2, 4]);
      expect(few[1]!.atMs).toBeGreaterThan(startMs + 19);
      expect(few[0]!.atMs).toBeGreaterThanOrEqual(startMs);
      for (const wrong of [0, -1, 1.5, Number.NaN, 2 ** 31, '5' as never])
        expect(thrownBy(() => device().telemetry$(wrong))).toBeInstanceOf(ArgumentError);
    });

    const device = () => chapter.device;

    /** The load after so many milliseconds, in which this thread waits or works. */
    async function afterMs(ms: number, isBusy: boolean): Promise<number> {
      const endMs = performance.now() + ms;
      if (isBusy) while (performance.now() < endMs);
      else await new Promise((resolve) => setTimeout(resolve, ms));
      return (await device().telemetry()).busyPercent!;
    }
  });
});

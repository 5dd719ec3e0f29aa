// Chapter 7: the memory of a CPU device, and arrays that nothing disposes.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { OutOfMemoryError, openDevice, UpstreamError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { rulesOf, withDevice } from '../../support/rule.js';
import { eventually, rejectionOf } from '../../support/wait.js';

const MIB = 2 ** 20;

defineChapter((target) => {
  const rule = rulesOf(target);
  const isOnCpu = target.spec.startsWith('cpu');
  const options = { guard: false, memoryLimitBytes: 64 * MIB };

  describe.runIf(!isOnCpu)('7 limits: the memory of a GPU', () => {
    rule('S706', 'a GPU refuses memoryLimitBytes', async () => {
      const error = await rejectionOf(openDevice(target.spec, { memoryLimitBytes: MIB }));
      expect(error).toMatchObject({ name: 'UnsupportedError', capability: 'memoryLimitBytes' });
    });

    rule('S709', 'a GPU refuses threads', async () => {
      expect(await rejectionOf(openDevice(target.spec, { threads: 2 }))).toMatchObject({ name: 'UnsupportedError', capability: 'threads' });
    });

    rule('S706', 'the error of an allocation names the lines of large arrays, and what counts as large grows with the memory', async () => {
      await withDevice(target, {}, async (device) => {
        const { totalMemoryBytes } = device.info;
        const large = Math.max(4 * MIB, Math.ceil(totalMemoryBytes / 8192));
        // The lines of the first arrays of a process are known, whatever their sizes are.
        for (let n = 0; n < 256; n++) device.zeros(1, 'u8')[Symbol.dispose]();
        using known = device.zeros(large, 'u8');
        using unknown = device.zeros(large - 1, 'u8');
        // Not read: host memory for all the bytes would be another limit.
        using huge = device.empty(totalMemoryBytes, 'u8');
        const failed = await rejectionOf(device.stream.fill(huge, 1).done);
        const error = failed instanceof UpstreamError ? failed.cause : failed;
        expect(error).toBeInstanceOf(OutOfMemoryError);
        const { message } = error as Error;
        expect(message).toMatch(
          new RegExp(`u8\\[${known.length}\\] \\(${known.length} bytes, made at .*memory-limits\\.test\\.ts:\\d+:\\d+\\)`),
        );
        expect(message).toContain(`u8[${unknown.length}] (${unknown.length} bytes)`);
        expect(message).toMatch(/ (\d+) arrays of this thread hold \d+ of \d+ bytes.* Dispose arrays/);
      });
    });
  });

  describe.runIf(isOnCpu)('7 limits: the memory of a CPU device', () => {
    rule('S706', 'arrays take at most memoryLimitBytes, and the error of another one lists the largest with their lines', async () => {
      await withDevice(target, options, async (device) => {
        expect((await device.pool.stats()).totalBytes).toBe(64 * MIB);
        const held = Array.from({ length: 14 }, () => device.zeros(4 * MIB, 'u8'));
        using last = device.zeros([4, MIB], 'u8');
        const error = await rejectionOf(device.zeros(16 * MIB, 'u8').read());
        expect(error.cause).toBeInstanceOf(OutOfMemoryError);
        expect(error.cause).toMatchObject({ requestedBytes: 16 * MIB, freeBytes: 4 * MIB });
        expect((error.cause as Error).message).toMatch(
          /15 arrays of this thread hold 62914560 of 67108864 bytes\. The largest arrays of this thread are u8\[4194304\] \(4194304 bytes, made at .*memory-limits\.test\.ts:\d+:\d+\)(?:; [^;]*){9}\. Dispose arrays/,
        );
        expect((await last.read()).length).toBe(4 * MIB);
        for (const each of held) each[Symbol.dispose]();
        using again = device.ones(32 * MIB, 'u8');
        expect((await again.read())[0]).toBe(1);
      });
      for (const memoryLimitBytes of [0, -1, 1.5, '1']) {
        await expect(openDevice(target.spec, { memoryLimitBytes: memoryLimitBytes as never })).rejects.toMatchObject({
          argument: 'memoryLimitBytes',
        });
      }
    });

    rule('S709', 'kernels run on as many threads as the device was opened with', async () => {
      // The pool of another device may be in the process.
      const threadsOfPools = (): number =>
        readdirSync('/proc/self/task').filter((task) => /^mr-cpu-\d/.test(readFileSync(`/proc/self/task/${task}/comm`, 'utf8'))).length;
      const before = threadsOfPools();
      await withDevice(target, { threads: 5 }, async (device) => {
        expect(device.info.multiprocessors).toBe(5);
        // A thread names itself when it first runs.
        await eventually('five threads', () => threadsOfPools() - before === 5);
        expect((await device.ones(100_000).read())[99_999]).toBe(1);
        expect(await rejectionOf(openDevice(target.spec, { threads: 4 }))).toMatchObject({ name: 'StateError' });
      });
      for (const threads of [1, 1025, 2.5, '4'])
        expect(await rejectionOf(openDevice(target.spec, { threads: threads as never }))).toMatchObject({
          name: 'ArgumentError',
          argument: 'threads',
        });
    });

    rule('S707', 'a loop that forgets its arrays runs on: an allocation without room waits for a collection', async () => {
      await withDevice(target, options, async (device) => {
        for (let n = 0; n < 40; n++) {
          const x = device.full(8 * MIB, n, 'u8');
          expect((await x.read())[8 * MIB - 1]).toBe(n);
        }
      });
    });
  });
});

// Chapter 3: which memory other threads and other code can access through a pinned array.
import { Worker } from 'node:worker_threads';
import { describe, expect } from 'vitest';
import type { HostArray } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const PAGE = 4096;

defineChapter((target) => {
  describe('3 memory: pinned arrays and other code', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S365', 'a thread that gets data by postMessage sees no byte outside of it', async () => {
      const { device } = chapter;
      // Other arrays whose bytes no other thread may see, also disposed ones.
      const gone = device.pinned(PAGE, 'u8');
      gone.data.fill(0xee);
      gone[Symbol.dispose]();
      const neighbours = Array.from({ length: 8 }, () => device.pinned(1000, 'u8'));
      for (const { data } of neighbours) data.fill(0xee);
      using pinned = device.pinned(1000, 'u8');
      pinned.data.fill(1);
      for (const { data } of neighbours) expect(data.buffer).not.toBe(pinned.data.buffer);
      const seen = await inWorker(
        'const all = new Uint8Array(data.buffer); result = [all.length, data.byteOffset, all.filter((byte) => byte !== 0).length]',
        pinned.data,
      );
      expect(seen).toEqual([PAGE, 0, 1000]);
      for (const array of neighbours) array[Symbol.dispose]();
    });

    rule('S365', 'the buffer has the bytes of the array, rounded up to whole pages', () => {
      const { device } = chapter;
      for (const [byteLength, size] of [
        [0, PAGE],
        [1, PAGE],
        [PAGE, PAGE],
        [PAGE + 1, 2 * PAGE],
        [3 * 2 ** 20 + 5, 3 * 2 ** 20 + PAGE],
      ] as const) {
        using pinned = device.pinned(byteLength, 'u8');
        expect([pinned.data.byteOffset, pinned.data.byteLength, pinned.data.buffer.byteLength]).toEqual([0, byteLength, size]);
      }
    });

    rule('S365', 'copies access exactly the bytes of their array, with many arrays at once', async () => {
      const { device } = chapter;
      using source = device.from(Uint32Array.from({ length: 1000 }, (_, n) => n));
      const pinned = Array.from({ length: 500 }, (_, n) => device.pinned(n, 'u32'));
      await Promise.all(pinned.map((array, n) => device.stream.copy(array, source, { count: n }).done));
      for (const [n, { data }] of pinned.entries()) {
        expect(data.every((value, at) => value === at)).toBe(true);
        expect(new Uint32Array(data.buffer, 4 * n).every((value) => value === 0)).toBe(true);
      }
      using back = device.zeros(499, 'u32');
      await device.stream.copy(back, pinned[499]!).done;
      expect(await back.read()).toEqual(Uint32Array.from({ length: 499 }, (_, n) => n));
      for (const array of pinned) array[Symbol.dispose]();
    });

    rule('S366', 'the buffer of a disposed array is reused only after all its uses', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(5000, 'u8');
      await device.synchronize();
      const first = device.pinned(5000, 'u8');
      first.data.fill(7);
      const { buffer } = first.data;
      {
        await using latch = await hold(target, stream);
        const copied = stream.copy(x, first);
        first[Symbol.dispose]();
        using second = device.pinned(5000, 'u8');
        expect(second.data.buffer).not.toBe(buffer);
        second.data.fill(9);
        latch.open();
        await copied.done;
      }
      expect((await x.read()).every((value) => value === 7)).toBe(true);
      // Now it is free. The bytes behind the new array's data are 0.
      const again = Array.from({ length: 2 }, () => device.pinned(4097, 'u8'));
      const reused = again.find(({ data }) => data.buffer === buffer);
      expect(reused).toBeDefined();
      expect(new Uint8Array(buffer, 4097).every((value) => value === 0)).toBe(true);
      for (const array of again) array[Symbol.dispose]();
      await stream.close();
    });

    rule('S366', '20,000 small pinned arrays exist at once, each with a separate buffer', async () => {
      const { device } = chapter;
      const pinned = Array.from({ length: 20_000 }, () => device.pinned(1, 'u32'));
      pinned.forEach(({ data }, n) => (data[0] = n));
      expect(new Set(pinned.map(({ data }) => data.buffer)).size).toBe(20_000);
      // Buffers in the arena, and buffers with separate registrations.
      for (const at of [0, 16_000, 19_999]) {
        using x = device.from(pinned[at]!);
        expect(await x.read()).toEqual(Uint32Array.of(at));
      }
      expect(pinned.every(({ data }, n) => data[0] === n)).toBe(true);
      for (const array of pinned) array[Symbol.dispose]();
      await device.synchronize();
    });
  });
});

/** Runs a statement in another thread with `data` in scope; resolves with what it stored in `result`. */
function inWorker(statement: string, data: HostArray): Promise<unknown> {
  const code = `const { parentPort } = require('node:worker_threads'); parentPort.once('message', (data) => { let result; ${statement}; parentPort.postMessage(result); });`;
  return new Promise((resolve, reject) => {
    const worker = new Worker(code, { eval: true });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.postMessage(data);
  });
}

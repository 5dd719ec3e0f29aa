// Chapter 9: the memory of lanes, which the arrays of the next item take over.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { BoundsError, createLanes, i32, overlap, StateError, type Device, type DeviceArray, type Lane } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { write } from '../../support/kernels.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

const LENGTH = 1000;
/** What names the memory. To read `nativePointer` would give the address out. */
const handleOf = (array: DeviceArray): number => (array as unknown as { readonly storage: { readonly handle: number } }).storage.handle;

/** Runs the items one after another on one lane. */
async function onOneLane<R>(device: Device, count: number, stage: (n: number, lane: Lane) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for await (const result of overlap(device, Array(count).keys(), { depth: 1 }, stage)) results.push(result);
  return results;
}

defineChapter((target) => {
  describe('9 memory of lanes', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const used = async (): Promise<number> => {
      await chapter.device.synchronize();
      return (await chapter.device.pool.stats()).usedBytes;
    };

    rule('S950', 'the arrays of an item take over the memory of the item before it, if they have its sizes', async () => {
      const kept: { readonly x: DeviceArray<'i32'>; readonly view: DeviceArray<'i32'>; readonly buffer: ArrayBufferLike }[] = [];
      const handles = await onOneLane(chapter.device, 4, async (n, lane) => {
        const [x, a] = [lane.empty(n === 3 ? LENGTH + 1 : LENGTH, i32), lane.pinned(LENGTH, i32)];
        a.data.fill(n);
        kept.push({ x, view: x.subarray(1, 3), buffer: a.data.buffer });
        lane.stream.copy(x, a, { count: LENGTH });
        await lane.stream.copy(a, x, { count: LENGTH }).done;
        expect(new Set(a.data)).toEqual(new Set([n]));
        for (const { x: earlier, view } of kept.slice(0, -1)) {
          expect([earlier.isDisposed, view.isDisposed]).toEqual([true, true]);
          expect(thrownBy(() => lane.stream.fill(view, 9))).toBeInstanceOf(StateError);
        }
        return handleOf(x);
      });
      expect(new Set(handles.slice(0, 3)).size).toBe(1);
      expect(new Set(kept.map(({ buffer }) => buffer)).size).toBe(1);
    });

    rule('S950', 'memory that an operation may still use, or that something outside refers to, is not taken over', async () => {
      const { device } = chapter;
      const gate = device.createStream();
      await using latch = await hold(target, gate);
      let isOpen = false;
      const uses: ((x: DeviceArray<'i32'>, lane: Lane) => unknown)[] = [
        // The stage does not await it.
        (x) => gate.fill(x, 1),
        (x) => x.nativePointer,
        (x) => x.share(),
      ];
      const handles = await onOneLane(device, 2 * uses.length, async (n, lane) => {
        const x = lane.zeros(LENGTH, i32);
        expect(await x.item(LENGTH - 1)).toBe(0);
        if (n % 2 === 0) uses[n / 2]!(x, lane);
        else if (!isOpen) {
          isOpen = true;
          latch.open();
        }
        return handleOf(x);
      });
      for (let n = 0; n < handles.length; n += 2) expect(handles[n + 1], `use ${n / 2}`).not.toBe(handles[n]);
      await gate.close();
    });

    rule('S950', 'an item gets no memory that a failed operation of an earlier item has poisoned', async () => {
      const run = overlap(chapter.device, Array(12).keys(), { depth: 2, onError: 'skip' }, async (n, lane) => {
        const x = lane.empty(LENGTH, i32);
        if (n % 3 === 1) {
          // The stage fails, or succeeds all the same.
          const error = await rejectionOf(lane.stream.launch(write, LENGTH, { x, value: n, by: LENGTH }).done);
          expect(error).toBeInstanceOf(BoundsError);
          if (n % 2 === 0) throw error;
          return 7;
        }
        // It reads the array: what was poisoned would fail it.
        lane.stream.launch(write, LENGTH, { x, value: 7, by: 0 });
        return await x.item(0);
      });
      const results: number[] = [];
      for await (const result of run) results.push(result);
      expect(results).toEqual(Array(10).fill(7));
      expect(run.report().skipped).toBe(2);
    });

    rule('S950', 'the memory is freed at the end of the run, for items of other sizes, and when lanes are free for some time', async () => {
      const before = await used();
      const sizes = [1, 3, 2, 3, 1].map((mib) => mib * 2 ** 18);
      await onOneLane(chapter.device, sizes.length, async (n, lane) => {
        const x = lane.zeros(sizes[n]!);
        expect(await x.item(0)).toBe(0);
        expect(await used()).toBeLessThan(before + sizes[n]! * 4 + 2 ** 20);
      });
      expect(await used()).toBe(before);

      await using lanes = createLanes(chapter.device, { depth: 2, maxQueue: 4 }, async (value: number, lane) =>
        lane.full(2 ** 20, value).item(3),
      );
      expect(await Promise.all([1, 2, 3].map((value) => lanes.run(value)))).toEqual([1, 2, 3]);
      for (let tries = 0; tries < 400 && (await used()) > before; tries++) await sleep(5);
      expect(await used()).toBe(before);
      expect(await lanes.run(4)).toBe(4);
    });
  });
});

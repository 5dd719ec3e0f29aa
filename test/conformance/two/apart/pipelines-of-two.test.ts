// Chapter 9: `overlap` and services on two devices.
import { lastValueFrom, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import { ArgumentError, createLanes, i32, inout, kernel, overlap, type Device } from 'millrace';
import { defineChapter } from '../../../support/chapter.js';
import { manualStage, watch } from '../../../support/manual-stage.js';
import { randomFrom } from '../../../support/random-text.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { eventually, thrownBy, turn } from '../../../support/wait.js';

const plusOne = kernel('plus_one', { x: inout(i32) }, ({ x }, { i }) => {
  x[i] = x[i]! + 1;
});

defineChapter((target) => {
  describe('9 overlap on two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);
    const both = (): readonly Device[] => [chapter.device, chapter.other];

    rule('S916', 'the device with the fewest occupied lanes takes the next item', async () => {
      const manual = manualStage<number>();
      const items = Array.from({ length: 12 }, (_, n) => n);
      const run = overlap(both(), items, { depth: 2, ordered: false }, manual.stage);
      const seen = watch(run);
      await eventually('all lanes are occupied', () => manual.calls.length === 4);
      expect(run.report().depth).toBe(4);
      const deviceOf = (call: number): Device => manual.calls[call]!.lane.device;
      const countOf = (device: Device): number => [0, 1, 2, 3].filter((call) => deviceOf(call) === device).length;
      expect(both().map(countOf)).toEqual([2, 2]);
      // Of the first two, each device took one.
      expect(deviceOf(0)).not.toBe(deviceOf(1));
      expect(new Set(manual.calls.map(({ lane }) => lane.index)).size).toBe(4);
      const random = randomFrom(3);
      const pending = [0, 1, 2, 3];
      while (seen.values.length < items.length) {
        const [call] = pending.splice(random(pending.length), 1);
        const isLast = manual.calls.length === items.length;
        const at = manual.calls.length;
        manual.calls[call!]!.resolve(manual.calls[call!]!.item);
        if (isLast) await eventually('the result is there', () => seen.values.length === items.length - pending.length);
        else {
          await eventually('the next item runs', () => manual.calls.length === at + 1);
          // Only that device has a free lane, hence the fewest occupied ones.
          expect(deviceOf(at)).toBe(deviceOf(call!));
          pending.push(at);
        }
      }
      await eventually('the run ends', () => seen.end() === 'complete');
    });

    rule('S916', 'results keep the order of the source, and each device does some of the work', async () => {
      const used = new Set<Device>();
      const run = overlap(both(), Array.from({ length: 40 }, (_, n) => n).values(), { depth: 2 }, async (item, lane) => {
        used.add(lane.device);
        expect(lane.stream.device).toBe(lane.device);
        for (let n = (item * 5) % 7; n > 0; n--) await turn();
        const x = lane.full(16, item, i32);
        lane.stream.launch(plusOne, 16, { x });
        return (await x.read())[15];
      });
      expect(await lastValueFrom(run.pipe(toArray()))).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
      expect(used.size).toBe(2);
    });

    rule('S916', 'a service spreads its requests over the devices', async () => {
      const manual = manualStage<number>();
      await using lanes = createLanes(both(), { depth: 1, maxQueue: 0 }, manual.stage);
      const results = [lanes.run(0), lanes.run(1)];
      await eventually('both run', () => manual.calls.length === 2);
      expect(new Set(manual.calls.map(({ lane }) => lane.device))).toEqual(new Set(both()));
      for (const call of manual.calls) call.resolve(call.item);
      expect(await Promise.all(results)).toEqual([0, 1]);
    });

    rule('S916', 'the call refuses streams of another device', () => {
      const { device, other } = chapter;
      const stage = (item: number): Promise<number> => Promise.resolve(item);
      const error = thrownBy(() => overlap(device, [1], { streams: [other.defaultStream] }, stage));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error).toMatchObject({ argument: 'streams' });
    });
  });
});

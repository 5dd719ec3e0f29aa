// Chapter 10, rules about two devices: copies in captures.
import { describe, expect } from 'vitest';
import type { Device, DeviceArray, PinnedArray } from 'millrace';
import { defineChapter } from '../../../support/chapter.js';
import { reasonOf } from '../../../support/graphs.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';

defineChapter((target) => {
  describe('10 graphs: copies of two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S1033', 'every copy that is possible outside of a capture is possible in one, strided or not, between any memories', async () => {
      const { device, other } = chapter;
      type End = { readonly view: DeviceArray<'u32'> | PinnedArray<'u32'>; readonly whole: DeviceArray<'u32'> | PinnedArray<'u32'> };
      const grid = (d: Device): DeviceArray<'u32'> =>
        d.from(
          Uint32Array.from({ length: 12 }, (_, n) => n),
          { shape: [3, 4] },
        );
      const ends: Record<string, (d: Device) => End> = {
        column: (d) => ((whole) => ({ view: whole.view(undefined, 1), whole }))(grid(d)),
        reversed: (d) => ((whole) => ({ view: whole.view([undefined, undefined, -1], 2), whole }))(grid(d)),
        flat: (d) => ((whole) => ({ view: whole, whole }))(d.from(Uint32Array.of(100, 101, 102))),
        pinned: (d) => ((whole) => (whole.data.set([200, 201, 202]), { view: whole, whole }))(d.pinned(3, 'u32')),
      };
      const read = async ({ whole }: End): Promise<string> => ('data' in whole ? whole.data : await whole.read()).join();
      for (const ordering of ['tracked', 'explicit', 'checked'] as const) {
        for (const owner of [device, other]) {
          const stream = device.createStream({ ordering });
          for (const [to, makeTo] of Object.entries(ends)) {
            for (const [from, makeFrom] of Object.entries(ends)) {
              const [dst, expected, src] = [makeTo(owner), makeTo(owner), makeFrom(device)];
              await Promise.all([device.synchronize(), other.synchronize()]);
              await stream.copy(expected.view as never, src.view as never).done;
              const graph = stream.capture((s) => void s.copy(dst.view as never, src.view as never), { strict: true });
              stream.launch(graph);
              await stream.launch(graph).done;
              expect(await read(dst), `${ordering}: to ${to} of ${owner.info.id} from ${from}`).toBe(await read(expected));
              await graph.close();
              for (const { whole } of [dst, expected, src]) whole[Symbol.dispose]();
            }
          }
          await stream.close();
        }
      }
      using x = device.zeros([3, 4], 'u32');
      using pinned = device.pinned(3, 'u32');
      using far = other.zeros(3, 'u32');
      using go = device.full(1, 1, 'i32');
      const stream = device.createStream();
      const branch = stream.capture((s) => {
        s.fill(x, 7);
        s.captureIf(go, (body) => {
          body.copy(pinned, x.view(undefined, 2));
          expect(reasonOf(() => body.copy(far, x.view(undefined, 2)))).toBe('unsupported-node');
        });
      });
      await stream.launch(branch).done;
      expect([...pinned.data]).toEqual([7, 7, 7]);
      await branch.close();
      await stream.close();
    });
  });
});

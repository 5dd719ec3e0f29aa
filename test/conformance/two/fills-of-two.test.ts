// Chapter 3, ninth part: fills of arrays of another device.
import { describe, expect } from 'vitest';
import { StateError, StreamHazardError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { proveOrder } from '../../support/order.js';
import { chapterDevices, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const COUNT = 1024;

defineChapter((target) => {
  describe('3 memory: fills of arrays of another device', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S359', 'a stream fills arrays of another device, whatever was granted', async () => {
      const { device, other } = chapter;
      using there = other.zeros([8, 8], 'i32');
      await device.stream.fill(there, 3).done;
      device.stream.fill(there.view(undefined, [0, 8, 2]), 4);
      const rows = Array.from({ length: 64 }, (_, n) => (n % 2 === 0 ? 4 : 3));
      expect([...(await there.read())]).toEqual(rows);
      other.stream.fill(there, 5);
      const last = device.stream.fill(there.view(0), 6);
      await last.done;
      expect([...(await there.read())]).toEqual(Array.from({ length: 64 }, (_, n) => (n < 8 ? 6 : 5)));
      using none = other.zeros(0);
      await device.stream.fill(none, 1).done;
    });

    rule('S359', 'such a fill comes after the earlier work of the stream and before the later work', async () => {
      const { device, other } = chapter;
      using there = other.zeros(COUNT, 'i32');
      const [one, two] = [device.createStream(), other.createStream()];
      await proveOrder(target, true, one, two, () => {
        one.fill(there, 1);
        two.fill(there, 2);
      });
      expect((await there.read()).every((value) => value === 2)).toBe(true);
      const checked = device.createStream({ ordering: 'checked' });
      two.fill(there, 3);
      expect(thrownBy(() => checked.fill(there, 4))).toBeInstanceOf(StreamHazardError);
      checked.waitStream(two);
      checked.fill(there, 4);
      two.waitStream(checked);
      expect((await there.read()).every((value) => value === 4)).toBe(true);
      await Promise.all([one.close(), two.close(), checked.close()]);
    });

    rule('S359', 'a disposed array of another device is refused', () => {
      const { device, other } = chapter;
      using there = other.zeros(4, 'i32');
      there[Symbol.dispose]();
      expect(thrownBy(() => device.stream.fill(there, 1))).toBeInstanceOf(StateError);
    });
  });
});

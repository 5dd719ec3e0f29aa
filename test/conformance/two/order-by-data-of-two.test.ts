// Chapter 1: `ordering` on two devices.
import { describe, expect } from 'vitest';
import { StreamHazardError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevices, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('1 streams: order by data between two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S122', 'a checked copy between devices needs waits for both arrays', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream({ ordering: 'checked' }), other.createStream({ ordering: 'checked' })];
      const source = here.full(4, 3, 'u32');
      const destination = there.zeros(4, 'u32');
      hazardOf(() => there.copy(destination, source));
      there.waitStream(here);
      there.copy(destination, source);
      hazardOf(() => here.fill(source, 1));
      here.waitStream(there);
      here.fill(source, 1);
      expect([...(await destination.read())]).toEqual([3, 3, 3, 3]);
      for (const array of [source, destination]) array[Symbol.dispose]();
      await Promise.all([here.close(), there.close()]);
    });
  });
});

function hazardOf(call: () => unknown): StreamHazardError {
  const error = thrownBy(call);
  expect(error).toBeInstanceOf(StreamHazardError);
  return error as StreamHazardError;
}

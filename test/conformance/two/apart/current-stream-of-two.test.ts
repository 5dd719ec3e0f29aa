// Chapter 1: the current streams of two devices.
import { describe, expect } from 'vitest';
import { ArgumentError, getDefaultDevice, type Stream } from 'millrace';
import { defineChapter } from '../../../support/chapter.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { proveOrder } from '../../../support/order.js';
import { thrownBy } from '../../../support/wait.js';

defineChapter((target) => {
  describe('1 streams: the current ones of two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S115', 'a run does not change the current stream of the other device', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      here.run(() => {
        expect(labels(device.stream, other.stream)).toEqual(labels(here, other.defaultStream));
        expect(getDefaultDevice()).toBe(device);
        there.run(() => {
          expect(labels(device.stream, other.stream)).toEqual(labels(here, there));
          expect(getDefaultDevice()).toBe(other);
        });
        expect(labels(device.stream, other.stream)).toEqual(labels(here, other.defaultStream));
        expect(getDefaultDevice()).toBe(device);
      });
      await Promise.all([here.close(), there.close()]);
    });

    rule('S115', 'entering a stream of the other device waits for its current stream only', async () => {
      const { device, other } = chapter;
      const outer = device.createStream({ ordering: 'explicit' });
      const [past, inner] = [other.createStream({ ordering: 'explicit' }), other.createStream({ ordering: 'explicit' })];
      const enter = (): void => past.run(() => outer.run(() => inner.run(() => undefined), { syncEnter: false }), { syncEnter: false });
      await proveOrder(target, false, outer, inner, enter);
      await proveOrder(target, true, past, inner, enter);
      await Promise.all([outer.close(), past.close(), inner.close()]);
    });

    rule('S116', 'a stream of another device is refused as the current one', () => {
      const { device, other } = chapter;
      const error = thrownBy(() => device.setCurrentStream(other.defaultStream));
      expect(error).toBeInstanceOf(ArgumentError);
      for (const { info } of [device, other]) expect(error.message).toContain(info.id);
      expect(device.stream).toBe(device.defaultStream);
    });
  });
});

/** Labels stand for streams in comparisons, because vitest takes seconds to print a difference of such large objects. */
function labels(...streams: readonly Stream[]): string[] {
  return streams.map((stream) => `${stream.label} of ${stream.device.info.id}`);
}

// Chapter 8: the functions of the module with two devices.
import { setTimeout as later } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { ArgumentError, copy, fill, getDefaultDevice, getStream, launch, type Place, setDefaultDevice, withDevice, zeros } from 'millrace';
import { defineChapter } from '../../../support/chapter.js';
import { mixKernel } from '../../../support/kernels.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { thrownBy } from '../../../support/wait.js';

defineChapter((target) => {
  describe('8 lifecycle: functions of the module with two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S820', 'copy and fill work on the device of their arrays, and a stream of another device is refused', async () => {
      const { device, other } = chapter;
      using x = other.zeros(4);
      expect(getDefaultDevice()).toBe(device);
      fill(x, 3);
      using y = zeros(4, 'f32', { device: other });
      copy(y, x);
      expect([...(await y.read())]).toEqual([3, 3, 3, 3]);
      using z = zeros(4, undefined, { stream: other.defaultStream });
      expect(z.device).toBe(other);
      const places: readonly [unknown, string][] = [
        [{ device, stream: other.defaultStream }, 'belongs to device'],
        [{ stream: {} }, 'is not a stream'],
        [{ on: 1 }, "There is no option 'on'; the options are device, stream."],
        [5, 'are not an object'],
      ];
      for (const [place, message] of places) {
        const error = thrownBy(() => zeros(4, 'f32', place as Place));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toContain(message);
      }
      expect(thrownBy(() => launch(mixKernel, 4, { x: x as never, k: 1 })).message).toContain(other.info.id);
    });

    rule('S821', 'device.run and withDevice make a device the default one for a function and its awaits', async () => {
      const { device, other } = chapter;
      const boom = new Error('boom');
      expect(withDevice(other.info.id, () => 42)).toBe(42);
      const seen = await withDevice(other, async () => {
        await later(1);
        using x = zeros(2);
        const inside = [getDefaultDevice(), x.device, device.run(() => getDefaultDevice()), getStream(device).device];
        other.createStream().run(() => expect(getDefaultDevice()).toBe(other));
        setDefaultDevice(device.info.id);
        return [...inside, getDefaultDevice()];
      });
      expect(seen.map(({ info }) => info.id)).toEqual([other, other, device, device, device].map(({ info }) => info.id));
      expect(getDefaultDevice()).toBe(device);
      const fail = (): never => {
        throw boom;
      };
      expect(thrownBy(() => other.run(fail))).toBe(boom);
      expect(getDefaultDevice()).toBe(device);
      // A run of a device changes no current stream, and a stream that is set inside is in effect until its end.
      const stream = device.createStream();
      stream.run(() => {
        device.run(() => {
          expect(getStream()).toBe(stream);
          device.setCurrentStream(device.defaultStream);
          expect(getStream()).toBe(device.defaultStream);
        });
        expect(getStream()).toBe(stream);
      });
      expect(thrownBy(() => device.run(5 as never))).toBeInstanceOf(ArgumentError);
      await stream.close();
    });
  });
});

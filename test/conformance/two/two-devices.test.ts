// The rules about two devices: events, waits, and arrays of another device.
import { describe, expect } from 'vitest';
import { ArgumentError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevices, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('2 events, between two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S317', 'a batch refuses arrays of another device by their pair', async () => {
      const { device, other } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4);
      using far = other.zeros(4);
      using farPinned = other.pinned(4);
      using y = device.zeros(4);
      for (const [dst, src] of [
        [far, x],
        [x, far],
        [x, farPinned],
      ] as const) {
        const error = thrownBy(() =>
          stream.copyBatch([
            [y.subarray(0, 0), x.subarray(0, 0)],
            [dst, src],
          ]),
        );
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toContain('Pair 1');
        expect(error.message).toMatch(/memory of device \S+, and the stream belongs to/);
        expect(error.message).toContain('copy');
      }
      await stream.close();
    });

    rule('S208', 'a stream waits for an event of another device, without blocking the host', async () => {
      const { device, other } = chapter;
      const source = device.createStream();
      const sink = other.createStream();
      await using latch = await hold(target, source);
      sink.waitEvent(source.record());
      const behind = sink.record();
      await other.createStream().record().done;
      expect(behind.isComplete).toBe(false);
      latch.open();
      await behind.done;
      await Promise.all([source.close(), sink.close()]);
    });

    rule('S208', 'waitStream works between devices, both ways, many times', async () => {
      const { device, other } = chapter;
      const here = device.createStream();
      const there = other.createStream();
      using x = here.zeros(1, 'u32');
      using y = there.zeros(1, 'u32');
      for (let k = 0; k < 500; k++) {
        here.launch(mixKernel, { grid: 1, block: 1 }, { x, k });
        there.waitStream(here);
        there.launch(mixKernel, { grid: 1, block: 1 }, { x: y, k });
        here.waitStream(there);
      }
      await Promise.all([here.synchronize(), there.synchronize()]);
      expect((await x.read())[0]).toBe(mixed(0, 0, 500));
      expect((await y.read())[0]).toBe(mixed(0, 0, 500));
      await Promise.all([here.close(), there.close()]);
    });

    rule('S208', 'a wait for a record that is still parked on its own device keeps the order', async () => {
      const { device, other } = chapter;
      const source = device.createStream({ ordering: 'explicit' });
      const gate = device.createStream({ ordering: 'explicit' });
      const sink = other.createStream();
      using x = source.zeros(1, 'i32');
      await using latch = await hold(target, gate);
      source.waitStream(gate);
      // More records than a stream may have issued at once, so the last ones are certainly not issued.
      for (let n = 0; n < 2000; n++) source.fill(x, n);
      const last = source.record();
      sink.waitEvent(last);
      const behind = sink.record();
      await other.createStream().record().done;
      expect(behind.isComplete).toBe(false);
      latch.open();
      await Promise.all([behind.done, last.done]);
      expect((await x.read())[0]).toBe(1999);
      await Promise.all([source.close(), gate.close(), sink.close()]);
    });

    rule('S209', 'an event is recorded on streams of its own device only', () => {
      const { device, other } = chapter;
      using event = device.createEvent();
      const stream = other.createStream();
      const error = thrownBy(() => stream.record(event));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain(device.info.id);
      expect(error.message).toContain(other.info.id);
    });

    rule('S602', 'an array of another device without a grant is refused at the call, and the stream continues', async () => {
      const { device, other } = chapter;
      const stream = device.createStream();
      using foreign = other.zeros(4, 'u32');
      using own = stream.zeros(4, 'u32');
      const error = thrownBy(() => stream.launch(mixKernel, { grid: 1, block: 1 }, { x: foreign, k: 1 }));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain(other.info.id);
      await stream.fill(own, 6).done;
      expect([...(await own.read())]).toEqual([6, 6, 6, 6]);
      await stream.close();
    });
  });
});

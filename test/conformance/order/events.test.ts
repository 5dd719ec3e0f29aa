// Chapter 2: events are points in streams.
import { describe, expect } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { isSettled } from '../../support/wait.js';

defineChapter((target) => {
  describe('2 events', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S201', 'an event is complete when everything before its record has finished', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      await using latch = await hold(target, stream);
      const event = stream.record();
      expect(event.isComplete).toBe(false);
      expect(await isSettled(event.done)).toBe(false);
      latch.open();
      await event.done;
      expect(latch.operation.isComplete).toBe(true);
      expect(event.isComplete).toBe(true);
      await stream.close();
    });

    rule('S202', 'waitEvent makes later work of another stream wait, and not the host', async () => {
      const { device } = chapter;
      const before = device.createStream({ ordering: 'explicit' });
      const after = device.createStream({ ordering: 'explicit' });
      using x = before.zeros(1, 'i32');
      after.waitStream(before);
      await using latch = await hold(target, before);
      before.fill(x, 1);
      const earlier = after.record();
      after.waitEvent(before.record());
      const late = after.fill(x, 2);
      await earlier.done;
      expect(late.isComplete).toBe(false);
      latch.open();
      expect([...(await x.read())]).toEqual([2]);
      await late.done;
      await Promise.all([before.close(), after.close()]);
    });

    rule('S203', 'waitStream waits for earlier work of the other stream, not for later work', async () => {
      const { device } = chapter;
      const other = device.createStream({ ordering: 'explicit' });
      const waiting = device.createStream({ ordering: 'explicit' });
      const first = other.zeros(1, 'i32');
      waiting.waitStream(other);
      await using latch = await hold(target, other);
      await waiting.record().done;
      waiting.waitStream(other);
      const behind = waiting.record();
      await device.createStream().record().done;
      expect(behind.isComplete).toBe(false);
      latch.open();
      await behind.done;
      first[Symbol.dispose]();
      await Promise.all([other.close(), waiting.close()]);
    });

    rule('S204', 'an event that was never recorded is complete, and waiting for it does nothing', async () => {
      const { device } = chapter;
      using event = device.createEvent();
      const stream = device.createStream();
      expect(event.isComplete).toBe(true);
      await event.done;
      await event.synchronize({ timeoutMs: 1000 });
      stream.waitEvent(event);
      await stream.synchronize({ timeoutMs: 10_000 });
      await stream.close();
    });

    rule('S205', 'recording again moves the event; promises and waits taken before keep their point', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const waiting = device.createStream();
      using event = device.createEvent();
      stream.record(event);
      const firstDone = event.done;
      waiting.waitEvent(event);
      await using latch = await hold(target, stream);
      stream.record(event);
      const secondDone = event.done;
      await firstDone;
      await waiting.synchronize();
      expect(event.isComplete).toBe(false);
      expect(await isSettled(secondDone)).toBe(false);
      latch.open();
      await secondDone;
      expect(event.isComplete).toBe(true);
      await Promise.all([stream.close(), waiting.close()]);
    });

    rule('S205', 'one event may move from stream to stream', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 5 }, () => device.createStream());
      using event = device.createEvent();
      for (const stream of streams) {
        expect(stream.record(event)).toBe(event);
        await event.done;
        expect(event.isComplete).toBe(true);
      }
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S206', 'event.done settles while slower work is queued behind it', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      stream.fill(x, 4);
      const event = stream.record();
      await using latch = await hold(target, stream);
      await event.done;
      expect(event.isComplete).toBe(true);
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      await stream.close();
    });

    rule('S207', 'waiting for an event of the same stream does nothing', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      stream.waitEvent(stream.record());
      stream.waitStream(stream);
      await stream.synchronize({ timeoutMs: 10_000 });
      await stream.close();
    });
  });
});

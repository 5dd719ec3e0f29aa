// Chapter 1: streams, and what orders operations.
import { describe, expect } from 'vitest';
import { ArgumentError, type Device, type DeviceEvent, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold, turnsOf } from '../../support/latch.js';
import { mixed, mixKernel, rendezvousKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('1 streams', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S101', 'operations of one stream take effect in the order of the calls', async () => {
      using x = chapter.device.zeros(1, 'u32');
      const stream = chapter.device.createStream();
      for (let k = 0; k < 2000; k++) stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k });
      expect((await x.read())[0]).toBe(mixed(0, 0, 2000));
      await stream.close();
    });

    rule('S101', 'fills, copies and launches of one stream are ordered among each other', async () => {
      const { device } = chapter;
      using x = device.zeros(1, 'u32');
      using y = device.zeros(1, 'u32');
      const stream = device.createStream();
      for (let round = 0; round < 200; round++) {
        stream.fill(x, round);
        stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k: 7 });
        stream.copy(y, x);
        stream.fill(x, 0);
      }
      expect((await y.read())[0]).toBe(mixed(199, 7, 1));
      expect((await x.read())[0]).toBe(0);
      await stream.close();
    });

    rule('S102', 'two streams have no order without a wait: the stream used later finishes first', async () => {
      const { device } = chapter;
      const first = device.createStream({ ordering: 'explicit' });
      const second = device.createStream({ ordering: 'explicit' });
      using x = first.zeros(4, 'i32');
      second.waitStream(first);
      await using latch = await hold(target, first);
      const early = first.fill(x, 1);
      const late = second.fill(x, 2);
      await late.done;
      expect(early.isComplete).toBe(false);
      latch.open();
      await early.done;
      expect([...(await x.read())]).toEqual([1, 1, 1, 1]);
      await Promise.all([first.close(), second.close()]);
    });

    rule('S103', 'two streams of one device run at the same time: their kernels wait for each other', async () => {
      const { device } = chapter;
      await device.compile(rendezvousKernel);
      using flags = device.zeros(3, 'i32');
      await device.synchronize();
      const [a, b] = explicitPair(device);
      const turns = turnsOf(target);
      a.launch(rendezvousKernel, { grid: 1, block: 1 }, { flags, mine: 0, turns });
      b.launch(rendezvousKernel, { grid: 1, block: 1 }, { flags, mine: 1, turns });
      await Promise.all([a.synchronize(), b.synchronize()]);
      expect([...(await flags.read())]).toEqual([1, 1, 0]);
      await Promise.all([a.close(), b.close()]);
    });

    rule('S104', 'a tracked array orders streams: a reader waits for the writer', async () => {
      const { device } = chapter;
      const writer = device.createStream();
      const reader = device.createStream();
      using x = device.zeros(4, 'i32');
      using y = device.zeros(4, 'i32');
      await using latch = await hold(target, writer);
      writer.fill(x, 5);
      const copy = reader.copy(y, x);
      await device.createStream().record().done;
      expect(copy.isComplete).toBe(false);
      latch.open();
      expect([...(await y.read())]).toEqual([5, 5, 5, 5]);
      await Promise.all([writer.close(), reader.close()]);
    });

    rule('S104', 'a writer waits for the readers, and readers do not wait for each other', async () => {
      const { device } = chapter;
      const slow = device.createStream();
      const fast = device.createStream();
      using x = device.full(4, 3, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      await device.synchronize();
      await using latch = await hold(target, slow);
      slow.copy(y, x);
      await fast.copy(z, x).done;
      const overwrite = fast.fill(x, 9);
      await device.createStream().record().done;
      expect(overwrite.isComplete).toBe(false);
      latch.open();
      expect([...(await x.read())]).toEqual([9, 9, 9, 9]);
      expect([...(await y.read())]).toEqual([3, 3, 3, 3]);
      await Promise.all([slow.close(), fast.close()]);
    });

    rule('S105', 'a waiting stream occupies no thread: 64 streams in a ring of waits', async () => {
      const { device } = chapter;
      const ring = Array.from({ length: 64 }, () => device.createStream({ ordering: 'explicit' }));
      using x = device.zeros(1, 'u32');
      await device.compile(mixKernel);
      await device.synchronize();
      let previous: DeviceEvent | undefined;
      for (let round = 0; round < 4; round++) {
        for (const [at, stream] of ring.entries()) {
          if (previous !== undefined) stream.waitEvent(previous);
          stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k: round * ring.length + at });
          previous = stream.record();
        }
      }
      await device.synchronize();
      expect((await x.read())[0]).toBe(mixed(0, 0, 4 * ring.length));
      await Promise.all(ring.map((stream) => stream.close()));
    });

    rule('S105', `${target.supports.waitingStreams} streams that wait for a held stream leave the others running`, async () => {
      const { device } = chapter;
      const held = device.createStream();
      await using latch = await hold(target, held);
      const gate = held.record();
      const waiting = Array.from({ length: target.supports.waitingStreams }, () => device.createStream());
      for (const stream of waiting) stream.waitEvent(gate);
      using x = device.zeros(1, 'i32');
      await device.createStream({ ordering: 'explicit' }).record().done;
      expect(waiting.some((stream) => stream.isComplete)).toBe(false);
      expect((await x.read())[0]).toBe(0);
      latch.open();
      await Promise.all(waiting.map((stream) => stream.close()));
      await held.close();
    });

    rule('S107', 'priority is a hint: integers are clamped, anything else is refused', async () => {
      const { device } = chapter;
      const high = device.createStream({ priority: -9 });
      expect(device.createStream().priority).toBe(0);
      expect(high.priority).toBeGreaterThanOrEqual(-1);
      expect(high.priority).toBeLessThanOrEqual(0);
      const error = thrownBy(() => device.createStream({ priority: 0.5 }));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain('0.5');
      await high.close();
    });

    rule('S108', 'a new stream is complete, and pending counts its operations', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      expect(stream.isComplete).toBe(true);
      await using latch = await hold(target, stream);
      expect(stream.isComplete).toBe(false);
      expect(stream.pending).toBeGreaterThan(0);
      latch.open();
      await stream.synchronize();
      expect(stream.isComplete).toBe(true);
      expect(stream.pending).toBe(0);
      await stream.close();
    });
  });
});

function explicitPair(device: Device): readonly [Stream, Stream] {
  return [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
}

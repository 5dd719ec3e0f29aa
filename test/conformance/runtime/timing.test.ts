// Chapter 2, second part: timing events, interprocess events, and many events.
import { describe, expect } from 'vitest';
import { ArgumentError, elapsed, EventTimingError, StateError, UnsupportedError, type Device, type DeviceEvent } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { runChild } from '../../support/child.js';
import { meetAndSpinKernel } from '../../support/kernels.js';
import { hold } from '../../support/latch.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { collectGarbage, isSettled, rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('2 events: time, processes, numbers', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S210', 'elapsed waits for both events and is about as long as the work between them', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      await device.compile(meetAndSpinKernel);
      using flags = device.full(3, 1, 'i32');
      using out = device.zeros(2, 'u32');
      const work = (): unknown =>
        stream.launch(meetAndSpinKernel, { grid: 1, block: 1 }, { flags, mine: 0, turns: 1, steps: 10_000_000, out });
      stream.waitStream(device.stream);
      work();
      await stream.synchronize();
      const hostStart = performance.now();
      const start = stream.record({ timing: true });
      work();
      const middle = stream.record({ timing: true });
      work();
      const end = stream.record({ timing: true });
      const total = await elapsed(start, end);
      const host = performance.now() - hostStart;
      const first = await elapsed(start, middle);
      const second = await elapsed(middle, end);
      expect(total).toBeGreaterThan(0.5);
      expect(total).toBeLessThanOrEqual(host + 1);
      expect(first).toBeGreaterThan(0);
      expect(second).toBeGreaterThan(0);
      expect(first + second).toBeCloseTo(total, 1);
      for (const event of [start, middle, end]) event[Symbol.dispose]();
      await stream.close();
    });

    rule('S210', 'elapsed does not count later work of another stream', async () => {
      const { device } = chapter;
      const [timed, other] = [device.createStream(), device.createStream()];
      using start = timed.record({ timing: true });
      using end = timed.record({ timing: true });
      await using latch = await hold(target, other);
      other.waitEvent(end);
      const measured = await elapsed(start, end);
      expect(latch.operation.isComplete).toBe(false);
      expect(measured).toBeGreaterThanOrEqual(0);
      latch.open();
      await Promise.all([timed.close(), other.close()]);
    });

    rule('S210', 'the result is negative if the end came first, and zero for one event', async () => {
      const { device } = chapter;
      using start = device.stream.record({ timing: true });
      using x = device.zeros(1 << 20);
      for (let n = 0; n < 20; n++) device.stream.fill(x, n);
      using end = device.stream.record({ timing: true });
      const forth = await elapsed(start, end);
      expect(forth).toBeGreaterThan(0);
      expect(await elapsed(end, start)).toBeCloseTo(-forth, 6);
      expect(await elapsed(start, start)).toBe(0);
    });

    rule('S210', 'elapsed can be aborted and timed out', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using start = stream.record({ timing: true });
      await using latch = await hold(target, stream);
      using end = stream.record({ timing: true });
      expect(await rejectionOf(elapsed(start, end, { timeoutMs: 20 }))).toMatchObject({ timeoutMs: 20 });
      const waiting = elapsed(start, end);
      expect(await isSettled(waiting)).toBe(false);
      latch.open();
      expect(await waiting).toBeGreaterThan(0);
      await stream.close();
    });

    rule('S211', 'each error has its reason', async () => {
      const { device } = chapter;
      using timed = device.stream.record({ timing: true });
      using plain = device.stream.record();
      using never = device.createEvent({ timing: true });
      expect([timed.timing, plain.timing, never.timing]).toEqual([true, false, true]);
      const rows = [
        [timed, plain, 'timing-off'],
        [plain, timed, 'timing-off'],
        [timed, never, 'never-recorded'],
        [never, timed, 'never-recorded'],
      ] as const;
      for (const [start, end, reason] of rows) {
        const error = await rejectionOf((async () => elapsed(start, end))());
        expect(error).toBeInstanceOf(EventTimingError);
        expect(error).toBeInstanceOf(StateError);
        expect((error as EventTimingError).reason).toBe(reason);
      }
      expect(await rejectionOf((async () => elapsed(timed, {} as never))())).toBeInstanceOf(ArgumentError);
      expect(await elapsed(timed, timed)).toBe(0);
    });

    rule('S211', 'a missing time is reported at once, also while the stream is held', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      await using latch = await hold(target, stream);
      using timed = stream.record({ timing: true });
      using never = device.createEvent({ timing: true });
      expect(await rejectionOf((async () => elapsed(timed, never))())).toBeInstanceOf(EventTimingError);
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      await stream.close();
    });

    rule('S212', 'recording again while elapsed waits does not affect it', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using start = stream.record({ timing: true });
      using end = device.createEvent({ timing: true });
      stream.record(end);
      const first = await elapsed(start, end);
      await using latch = await hold(target, stream);
      stream.record(end);
      const waiting = elapsed(start, end);
      stream.record(start);
      stream.record(end);
      latch.open();
      expect(await waiting).toBeGreaterThan(first);
      await stream.close();
    });

    rule('S212', 'an event can be measured after any number of records', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using start = device.createEvent({ timing: true });
      using end = device.createEvent({ timing: true });
      for (let n = 0; n < 3000; n++) {
        stream.record(start);
        stream.record(end);
        if (n % 500 === 0) expect(await elapsed(start, end)).toBeGreaterThanOrEqual(0);
      }
      expect(await elapsed(start, end)).toBeGreaterThanOrEqual(0);
      await stream.close();
    });

    rule('S213', 'timing and interprocess exclude each other', () => {
      const { device } = chapter;
      for (const call of [
        () => device.createEvent({ timing: true, interprocess: true }),
        () => device.stream.record({ timing: true, interprocess: true }),
      ]) {
        const error = thrownBy(call);
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toMatch(/timing/);
        expect(error.message).toMatch(/interprocess/);
      }
    });

    rule('S214', '10,000 events at once', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 10 }, () => device.createStream());
      await using latch = await hold(target, streams[0]!);
      for (const stream of streams) stream.waitStream(streams[0]!);
      using x = device.zeros(1);
      const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
      const events: DeviceEvent[] = [];
      for (let n = 0; n < 10_000; n++) {
        const stream = streams[n % 10]!;
        if (n % 100 < 10) stream.waitStream(stream);
        events.push(stream.record());
      }
      let settled = 0;
      const waits = events.map((event) => event.done.then(() => settled++));
      await witness({ device });
      expect(settled).toBe(0);
      expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length - timers).toBeLessThan(10);
      latch.open();
      await Promise.all(waits);
      expect(settled).toBe(10_000);
      expect(events.every((event) => event.isComplete)).toBe(true);
      expect((await x.read())[0]).toBe(0);
      collectGarbage();
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S215', 'operations of a stream with timing report deviceMs, others do not', async () => {
      const { device } = chapter;
      const [timed, plain] = [device.createStream({ timing: true }), device.createStream()];
      using x = timed.zeros(1 << 20);
      plain.waitStream(timed);
      const long = timed.fill(x, 1);
      expect((await long.done).deviceMs).toBeGreaterThan(0);
      expect((await timed.launch(meetAndSpinKernel, { grid: 1, block: 1 }, await spin(device)).done).deviceMs).toBeGreaterThan(0.1);
      expect((await plain.fill(x, 1).done).deviceMs).toBeUndefined();
      await Promise.all([timed.close(), plain.close()]);
    });

    rule('S216', 'a device without interprocess objects throws UnsupportedError before anything is submitted', async () => {
      const { device } = chapter;
      if (target.supports.interprocess || device.info.backend === 'cuda') return;
      const attempts = [
        () => device.createEvent({ interprocess: true }),
        () => device.stream.record({ interprocess: true }),
        () => device.openIpcEvent(new Uint8Array(64)),
        () => device.interprocess(4, 'f32'),
        () => device.openIpcArray(new Uint8Array(64), 4, 'f32'),
      ];
      for (const attempt of attempts) {
        const error = await rejectionOf((async () => attempt())());
        expect(error, String(attempt)).toBeInstanceOf(UnsupportedError);
        expect((error as UnsupportedError).capability).toBe('interprocess');
      }
      await device.stream.fill(device.zeros(1), 1).done;
    });

    rule(
      'S216',
      'another process waits for an event and reads the array',
      async () => {
        const { device } = chapter;
        using event = device.createEvent({ interprocess: true });
        using x = device.interprocess(4, 'i32');
        device.stream.record(event);
        await event.done;
        const [eventHandle, arrayHandle] = [await event.ipcHandle(), await x.ipcHandle()];
        expect([eventHandle.length, arrayHandle.length]).toEqual([64, 64]);
        device.stream.fill(x, 4321);
        device.stream.record(event);
        const child = await runChild(`import { openDevice } from 'millrace';
          const device = await openDevice(${JSON.stringify(target.spec)});
          const bytes = (text) => Uint8Array.from(Buffer.from(text, 'base64'));
          const event = await device.openIpcEvent(bytes(${JSON.stringify(Buffer.from(eventHandle).toString('base64'))}));
          const x = await device.openIpcArray(bytes(${JSON.stringify(Buffer.from(arrayHandle).toString('base64'))}), 4, 'i32');
          device.stream.waitEvent(event);
          await event.done;
          console.log(String(await x.read()));
          x[Symbol.dispose]();
          event[Symbol.dispose]();
          await device.close();`);
        expect([child.code, child.stdout.trim(), child.stderr]).toEqual([0, '4321,4321,4321,4321', '']);
      },
      { unless: !target.supports.interprocess && 'no other process reaches events and memory of this device' },
    );

    rule('S217', 'a disposed event is refused, and earlier waits continue', async () => {
      const { device } = chapter;
      const [stream, waiting] = [device.createStream(), device.createStream({ ordering: 'explicit' })];
      await using latch = await hold(target, stream);
      const event = stream.record();
      const { done } = event;
      waiting.waitEvent(event);
      const behind = waiting.record();
      event[Symbol.dispose]();
      event[Symbol.dispose]();
      for (const call of [() => stream.record(event), () => waiting.waitEvent(event)]) {
        expect(thrownBy(call)).toBeInstanceOf(StateError);
      }
      await witness(stream);
      expect(behind.isComplete).toBe(false);
      latch.open();
      await Promise.all([done, behind.done]);
      await Promise.all([stream.close(), waiting.close()]);
    });
  });
});

async function spin(device: Device) {
  const flags = device.full(3, 1, 'i32');
  const out = device.zeros(2, 'u32');
  await device.synchronize();
  return { flags, mine: 0, turns: 1, steps: 3_000_000, out } as const;
}

// Chapter 8: opening and closing devices and streams.
import { describe, expect } from 'vitest';
import { ArgumentError, DeviceLostError, listDevices, openDevice, StateError, UnavailableError, type DeviceSpec } from 'millrace';
import { hold } from '../support/latch.js';
import { mixed, mixKernel, unbuiltKernel } from '../support/kernels.js';
import { rulesOf, withDevice } from '../support/rule.js';
import type { Target } from '../support/target.js';
import { rejectionOf, thrownBy } from '../support/wait.js';

export function lifecycle(target: Target): void {
  describe('8 lifecycle', () => {
    const rule = rulesOf(target);

    rule('S801', 'a device says what it is, and is listed', async () => {
      await withDevice(target, {}, async (device) => {
        const { info } = device;
        expect(info.id).toMatch(/^(cpu|cpu:\d+|cuda:\d+)$/);
        expect(info.name.length).toBeGreaterThan(0);
        expect(info.totalMemoryBytes).toBeGreaterThan(1 << 20);
        expect(info.maxThreadsPerBlock).toBeGreaterThanOrEqual(256);
        expect(info.multiprocessors).toBeGreaterThanOrEqual(1);
        expect(device.state).toBe('open');
        const listed = await listDevices();
        expect(listed.map(({ id }) => id)).toContain(info.id);
      });
    });

    rule('S801', 'a name that is none is an ArgumentError, an absent device an UnavailableError with help', async () => {
      for (const spec of ['gpu', 'cpu:x', 'cuda:-1', 'cuda:1.5', ''] as DeviceSpec[]) {
        const error = await rejectionOf((async () => openDevice(spec))());
        expect(error, spec).toBeInstanceOf(ArgumentError);
        expect(error.message).toContain(`'${spec}'`);
      }
      for (const spec of ['cpu:4000', 'cuda:4000'] as const) {
        const error = await rejectionOf(openDevice(spec));
        expect(error).toBeInstanceOf(UnavailableError);
        expect(error.message).toContain(`'${spec}'`);
        expect((error as UnavailableError).help.length).toBeGreaterThan(0);
      }
    });

    rule('S802', 'opening the same device again gives the same Device, and the last close closes it', async () => {
      const first = await target.open();
      const [second, third] = await Promise.all([target.open(), openDevice(first.info.id)]);
      expect(second).toBe(first);
      expect(third).toBe(first);
      await first.close();
      await second.close();
      expect(first.state).toBe('open');
      using x = first.full(2, 4, 'i32');
      expect(await x.read()).toEqual(new Int32Array([4, 4]));
      x[Symbol.dispose]();
      await third.close();
      expect(first.state).toBe('closed');
      const reopened = await target.open();
      expect(reopened).not.toBe(first);
      await reopened.close();
    });

    rule('S802', 'options named by a later opener are those of the first, or a StateError', async () => {
      await withDevice(target, { ordering: 'explicit', maxPending: 1000 }, async (device) => {
        for (const other of [{ ordering: 'tracked' }, { maxPending: 999 }] as const) {
          expect(await rejectionOf(target.open(other))).toBeInstanceOf(StateError);
        }
        const again = await target.open({ ordering: 'explicit', maxPending: 1000 });
        expect(again).toBe(device);
        await again.close();
        expect(device.state).toBe('open');
      });
    });

    rule('S803', 'close drains: what was queued runs', async () => {
      const device = await target.open();
      const pinned = device.pinned(1, 'u32');
      const stream = device.createStream();
      const x = stream.zeros(1, 'u32');
      for (let k = 0; k < 500; k++) stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k });
      const copy = stream.copy(pinned, x);
      const done = copy.done;
      await device.close();
      await done;
      expect(pinned.data[0]).toBe(mixed(0, 0, 500));
      expect(device.state).toBe('closed');
    });

    rule('S804', 'closing twice is closing once', async () => {
      const device = await target.open();
      const stream = device.createStream();
      await Promise.all([stream.close(), stream.close()]);
      await stream.close();
      await Promise.all([device.close(), device.close()]);
      await device.close();
      expect(device.state).toBe('closed');
    });

    rule('S805', 'after close every call throws a StateError that names the device', async () => {
      const device = await target.open();
      const stream = device.createStream();
      const x = device.zeros(4, 'u32');
      const event = device.createEvent();
      const { defaultStream } = device;
      await device.close();
      const calls: readonly (() => unknown)[] = [
        () => device.zeros(4),
        () => device.createStream(),
        () => device.pinned(4),
        () => stream.fill(x, 1),
        () => defaultStream.fill(x, 1),
        () => stream.copy(x, new Uint32Array(4)),
        () => stream.launch(mixKernel, 1, { x, k: 1 }),
        () => stream.record(event),
        () => stream.waitStream(defaultStream),
      ];
      for (const call of calls) {
        const error = thrownBy(call);
        expect(error, String(call)).toBeInstanceOf(StateError);
        expect(error.message).toMatch(/closed/);
      }
      for (const wait of [() => x.read(), () => device.compile(mixKernel), () => device.synchronize()]) {
        expect(await rejectionOf((async () => wait())())).toBeInstanceOf(StateError);
      }
      x[Symbol.dispose]();
    });

    rule('S806', 'destroy does not drain: what is pending rejects with DeviceLostError', async () => {
      const device = await target.open();
      const stream = device.createStream();
      const x = stream.zeros(1, 'i32');
      await stream.synchronize();
      // Still being built when the device goes.
      const failed = rejectionOf(stream.launch(unbuiltKernel(), 1, { x }).done);
      const waiting = rejectionOf(stream.synchronize());
      const destroyed = device.destroy(new Error('enough'));
      expect(thrownBy(() => stream.fill(x, 2))).toBeInstanceOf(StateError);
      await destroyed;
      for (const error of await Promise.all([failed, waiting])) {
        expect(error).toBeInstanceOf(DeviceLostError);
        expect(error).toMatchObject({ reason: 'closed' });
      }
      expect(await device.lost).toBeInstanceOf(DeviceLostError);
      expect(device.signal.aborted).toBe(true);
      await device.close();
    });

    rule('S807', 'closing a stream drains it; then its calls throw and its place is free again', async () => {
      await withDevice(target, {}, async (device) => {
        using x = device.zeros(1, 'u32');
        const stream = device.createStream();
        for (let k = 0; k < 300; k++) stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k });
        await stream.close();
        expect((await x.read())[0]).toBe(mixed(0, 0, 300));
        const error = thrownBy(() => stream.fill(x, 1));
        expect(error).toBeInstanceOf(StateError);
        expect(error.message).toMatch(/closed/);
        for (let round = 0; round < 1000; round++) {
          const next = device.createStream();
          const fill = next.fill(x, round);
          await next.close();
          expect(fill.isComplete).toBe(true);
        }
        expect((await x.read())[0]).toBe(999);
      });
    });

    rule('S807', 'arrays outlive the stream that wrote them, also while it closes', async () => {
      await withDevice(target, {}, async (device) => {
        const stream = device.createStream();
        const arrays = Array.from({ length: 8 }, (_, n) => stream.full(1000, n, 'i32'));
        const closing = stream.close();
        const reads = arrays.map((array) => array.read());
        await Promise.resolve();
        for (const array of arrays) array[Symbol.dispose]();
        await closing;
        for (const [n, read] of reads.entries()) expect((await read).every((value) => value === n)).toBe(true);
      });
    });

    rule('S807', 'a closed stream may still be waited for', async () => {
      await withDevice(target, {}, async (device) => {
        const stream = device.createStream();
        const event = stream.record();
        await stream.close();
        const other = device.createStream();
        other.waitEvent(event);
        await other.synchronize({ timeoutMs: 10_000 });
        expect(event.isComplete).toBe(true);
        await event.done;
        await other.close();
      });
    });

    rule('S808', 'devices and streams close at the end of their block', async () => {
      let kept;
      {
        await using device = await target.open();
        await using stream = device.createStream();
        stream.record();
        kept = device;
      }
      expect(kept.state).toBe('closed');
    });

    rule('S810', 'inspect shows the streams and what is pending, without a call to the device', async () => {
      await withDevice(target, {}, async (device) => {
        const stream = device.createStream({ label: 'looked at' });
        await using latch = await hold(target, stream);
        const snapshot = device.inspect();
        expect(snapshot).toMatchObject({ device: device.info.id, state: 'open' });
        const seen = snapshot.streams.find((one) => one.stream.includes('looked at'));
        expect(seen?.pending).toBeGreaterThan(0);
        latch.open();
        await stream.close();
      });
    });
  });
}

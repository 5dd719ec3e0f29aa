// Chapter 8: opening and closing devices and streams.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  DeviceLostError,
  type DeviceSpec,
  elapsed,
  getDefaultDevice,
  listDevices,
  openDevice,
  setDefaultDevice,
  StateError,
  UnavailableError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel, unbuiltKernel } from '../../support/kernels.js';
import { IS_LONG } from '../../support/long.js';
import { rulesOf, withDevice } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('8 lifecycle', () => {
    const rule = rulesOf(target);

    rule('S801', 'a device has its info, and listDevices lists it', async () => {
      await withDevice(target, {}, async (device) => {
        const { info } = device;
        expect(info.id).toMatch(/^(cpu|cpu:\d+|cuda:\d+)$/);
        expect(info.name.length).toBeGreaterThan(0);
        expect(info.totalMemoryBytes).toBeGreaterThan(1 << 20);
        expect(info.maxThreadsPerBlock).toBeGreaterThanOrEqual(256);
        expect(info.multiprocessors).toBeGreaterThanOrEqual(1);
        expect(info.maxSharedBytes).toBeGreaterThanOrEqual(48 * 1024);
        expect(info.warpSize).toBe(32);
        expect(device.state).toBe('open');
        const listed = await listDevices();
        expect(listed.map(({ id }) => id)).toContain(info.id);
      });
    });

    rule('S801', 'an invalid device name is an ArgumentError, an absent device an UnavailableError with help', async () => {
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

    rule('S802', 'opening the same device again gives another Device of it, and the last close closes it', async () => {
      const first = await target.open();
      const [second, third] = await Promise.all([target.open(), openDevice(first.info.id)]);
      expect(new Set([first, second, third]).size).toBe(3);
      expect([first.isSameDevice(second), second.isSameDevice(third), first.isSameDevice({})]).toEqual([true, true, false]);
      await first.close();
      await second.close();
      expect([first.state, second.state, third.state]).toEqual(['closed', 'closed', 'open']);
      using x = third.full(2, 4, 'i32');
      expect(await x.read()).toEqual(new Int32Array([4, 4]));
      x[Symbol.dispose]();
      await third.close();
      expect(third.state).toBe('closed');
      const reopened = await target.open();
      expect(reopened.isSameDevice(third)).toBe(false);
      await reopened.close();
    });

    rule('S802', 'closing a Device twice closes no other Device', async () => {
      const other = await target.open();
      {
        await using device = await target.open();
        await device.close();
        await device.close({ timeoutMs: 1000 });
        await device.destroy();
      }
      expect(other.state).toBe('open');
      using x = other.full(2, 4, 'i32');
      expect(await x.read()).toEqual(new Int32Array([4, 4]));
      await other.close();
      expect(other.state).toBe('closed');
    });

    rule('S802', 'a closed Device refuses its calls while other Devices of it are open', async () => {
      await withDevice(target, {}, async (other) => {
        const device = await target.open();
        const { stream } = device;
        await device.close();
        const calls = [() => device.zeros(4), () => device.createStream(), () => device.createEvent(), () => device.pinned(4)];
        for (const call of [...calls, () => device.setCurrentStream(stream), () => setDefaultDevice(device)]) {
          const error = thrownBy(call);
          expect(error).toBeInstanceOf(StateError);
          expect(error.message).toContain(`This Device of ${device.info.id} is closed`);
        }
        expect(await rejectionOf(device.synchronize())).toBeInstanceOf(StateError);
        expect(await rejectionOf(device.compile())).toBeInstanceOf(StateError);
        expect(getDefaultDevice()).toBe(other);
      });
    });

    rule('S812', 'streams, arrays and events of a closed Device stay usable until the device closes', async () => {
      const other = await target.open();
      const device = await target.open();
      const stream = device.createStream({ label: 'first' });
      const start = stream.record({ timing: true });
      const x = stream.full(4, 1, 'i32');
      await device.close();
      const y = x.clone(stream);
      stream.fill(x, 2);
      expect([...(await x.read()), ...(await y.read())]).toEqual([2, 2, 2, 2, 1, 1, 1, 1]);
      expect(await elapsed(start, other.stream.record({ timing: true }))).toBeGreaterThanOrEqual(0);
      await other.close();
      expect(thrownBy(() => stream.fill(x, 3))).toBeInstanceOf(StateError);
    });

    rule('S812', 'the device of a stream, an array or an event is the Device through which it was made while that is open', async () => {
      await withDevice(target, {}, async (other) => {
        const device = await target.open();
        const stream = device.createStream();
        const made = [stream, stream.zeros(4), device.zeros(4), device.createEvent()];
        expect(made.map((each) => each.device === device)).toEqual([true, true, false, true]);
        expect(made.every((each) => each.device.isSameDevice(other))).toBe(true);
        await device.close();
        for (const each of made) expect(each.device).toBe(other);
      });
    });

    rule('S812', 'Devices of one device share streams, the current stream and arrays', async () => {
      await withDevice(target, {}, async (one) => {
        const two = await target.open();
        const stream = two.createStream();
        expect([one.defaultStream === two.defaultStream, one.stream === two.stream]).toEqual([true, true]);
        one.setCurrentStream(stream);
        expect(two.stream).toBe(stream);
        two.setCurrentStream(two.defaultStream);
        await stream.run(async () => expect(one.stream).toBe(stream));
        const x = one.full(4, 1, 'u32');
        const y = stream.empty(4, 'u32');
        stream.copy(y, x);
        stream.launch(mixKernel, { grid: 1, block: 1 }, { x: y, k: 5 });
        expect(await y.item(0)).toBe(mixed(1, 5, 1));
        const event = one.createEvent();
        stream.record(event);
        await event.done;
        await two.close();
      });
    });

    rule('S802', 'options of a later opening must equal those of the first, else it is a StateError', async () => {
      await withDevice(target, { ordering: 'explicit', maxPending: 1000 }, async (device) => {
        for (const other of [{ ordering: 'tracked' }, { maxPending: 999 }, { schedule: 'spin' }] as const) {
          expect(await rejectionOf(target.open(other))).toBeInstanceOf(StateError);
        }
        const again = await target.open({ ordering: 'explicit', maxPending: 1000 });
        expect(again.isSameDevice(device)).toBe(true);
        await again.close();
        expect(device.state).toBe('open');
      });
    });

    rule('S803', 'close drains: queued operations run', async () => {
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

    rule('S804', 'closing a second time does nothing', async () => {
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

    rule('S806', 'destroy does not drain: pending operations reject with DeviceLostError', async () => {
      const device = await target.open();
      const stream = device.createStream();
      const x = stream.zeros(1, 'i32');
      await stream.synchronize();
      // The kernel is still being built when the device is destroyed.
      const failed = rejectionOf(stream.launch(unbuiltKernel(), 1, { x }).done);
      const waiting = rejectionOf(stream.synchronize());
      const destroyed = device.destroy(new Error('enough'));
      const refusals = [() => stream.fill(x, 2), () => device.createStream(), () => device.zeros(1), () => device.stream.record()].map(
        (call) => thrownBy(call),
      );
      for (const error of refusals) {
        expect(error).toBeInstanceOf(DeviceLostError);
        expect(error).toMatchObject({ reason: 'closed', cause: { message: 'enough' } });
      }
      expect(await rejectionOf(x.read())).toMatchObject({ reason: 'closed', cause: { message: 'enough' } });
      await destroyed;
      for (const error of await Promise.all([failed, waiting])) {
        expect(error).toBeInstanceOf(DeviceLostError);
        expect(error).toMatchObject({ reason: 'closed' });
      }
      expect(await device.lost).toBeInstanceOf(DeviceLostError);
      expect(device.signal.aborted).toBe(true);
      await device.close();
    });

    rule('S807', 'closing a stream drains it; then its calls throw and its slot is reused', async () => {
      await withDevice(target, {}, async (device) => {
        using x = device.zeros(1, 'u32');
        const stream = device.createStream();
        for (let k = 0; k < 300; k++) stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k });
        await stream.close();
        expect((await x.read())[0]).toBe(mixed(0, 0, 300));
        const error = thrownBy(() => stream.fill(x, 1));
        expect(error).toBeInstanceOf(StateError);
        expect(error.message).toMatch(/closed/);
        const rounds = IS_LONG ? 1000 : 250;
        for (let round = 0; round < rounds; round++) {
          const next = device.createStream();
          const fill = next.fill(x, round);
          await next.close();
          expect(fill.isComplete).toBe(true);
        }
        expect((await x.read())[0]).toBe(rounds - 1);
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
});

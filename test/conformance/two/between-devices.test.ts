// Chapter 3, fifth part: memory of two devices. S610 and chapter 8, where two devices are needed.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  getDefaultDevice,
  recordEvent,
  setDefaultDevice,
  synchronize,
  UnsupportedError,
  waitEvent,
  waitStream,
  type Device,
  type DType,
  type HostOf,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { witness } from '../../support/order.js';
import { chapterDevices, rulesOf } from '../../support/rule.js';
import { modelOf, transposed, viewOf } from '../../support/strided.js';
import { counted, DTYPES } from '../../support/values.js';
import { isSettled, rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('3 memory: between two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    for (const dtype of DTYPES) {
      rule('S333', `${dtype} there and back, on streams of either device`, async () => {
        const { device, other } = chapter;
        const source = counted(dtype, 60) as HostOf<ArrayBuffer>[DType];
        using here = device.from(source as never, { dtype });
        using there = other.zeros(60, dtype);
        using back = device.zeros(60, dtype);
        for (const [away, home] of [
          [device, other],
          [other, device],
        ] as const) {
          away.stream.copy(there as never, here as never);
          home.stream.copy(back as never, there as never);
          expect([...((await back.read()) as Iterable<number | bigint>)]).toEqual([...(source as Iterable<number | bigint>)]);
          other.stream.fill(there, (dtype === 'bool' ? false : dtype.endsWith('64') && dtype !== 'f64' ? 0n : 0) as never);
        }
      });
    }

    rule('S333', 'offsets and counts as within one device', async () => {
      const { device, other } = chapter;
      using here = device.from(Int32Array.from({ length: 10 }, (_, n) => n));
      using there = other.zeros(10, 'i32');
      other.stream.copy(there, here, { srcOffset: 6, dstOffset: 1 });
      device.stream.copy(there, here, { srcOffset: 1, dstOffset: 7, count: 2 });
      device.stream.copy(there, here, { count: 0 });
      expect([...(await there.read())]).toEqual([0, 6, 7, 8, 9, 0, 0, 1, 2, 0]);
      expect(thrownBy(() => other.stream.copy(there, here, { srcOffset: 4, dstOffset: 5 }))).toBeInstanceOf(ArgumentError);
    });

    rule('S333', 'views of either side, gathered and scattered', async () => {
      const { device, other } = chapter;
      using here = device.from(
        Int32Array.from({ length: 60 }, (_, n) => n),
        { shape: [3, 4, 5] },
      );
      using there = other.zeros([5, 4, 3], 'i32');
      const turned = here.transpose();
      const reversed = there.view([undefined, undefined, -1]);
      for (const stream of [device.stream, other.stream]) {
        stream.copy(there, turned);
        expect([...(await there.read())]).toEqual(transposed(modelOf([3, 4, 5])).at);
        stream.copy(reversed, turned);
        expect([...(await reversed.read())]).toEqual(transposed(modelOf([3, 4, 5])).at);
        using flat = other.zeros([3, 4, 5], 'i32');
        stream.copy(flat.transpose(), turned);
        expect([...(await flat.read())]).toEqual(modelOf([3, 4, 5]).at);
      }
      using part = other.zeros([2, 2], 'i32');
      const cut = [undefined, 2].map((stop) => [0, stop, 2] as const);
      const model = viewOf(modelOf([3, 4, 5]), cut[0], [1, 3], -1);
      other.stream.copy(part, here.view(cut[0], [1, 3], -1));
      expect([...(await part.read())]).toEqual(model.at);
    });

    rule('S333', 'pinned memory of one device serves copies of the other', async () => {
      const { device, other } = chapter;
      using pinned = device.pinned(1000, 'i32');
      pinned.data.fill(44);
      using there = other.zeros(1000, 'i32');
      other.stream.copy(there, pinned);
      expect((await there.read()).every((value) => value === 44)).toBe(true);
      other.stream.fill(there, 45);
      await device.stream.copy(pinned, there).done;
      expect(pinned.data.every((value) => value === 45)).toBe(true);
    });

    rule('S333', 'a stream may copy between two arrays of the other device', async () => {
      const { device, other } = chapter;
      using source = other.from(Int32Array.from({ length: 8 }, (_, n) => n));
      using contiguous = other.zeros(8, 'i32');
      using strided = other.zeros(16, 'i32');
      const stream = device.createStream();
      stream.copy(contiguous, source);
      stream.copy(strided.view([undefined, undefined, 2]), source);
      const last = stream.record();
      await last.done;
      expect([...(await contiguous.read())]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect([...(await strided.view([undefined, undefined, 2]).read())]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      await stream.close();
    });

    rule('S334', 'both arrays may be disposed right after the call', async () => {
      const { device, other } = chapter;
      const stream = other.createStream();
      using keep = other.zeros(1 << 14, 'u32');
      await other.synchronize();
      await using latch = await hold(target, stream);
      const source = device.full(1 << 14, 0xfeed, 'u32');
      stream.copy(keep, source);
      source[Symbol.dispose]();
      const thrown = other.zeros(1 << 14, 'u32');
      stream.copy(thrown, keep);
      thrown[Symbol.dispose]();
      const others = Array.from({ length: 6 }, (_, n) => [device.full(1 << 14, n, 'u32'), other.full(1 << 14, n, 'u32')]).flat();
      // Streams that are not held continue and could overwrite too early.
      await Promise.all(others.map((array) => array.read()));
      latch.open();
      expect((await keep.read()).every((value) => value === 0xfeed)).toBe(true);
      for (const array of others) array[Symbol.dispose]();
      await stream.close();
    });

    rule('S334', 'strided arrays may be disposed too, and their temporaries are freed', async () => {
      const { device, other } = chapter;
      const { usedBytes: hereBefore } = await device.pool.stats();
      for (let n = 0; n < 20; n++) {
        const source = device.full([64, 128], n, 'i32');
        using destination = other.zeros([128, 64], 'i32');
        other.stream.copy(destination, source.transpose());
        source[Symbol.dispose]();
        if (n % 5 === 0) expect((await destination.read()).every((value) => value === n)).toBe(true);
      }
      await Promise.all([device.synchronize(), other.synchronize()]);
      const [here, there] = [await device.pool.stats(), await other.pool.stats()];
      expect([here.stagingBytes, there.stagingBytes]).toEqual([0, 0]);
      expect(here.usedBytes).toBeLessThanOrEqual(hereBefore);
    });

    rule('S335', 'a copy waits for the writer on the other device, and its readers wait for the copy', async () => {
      const { device, other } = chapter;
      const [writer, copier, reader] = [device.createStream(), other.createStream(), device.createStream()];
      using source = device.zeros(4, 'i32');
      using middle = other.zeros(4, 'i32');
      using back = device.zeros(4, 'i32');
      await Promise.all([device.synchronize(), other.synchronize()]);
      await using latch = await hold(target, writer);
      writer.fill(source, 5);
      const copy = copier.copy(middle, source);
      const returned = reader.copy(back, middle);
      const overwrite = reader.fill(source, 6);
      await Promise.all([witness(writer), witness(copier)]);
      expect([copy.isComplete, returned.isComplete, overwrite.isComplete]).toEqual([false, false, false]);
      latch.open();
      expect([[...(await middle.read())], [...(await back.read())], [...(await source.read())]]).toEqual([
        [5, 5, 5, 5],
        [5, 5, 5, 5],
        [6, 6, 6, 6],
      ]);
      await Promise.all([writer.close(), copier.close(), reader.close()]);
    });

    rule('S335', 'an array is copied round between devices many times', async () => {
      const { device, other } = chapter;
      using here = device.zeros(16, 'i32');
      using there = other.zeros(16, 'i32');
      for (let n = 1; n <= 200; n++) {
        device.stream.fill(here.subarray(n % 16, (n % 16) + 1), n);
        other.stream.copy(there, here);
        device.stream.copy(here, there);
      }
      const expected = Array.from({ length: 16 }, (_, at) => {
        let last = 0;
        for (let n = 1; n <= 200; n++) if (n % 16 === at) last = n;
        return last;
      });
      expect([...(await here.read())]).toEqual(expected);
    });

    rule('S361', 'without access, canGrant is false, grant is refused, and revoke does nothing', async () => {
      const { device, other } = chapter;
      for (const what of ['memory', 'pool'] as const) {
        if (await device.peers.canGrant(other, what)) continue;
        expect(await device.peers.isGranted(other, what)).toBe(false);
        const error = await rejectionOf(device.peers.grant(other, what));
        expect(error).toBeInstanceOf(UnsupportedError);
        for (const { info } of [device, other]) expect(error.message).toContain(info.id);
        await device.peers.revoke(other, what);
        expect(await device.peers.isGranted(other, what)).toBe(false);
      }
      if (device.info.backend !== other.info.backend) expect(await device.peers.canGrant(other)).toBe(false);
    });

    rule('S362', 'the two switches are independent, and each works in one direction', async () => {
      const { device, other } = chapter;
      if (!(await device.peers.canGrant(other, 'memory')) || !(await device.peers.canGrant(other, 'pool'))) return;
      const states = async (): Promise<boolean[]> => [
        await device.peers.isGranted(other, 'memory'),
        await device.peers.isGranted(other, 'pool'),
        await other.peers.isGranted(device, 'memory'),
        await other.peers.isGranted(device, 'pool'),
      ];
      for (const what of ['memory', 'pool'] as const) {
        await device.peers.revoke(other, what);
        await other.peers.revoke(device, what);
      }
      expect(await states()).toEqual([false, false, false, false]);
      await device.peers.grant(other, 'memory');
      expect(await states()).toEqual([true, false, false, false]);
      await other.peers.grant(device, 'pool');
      expect(await states()).toEqual([true, false, false, true]);
      await device.peers.grant(other, 'memory');
      await device.peers.revoke(other, 'memory');
      await other.peers.revoke(device, 'pool');
      expect(await states()).toEqual([false, false, false, false]);
    });

    rule('S363', 'copies give the same bytes with and without access', async () => {
      const { device, other } = chapter;
      const check = async (value: number): Promise<void> => {
        using here = device.full(1 << 16, value, 'u32');
        using there = other.zeros(1 << 16, 'u32');
        other.stream.copy(there, here);
        expect((await there.read()).every((seen) => seen === value)).toBe(true);
      };
      await check(1);
      for (const what of ['memory', 'pool'] as const) {
        if (!(await device.peers.canGrant(other, what))) continue;
        await device.peers.grant(other, what);
        await check(2);
        await device.peers.revoke(other, what);
        await check(3);
      }
    });

    const misuses: readonly (readonly [string, (here: Device, there: Device) => unknown])[] = [
      ['an event on a stream of another device', (here, there) => there.stream.record(here.createEvent())],
      ['a current stream of another device', (here, there) => here.setCurrentStream(there.defaultStream)],
      ['a copy that does not fit', (here, there) => here.stream.copy(there.zeros(2), here.zeros(3))],
      ['a copy of another element type', (here, there) => here.stream.copy(there.zeros(2, 'f32'), here.zeros(2, 'i32') as never)],
      ['a strided copy of another shape', (here, there) => here.stream.copy(there.zeros([2, 3]), here.zeros([2, 3]).transpose())],
    ];
    for (const [title, call] of misuses) {
      rule('S610', `${title} is refused, and both devices go on`, async () => {
        const { device, other } = chapter;
        const error = thrownBy(() => call(device, other));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toHaveProperty('code', expect.stringMatching(/^ERR_MILLRACE_/));
        for (const one of [device, other]) {
          using x = one.full(2, 4, 'i32');
          expect([...(await x.read())]).toEqual([4, 4]);
        }
      });
    }

    rule('S809', 'synchronize waits for all devices', async () => {
      const { device, other } = chapter;
      for (const one of [device, other]) {
        const stream = one.createStream();
        await using latch = await hold(target, stream);
        const waiting = synchronize();
        expect(await isSettled(waiting)).toBe(false);
        latch.open();
        await waiting;
        expect(stream.isComplete).toBe(true);
        await stream.close();
      }
    });

    rule('S809', 'the default device is the one opened first, unless setDefaultDevice named another', () => {
      const { device, other } = chapter;
      expect(getDefaultDevice()).toBe(device);
      try {
        setDefaultDevice(other);
        expect(getDefaultDevice()).toBe(other);
        device.stream.run(() => {
          expect(getDefaultDevice()).toBe(device);
          setDefaultDevice(other);
          expect(getDefaultDevice()).toBe(other);
        });
        expect(getDefaultDevice()).toBe(other);
      } finally {
        setDefaultDevice(device);
      }
      expect(thrownBy(() => setDefaultDevice({} as never))).toBeInstanceOf(ArgumentError);
      expect(getDefaultDevice()).toBe(device);
    });

    rule('S809', "the module's functions work on the current stream of the default device", async () => {
      const { device, other } = chapter;
      const stream = other.createStream({ ordering: 'explicit' });
      const source = device.createStream({ ordering: 'explicit' });
      await using latch = await hold(target, source);
      const event = source.record();
      const seen = stream.run(
        () => {
          const before = recordEvent();
          waitEvent(event);
          waitStream(source);
          const after = other.createEvent();
          expect(recordEvent(after)).toBe(after);
          return { before, after };
        },
        { syncEnter: false },
      );
      expect([seen.before.device.info.id, seen.after.device.info.id]).toEqual([other.info.id, other.info.id]);
      await seen.before.done;
      await witness(stream);
      expect(seen.after.isComplete).toBe(false);
      latch.open();
      await seen.after.done;
      await Promise.all([stream.close(), source.close()]);
    });
  });
});

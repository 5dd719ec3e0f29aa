// Chapter 3, second half: copies, in every direction, and what they keep of the caller's memory.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, expect } from 'vitest';
import { ArgumentError, type CopyOptions, type DeviceArray, type DType, type HostArray, type HostOf, type PinnedArray } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const MIB = 1 << 20;

const SOURCES: { readonly [D in DType]: () => HostArray } = {
  bool: () => new Uint8Array([1, 0, 1, 1, 0]),
  i8: () => new Int8Array([-128, -1, 0, 1, 127]),
  u8: () => new Uint8Array([0, 1, 128, 254, 255]),
  i16: () => new Int16Array([-32768, -1, 0, 1, 32767]),
  u16: () => new Uint16Array([0, 1, 32768, 65534, 65535]),
  i32: () => new Int32Array([-2147483648, -1, 0, 1, 2147483647]),
  u32: () => new Uint32Array([0, 1, 2147483648, 4294967294, 4294967295]),
  i64: () => new BigInt64Array([-(2n ** 63n), -1n, 0n, 1n, 2n ** 63n - 1n]),
  u64: () => new BigUint64Array([0n, 1n, 2n ** 63n, 2n ** 64n - 2n, 2n ** 64n - 1n]),
  f16: () => new Uint16Array([0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00]),
  bf16: () => new Uint16Array([0x3f80, 0xc000, 0x7f7f, 0x0001, 0x7f80]),
  f32: () => new Float32Array([-1.5, 0, Math.fround(0.1), 3e38, Infinity]),
  f64: () => new Float64Array([-1.5, 0, 0.1, 1e308, -Infinity]),
};

defineChapter((target) => {
  describe('3 memory: copies', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S310', 'the getters of a subclass of a typed array are not called', async () => {
      const { device } = chapter;
      let calls = 0;
      const arrays: Disposable[] = [];
      const called = (): never => {
        calls++;
        for (const array of arrays) array[Symbol.dispose]();
        throw new Error('A getter was called.');
      };
      class Other extends Float32Array {}
      for (const name of ['length', 'byteLength', 'byteOffset', 'buffer', Symbol.iterator, 'set', 'subarray', 'slice'])
        Object.defineProperty(Other.prototype, name, { get: called });
      const make = (): Float32Array<SharedArrayBuffer> => {
        const made = new Float32Array(new SharedArrayBuffer(64), 16, 4);
        made.set([1, 2, 3, 4]);
        return Object.setPrototypeOf(made, Other.prototype) as typeof made;
      };
      using x = device.from(make());
      using y = device.from(make(), { shape: [2, 2] });
      using z = device.zeros(8);
      using pinned = device.pin(make());
      arrays.push(x, y, z, pinned);
      device.stream.copy(z, make(), { dstOffset: 4 });
      device.stream.copy(z.view([0, 8, 2]), make());
      device.stream.copy(pinned, make());
      const [read, copied] = [make().fill(0), make().fill(0)];
      await device.stream.copy(copied, y.transpose()).done;
      expect(await x.read({ into: read })).toBe(read);
      expect([0, 1, 2, 3].map((n) => [read[n], copied[n]])).toEqual([
        [1, 1],
        [2, 3],
        [3, 2],
        [4, 4],
      ]);
      expect([...(await z.read())]).toEqual([1, 0, 2, 0, 3, 2, 4, 4]);
      expect(thrownBy(() => device.stream.copy(z.subarray(0, 3), make())).message).toContain('[4]');
      expect(calls).toBe(0);
    });

    for (const dtype of Object.keys(SOURCES) as DType[]) {
      rule('S310', `${dtype}: host to device, device to device, to pinned and back to the host`, async () => {
        const { device } = chapter;
        const { stream } = device;
        const source = SOURCES[dtype]();
        using a: DeviceArray = device.empty(source.length, dtype);
        using b: DeviceArray = device.empty(source.length, dtype);
        using c: DeviceArray = device.empty(source.length, dtype);
        using p: PinnedArray = device.pinned(source.length, dtype);
        using q: PinnedArray = device.pinned(source.length, dtype);
        stream.copy(a, source);
        stream.copy(b, a);
        stream.copy(p, b);
        stream.copy(q, p);
        stream.copy(c, q);
        const back = zeroed(SOURCES[dtype]()) as HostOf[typeof dtype];
        await stream.copy(back, c).done;
        expect(back).toEqual(source);
        expect([...(q.data as Iterable<number | bigint>)]).toEqual([...(source as Iterable<number | bigint>)]);
      });
    }

    const rows: readonly (readonly [title: string, options: CopyOptions, expected: readonly number[]])[] = [
      ['an omitted count is the rest after srcOffset', { srcOffset: 2 }, [3, 4, 5, 0, 0, 0, 0, 0]],
      ['dstOffset leaves what is before and behind', { dstOffset: 3 }, [0, 0, 0, 1, 2, 3, 4, 5]],
      ['count limits the copy', { srcOffset: 1, dstOffset: 6, count: 2 }, [0, 0, 0, 0, 0, 0, 2, 3]],
      ['count 0 copies nothing', { count: 0 }, [0, 0, 0, 0, 0, 0, 0, 0]],
      ['count 0 at the very end is in range', { srcOffset: 5, dstOffset: 8, count: 0 }, [0, 0, 0, 0, 0, 0, 0, 0]],
    ];
    for (const [title, options, expected] of rows) {
      rule('S311', `${title}, in all four directions`, async () => {
        const { device } = chapter;
        const { stream } = device;
        const host = new Int32Array([1, 2, 3, 4, 5]);
        using src = device.from(host);
        using pinnedSrc = device.pinned(5, 'i32');
        pinnedSrc.data.set(host);
        for (const from of [host, src, pinnedSrc] as const) {
          using dst = device.zeros(8, 'i32');
          await stream.copy(dst, from, options).done;
          expect([...(await dst.read())]).toEqual(expected);
        }
        for (const from of [src, pinnedSrc] as const) {
          using pinned = device.pinned(8, 'i32');
          pinned.data.fill(0);
          await stream.copy(pinned, from, options).done;
          expect([...pinned.data]).toEqual(expected);
          const plain = new Int32Array(8);
          await stream.copy(plain, from, options).done;
          expect([...plain]).toEqual(expected);
        }
      });
    }

    rule('S312', 'a range that does not fit, or is not valid, is refused with its limit', async () => {
      const { device } = chapter;
      using dst = device.zeros(8, 'i32');
      using src = device.zeros(5, 'i32');
      const bad: readonly (readonly [CopyOptions, string])[] = [
        [{ dstOffset: 4 }, '8'],
        [{ srcOffset: 6 }, '5'],
        [{ count: 6 }, '5'],
        [{ count: -1 }, '-1'],
        [{ srcOffset: 0.5 }, '0.5'],
        [{ dstOffset: Number.NaN }, 'NaN'],
      ];
      for (const [options, shown] of bad) {
        const error = thrownBy(() => device.stream.copy(dst, src, options));
        expect(error, JSON.stringify(options)).toBeInstanceOf(ArgumentError);
        expect(error.message).toContain(shown);
      }
      await device.stream.copy(dst, src).done;
    });

    rule('S313', 'copies do not convert: another element type is refused', () => {
      const { device } = chapter;
      using dst = device.zeros(4, 'f32');
      using src = device.zeros(4, 'i32');
      const error = thrownBy(() => device.stream.copy(dst, src as unknown as DeviceArray<'f32'>));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain('f32');
      expect(error.message).toContain('i32');
    });

    for (const [size, length] of [
      ['small', 1000],
      ['larger than a snapshot block', (12 * MIB) / 4],
    ] as const) {
      rule('S314', `a ${size} upload keeps the bytes of the call: changing the array later has no effect`, async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using x = device.zeros(length, 'u32');
        await using latch = await hold(target, stream);
        const data = new Uint32Array(length).fill(41);
        stream.copy(x, data);
        data.fill(13);
        latch.open();
        expect((await x.read()).every((value) => value === 41)).toBe(true);
        await stream.close();
      });

      rule('S314', `a ${size} upload survives a transfer of its buffer`, async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using x = device.zeros(length, 'u32');
        await using latch = await hold(target, stream);
        const data = new Uint32Array(length).fill(42);
        stream.copy(x, data);
        structuredClone(data.buffer, { transfer: [data.buffer] });
        expect(data.length).toBe(0);
        latch.open();
        expect((await x.read()).every((value) => value === 42)).toBe(true);
        await stream.close();
      });
    }

    rule('S315', 'a large copy behind a held stream does not block the caller', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.empty(64 * MIB, 'u8');
      await using latch = await hold(target, stream);
      stream.copy(x, new Uint8Array(64 * MIB).fill(9));
      const read = x.read();
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      const values = await read;
      expect([values[0], values[32 * MIB], values[64 * MIB - 1]]).toEqual([9, 9, 9]);
      await stream.close();
    });

    rule('S315', 'large copies and reads do not block the event loop', async () => {
      const { device } = chapter;
      using x = device.empty(64 * MIB, 'u8');
      const data = new Uint8Array(64 * MIB).fill(1);
      await device.synchronize();
      const delay = monitorEventLoopDelay({ resolution: 1 });
      delay.enable();
      for (let round = 0; round < 4; round++) {
        data[round] = round + 2;
        await device.stream.copy(x, data).done;
        expect((await x.read())[round]).toBe(round + 2);
      }
      delay.disable();
      // The call may take the time of the snapshot. It must not take the time of the transfer in addition.
      expect(delay.max / 1e6).toBeLessThan(400);
    });
  });
});

function zeroed(array: HostArray): HostArray {
  new Uint8Array(array.buffer).fill(0);
  return array;
}

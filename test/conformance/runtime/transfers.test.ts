// Chapter 3, fourth part: pinning existing memory, uploads without a snapshot, reads that become visible only when they are
// complete, the pool, and access between devices.
import { describe, expect } from 'vitest';
import { ArgumentError, OutOfMemoryError, StateError, UpstreamError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, isSettled, rejectionOf, thrownBy } from '../../support/wait.js';

const MIB = 1 << 20;

defineChapter((target) => {
  describe('3 memory: page-locking, transfers, pools', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S308', 'pin page-locks existing memory in place and does not free it', async () => {
      const { device } = chapter;
      const data = new Int32Array(new SharedArrayBuffer(4 * 5000), 400, 4000);
      data.fill(11);
      const pinned = device.pin(data);
      expect([pinned.data === data, pinned.dtype, pinned.shape]).toEqual([true, 'i32', [4000]]);
      using x = device.from(pinned);
      device.stream.fill(x.subarray(0, 2), 5);
      await device.stream.copy(pinned, x).done;
      expect([data[0], data[2]]).toEqual([5, 11]);
      await device.stream.copy(pinned.subarray(10), x.subarray(0, 10)).done;
      expect(data[10]).toBe(5);
      pinned[Symbol.dispose]();
      expect(thrownBy(() => device.stream.copy(pinned, x))).toBeInstanceOf(StateError);
      await device.synchronize();
      data.fill(3);
      expect(data[3999]).toBe(3);
      const again = device.pin(data);
      device.stream.copy(x, again);
      expect((await x.read()).every((value) => value === 3)).toBe(true);
      again[Symbol.dispose]();
    });

    rule('S308', 'a dispose waits on the device for the copies that use the memory', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const data = new Uint32Array(new SharedArrayBuffer(1 << 16)).fill(21);
      using x = device.zeros(data.length, 'u32');
      await device.synchronize();
      await using latch = await hold(target, stream);
      const pinned = device.pin(data);
      stream.copy(x, pinned);
      pinned[Symbol.dispose]();
      await witness(stream);
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      expect((await x.read()).every((value) => value === 21)).toBe(true);
      await stream.close();
    });

    rule('S308', 'anything but a typed array over shared memory is refused', async () => {
      const { device } = chapter;
      for (const data of [new Float32Array(4), new ArrayBuffer(4), new SharedArrayBuffer(4), undefined, [1, 2]]) {
        expect(thrownBy(() => device.pin(data as never))).toBeInstanceOf(ArgumentError);
      }
      using x = device.zeros(1);
      await device.stream.fill(x, 1).done;
    });

    for (const length of [1000, 5 * MIB]) {
      rule('S340', `transfer hands the buffer of ${length} numbers over at the call`, async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using x = device.zeros(length, 'i32');
        await device.compile();
        await using latch = await hold(target, stream);
        const data = new Int32Array(length).fill(31);
        const copy = stream.copy(x, data, { transfer: true });
        expect([data.length, data.buffer.byteLength]).toEqual([0, 0]);
        latch.open();
        await copy.done;
        expect((await x.read()).every((value) => value === 31)).toBe(true);
        await stream.close();
      });
    }

    rule('S340', 'transfer takes the whole buffer of a view or a range', async () => {
      const { device } = chapter;
      using x = device.zeros(4, 'i16');
      const data = Int16Array.from({ length: 10 }, (_, n) => n).subarray(2, 9);
      await device.stream.copy(x, data, { transfer: true, srcOffset: 1, count: 3, dstOffset: 1 }).done;
      expect(data.length).toBe(0);
      expect([...(await x.read())]).toEqual([0, 3, 4, 5]);
    });

    rule('S340', 'a refused call detaches nothing', () => {
      const { device } = chapter;
      using x = device.zeros(4, 'i32');
      const data = new Int32Array(8).fill(4);
      expect(thrownBy(() => device.stream.copy(x, data, { transfer: true }))).toBeInstanceOf(ArgumentError);
      expect(data.length).toBe(8);
      const fixed = new Int32Array(undetachable(), 0, 4);
      expect(thrownBy(() => device.stream.copy(x, fixed, { transfer: true }))).toBeInstanceOf(ArgumentError);
      expect(fixed.length).toBe(4);
    });

    for (const length of [100, 3 * MIB]) {
      rule('S341', `an upload of ${length} numbers borrows shared memory until done`, async () => {
        const { device } = chapter;
        using x = device.zeros(length, 'i32');
        const data = new Int32Array(new SharedArrayBuffer(4 * length)).fill(8);
        await device.stream.copy(x, data).done;
        data.fill(0);
        expect((await x.read()).every((value) => value === 8)).toBe(true);
        await device.stream.copy(data, x).done;
        expect(data.every((value) => value === 8)).toBe(true);
      });
    }

    for (const length of [1000, 4 * MIB]) {
      rule('S342', `a read of ${length} numbers is whole when its promise resolves, and a fresh array each time`, async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using x = stream.zeros(length, 'i32');
        await using latch = await hold(target, stream);
        stream.fill(x, 6);
        const reads = [x.read(), x.read()] as const;
        expect(await isSettled(reads[0])).toBe(false);
        stream.fill(x, 7);
        latch.open();
        const [one, two] = await Promise.all(reads);
        expect(one.every((value) => value === 6)).toBe(true);
        expect(two.every((value) => value === 6)).toBe(true);
        expect(one.buffer).toBeInstanceOf(ArrayBuffer);
        expect(one.buffer).not.toBe(two.buffer);
        expect((await x.read())[length - 1]).toBe(7);
        await stream.close();
      });
    }

    rule('S350', 'stats count the bytes of arrays, and the high-water marks stay until they are reset', async () => {
      const { device } = chapter;
      await device.synchronize();
      const before = await device.pool.stats();
      expect(before.totalBytes).toBe(device.info.totalMemoryBytes);
      const x = device.empty(16 * MIB, 'u8');
      device.stream.fill(x, 1);
      await device.synchronize();
      const during = await device.pool.stats();
      expect(during.usedBytes - before.usedBytes).toBeGreaterThanOrEqual(16 * MIB);
      expect(during.usedHighBytes).toBeGreaterThanOrEqual(during.usedBytes);
      expect(during.reservedBytes).toBeGreaterThanOrEqual(during.usedBytes);
      expect(during.reservedHighBytes).toBeGreaterThanOrEqual(during.reservedBytes);
      x[Symbol.dispose]();
      await device.synchronize();
      const after = await device.pool.stats();
      expect(after.usedBytes).toBeLessThan(during.usedBytes);
      expect(after.usedHighBytes).toBeGreaterThanOrEqual(during.usedHighBytes);
      await device.pool.resetHighWater();
      const reset = await device.pool.stats();
      expect(reset.usedHighBytes).toBeLessThan(during.usedHighBytes);
      expect(reset.usedHighBytes).toBeGreaterThanOrEqual(reset.usedBytes);
    });

    rule('S351', 'a release threshold is a fraction or bytes', async () => {
      const { pool, info } = chapter.device;
      const initial = await pool.releaseThresholdBytes();
      const rows = [
        [0, 0],
        [0.25, info.totalMemoryBytes * 0.25],
        [1, info.totalMemoryBytes],
        [64 * MIB, 64 * MIB],
      ] as const;
      try {
        for (const [value, bytes] of rows) {
          await pool.setReleaseThreshold(value);
          expect(Math.abs((await pool.releaseThresholdBytes()) - bytes), String(value)).toBeLessThanOrEqual(1);
        }
        for (const value of [-1, -0.1, Number.NaN, Infinity, '5', undefined]) {
          expect(await rejectionOf((async () => pool.setReleaseThreshold(value as never))()), String(value)).toBeInstanceOf(ArgumentError);
        }
        expect(await pool.releaseThresholdBytes()).toBe(64 * MIB);
      } finally {
        await pool.setReleaseThreshold(initial === 1 ? 0 : initial);
      }
    });

    rule('S352', 'trim gives back unused memory and no used memory', async () => {
      const { device } = chapter;
      const initial = await device.pool.releaseThresholdBytes();
      await device.pool.setReleaseThreshold(1);
      try {
        using kept = device.full(4 * MIB, 3, 'u8');
        const gone = device.full(64 * MIB, 4, 'u8');
        await device.synchronize();
        gone[Symbol.dispose]();
        await device.synchronize();
        const full = await device.pool.stats();
        await device.pool.trim();
        const trimmed = await device.pool.stats();
        expect(trimmed.reservedBytes).toBeLessThanOrEqual(full.reservedBytes);
        expect(trimmed.reservedBytes).toBeGreaterThanOrEqual(trimmed.usedBytes);
        expect(full.reservedBytes - full.usedBytes).toBeGreaterThanOrEqual(trimmed.reservedBytes - trimmed.usedBytes);
        await device.pool.trim(8 * MIB);
        for (const bytes of [-1, 1.5, Number.NaN]) {
          expect(await rejectionOf((async () => device.pool.trim(bytes))())).toBeInstanceOf(ArgumentError);
        }
        expect((await kept.read()).every((value) => value === 3)).toBe(true);
      } finally {
        await device.pool.setReleaseThreshold(initial === 1 ? 0 : initial);
      }
    });

    const noLimit = !target.supports.memoryLimit && 'allocations of this device only fail when the whole machine is out of memory';
    rule(
      'S353',
      'an allocation waits for pending frees',
      async () => {
        const { device } = chapter;
        const stream = device.createStream();
        // What others have freed would be room enough.
        await device.pool.trim();
        const { freeBytes } = await device.pool.stats();
        const most = Math.floor((freeBytes * 0.7) / 4096) * 4096;
        const first = device.empty(most, 'u8');
        device.stream.fill(first.subarray(0, 16), 1);
        await device.synchronize();
        await using latch = await hold(target, stream);
        const use = stream.fill(first.subarray(0, 16), 2);
        first[Symbol.dispose]();
        const second = device.empty(most, 'u8');
        const fill = device.stream.fill(second.subarray(0, 16), 3);
        await witness(stream);
        expect([use.isComplete, fill.isComplete]).toEqual([false, false]);
        latch.open();
        await fill.done;
        expect((await second.subarray(0, 16).read())[15]).toBe(3);
        second[Symbol.dispose]();
        await stream.close();
      },
      { unless: noLimit },
    );

    rule(
      'S353',
      'an allocation waits for a free of a held stream',
      async () => {
        const { device } = chapter;
        const stream = device.createStream();
        // Two do not fit. Earlier arrays may not be freed yet, so the present free memory is not used as a measure.
        const most = Math.floor((device.info.totalMemoryBytes * 0.6) / 4096) * 4096;
        const first = device.empty(most, 'u8');
        device.stream.fill(first.subarray(0, 16), 2);
        using seen = device.zeros(16, 'u8');
        await device.synchronize();
        let release: (() => void) | undefined;
        stream.hold(() => new Promise<void>((resolve) => (release = resolve)), { timeoutMs: 30_000 });
        const copied = stream.copy(seen, first.subarray(0, 16));
        first[Symbol.dispose]();
        const second = device.empty(most, 'u8');
        const fill = device.stream.fill(second.subarray(0, 16), 3);
        let early: unknown;
        fill.done.catch((error: unknown) => (early = error));
        const isWaiting = (): boolean => device.inspect().streams.some(({ waitingFor }) => waitingFor?.kind === 'memory');
        await eventually('the allocation waits for memory', () => isWaiting() || fill.isComplete);
        expect(early).toBeUndefined();
        expect([copied.isComplete, fill.isComplete]).toEqual([false, false]);
        await eventually('the function that holds the stream was called', () => release !== undefined);
        release?.();
        await fill.done;
        expect([(await second.subarray(0, 16).read())[15], (await seen.read())[15]]).toEqual([3, 2]);
        second[Symbol.dispose]();
        await stream.close();
      },
      { unless: noLimit },
    );

    rule(
      'S353',
      'an allocation fails, with both numbers, when the pending frees do not suffice',
      async () => {
        const { device } = chapter;
        const bytes = device.info.totalMemoryBytes - 4096;
        using first = device.empty(bytes, 'u8');
        using second = device.empty(bytes, 'u8');
        const error = await rejectionOf(device.stream.fill(second, 1).done);
        const cause = error instanceof UpstreamError ? error.cause : error;
        expect(cause).toBeInstanceOf(OutOfMemoryError);
        expect(cause).toMatchObject({ requestedBytes: bytes });
        expect((cause as OutOfMemoryError).freeBytes).toBeLessThan(bytes);
        for (const part of [bytes, (cause as OutOfMemoryError).freeBytes]) expect((cause as Error).message).toContain(String(part));
        expect(first.isDisposed).toBe(false);
        using small = device.full(4, 1, 'i32');
        expect((await small.read())[0]).toBe(1);
      },
      { unless: noLimit },
    );

    rule('S354', 'staging memory is given back, and pinned memory is counted', async () => {
      const { device } = chapter;
      using x = device.zeros([1000, 1000], 'f32');
      using bytes = device.zeros(MIB, 'u8');
      using pinned = device.pinned(MIB, 'u8');
      await x.transpose().read();
      await device.stream.copy(pinned, bytes).done;
      await device.synchronize();
      let staging = -1;
      let locked = 0;
      const look = async (): Promise<void> => {
        ({ stagingBytes: staging, pinnedBytes: locked } = await device.pool.stats());
      };
      await look();
      await eventually('staging is given back', () => {
        void look();
        return staging === 0;
      });
      // A CPU device accesses all memory directly and page-locks none.
      expect(locked).toBeGreaterThanOrEqual(device.info.backend === 'cpu' ? 0 : MIB);
    });

    for (const what of ['memory', 'pool'] as const) {
      rule('S360', `a device reaches its own ${what}`, async () => {
        const { device } = chapter;
        expect([await device.peers.canGrant(device, what), await device.peers.isGranted(device, what)]).toEqual([true, true]);
        await device.peers.grant(device, what);
        await device.peers.revoke(device, what);
        expect(await device.peers.isGranted(device, what)).toBe(true);
      });
    }

    rule('S360', 'values that are not a device or a switch are refused', async () => {
      const { device } = chapter;
      for (const call of [() => device.peers.canGrant({} as never), () => device.peers.grant(device, 'x' as never)]) {
        expect(await rejectionOf((async () => call())())).toBeInstanceOf(ArgumentError);
      }
    });
  });
});

/** The memory of a WebAssembly instance is an ArrayBuffer that cannot be detached. */
function undetachable(): ArrayBuffer {
  const { WebAssembly } = globalThis as unknown as { WebAssembly: { Memory: new (of: { initial: number }) => { buffer: ArrayBuffer } } };
  return new WebAssembly.Memory({ initial: 1 }).buffer;
}

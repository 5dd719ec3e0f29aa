// Chapter 3, first half: device arrays and pinned arrays.
import { Worker } from 'node:worker_threads';
import { describe, expect } from 'vitest';
import { StateError, type DType, type HostArray } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

/** A value of each element type that no truncation leaves intact, as written and as read. */
const SAMPLES: { readonly [D in DType]: readonly [written: number | bigint | boolean, read: number | bigint] } = {
  bool: [true, 1],
  i8: [-101, -101],
  u8: [201, 201],
  i16: [-30_001, -30_001],
  u16: [60_001, 60_001],
  i32: [-2_000_000_001, -2_000_000_001],
  u32: [4_000_000_001, 4_000_000_001],
  i64: [-(2n ** 62n) - 3n, -(2n ** 62n) - 3n],
  u64: [2n ** 63n + 5n, 2n ** 63n + 5n],
  f16: [1.5, 0x3e00],
  bf16: [1.5, 0x3fc0],
  f32: [0.15625, 0.15625],
  f64: [Math.PI, Math.PI],
};

defineChapter((target) => {
  describe('3 memory: arrays', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S301', 'zeros, ones, full and from make arrays of f32 by default', async () => {
      const { device } = chapter;
      using z = device.zeros([2, 3]);
      using o = device.ones(3);
      using f = device.full([2], 2.5);
      using g = device.from(new Int16Array([1, -2, 3]));
      using l = device.from([1, 2, 3, 4], { dtype: 'u8', shape: [2, 2] });
      expect([z.dtype, z.shape, z.length, z.byteLength]).toEqual(['f32', [2, 3], 6, 24]);
      expect(await z.read()).toEqual(new Float32Array(6));
      expect(await o.read()).toEqual(new Float32Array([1, 1, 1]));
      expect(await f.read()).toEqual(new Float32Array([2.5, 2.5]));
      expect(await g.read()).toEqual(new Int16Array([1, -2, 3]));
      expect([l.dtype, l.shape]).toEqual(['u8', [2, 2]]);
      expect(await l.read()).toEqual(new Uint8Array([1, 2, 3, 4]));
      using n = device.from([1, 2.5]);
      expect(await n.read()).toEqual(new Float32Array([1, 2.5]));
      expect(thrownBy(() => device.from([[1], [2]] as never)).message).toContain('from(list.flat(), { shape })');
    });

    rule('S301', 'an array may be empty', async () => {
      using none = chapter.device.zeros(0, 'i32');
      expect(none.length).toBe(0);
      expect(await none.read()).toEqual(new Int32Array(0));
      await chapter.device.stream.fill(none, 1).done;
    });

    rule('S302', 'fill writes every element, of every element type', async () => {
      const { device } = chapter;
      for (const [dtype, [written, read]] of Object.entries(SAMPLES) as [DType, (typeof SAMPLES)[DType]][]) {
        using array = device.zeros(1027, dtype);
        device.stream.fill(array, written as never);
        const values = (await array.read()) as ArrayLike<number | bigint>;
        expect(values.length, dtype).toBe(1027);
        for (const at of [0, 1, 512, 1026]) expect(values[at], `${dtype}[${at}]`).toBe(read);
      }
    });

    rule('S302', '64-bit integers accept safe integers as numbers', async () => {
      using x = chapter.device.full(3, -7, 'i64');
      expect(await x.read()).toEqual(new BigInt64Array([-7n, -7n, -7n]));
      chapter.device.stream.fill(x, Number.MAX_SAFE_INTEGER);
      expect((await x.read())[2]).toBe(BigInt(Number.MAX_SAFE_INTEGER));
    });

    rule('S303', 'read returns a new plain array each time', async () => {
      using x = chapter.device.from(new Float64Array([1, 2, 3]));
      const first = await x.read();
      first.fill(0);
      const second = await x.read();
      expect(second).toEqual(new Float64Array([1, 2, 3]));
      expect(second.buffer).toBeInstanceOf(ArrayBuffer);
      expect(second.buffer.byteLength).toBe(24);
    });

    rule('S303', 'read({ into }) fills the given array and returns it', async () => {
      using x = chapter.device.from(new Int32Array([4, 5, 6]));
      const into = new Int32Array(3);
      expect(await x.read({ into })).toBe(into);
      expect(into).toEqual(new Int32Array([4, 5, 6]));
    });

    rule('S303', 'read waits for the last writer only', async () => {
      const { device } = chapter;
      using x = device.full(2, 3, 'i32');
      const busy = device.createStream();
      await device.synchronize();
      await using latch = await hold(target, busy);
      expect(await x.read()).toEqual(new Int32Array([3, 3]));
      expect(latch.operation.isComplete).toBe(false);
      busy.fill(x, 4);
      const read = x.read();
      latch.open();
      expect(await read).toEqual(new Int32Array([4, 4]));
      await busy.close();
    });

    rule('S304', 'an array disposed while in use stays valid until its last operation has finished', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const kept = device.zeros(1 << 16, 'i32');
      await using latch = await hold(target, stream);
      const gone = stream.full(1 << 16, 7, 'i32');
      stream.copy(kept, gone);
      gone[Symbol.dispose]();
      expect(gone.isDisposed).toBe(true);
      // These arrays would get memory that was freed too early.
      const others = Array.from({ length: 8 }, (_, n) => device.full(1 << 16, n, 'i32'));
      await Promise.all(others.map((other) => other.read()));
      latch.open();
      const values = await kept.read();
      expect(values.every((value) => value === 7)).toBe(true);
      for (const array of [kept, ...others]) array[Symbol.dispose]();
      await stream.close();
    });

    rule('S304', 'a free waits on the device for readers on other streams', async () => {
      const { device } = chapter;
      const reader = device.createStream();
      const target2 = device.zeros(4096, 'u32');
      const source = device.full(4096, 0xabcdef, 'u32');
      await device.synchronize();
      await using latch = await hold(target, reader);
      reader.copy(target2, source);
      source[Symbol.dispose]();
      using reuse = device.full(4096, 1, 'u32');
      latch.open();
      expect((await target2.read()).every((value) => value === 0xabcdef)).toBe(true);
      expect((await reuse.read())[0]).toBe(1);
      target2[Symbol.dispose]();
      await reader.close();
    });

    rule('S304', 'disposing an array that a held stream uses delays no other stream', async () => {
      const { device } = chapter;
      const [maker, reader] = [device.createStream(), device.createStream()];
      using copied = device.zeros(4, 'i32');
      using after = maker.zeros(4, 'i32');
      await device.synchronize();
      await using latch = await hold(target, reader);
      const x = maker.full(4, 5, 'i32');
      reader.copy(copied, x);
      x[Symbol.dispose]();
      await Promise.all([maker.fill(after, 6).done, device.stream.fill(device.zeros(4, 'i32'), 7).done]);
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      expect(await copied.read()).toEqual(new Int32Array([5, 5, 5, 5]));
      await Promise.all([maker.close(), reader.close()]);
    });

    rule('S305', 'a disposed array is refused at the call; disposing again does nothing', async () => {
      const { device } = chapter;
      const x = device.zeros(4, 'f32');
      x[Symbol.dispose]();
      x[Symbol.dispose]();
      for (const call of [() => device.stream.fill(x, 1), () => device.stream.copy(new Float32Array(4), x)]) {
        expect(thrownBy(call)).toBeInstanceOf(StateError);
      }
      await expect((async () => x.read())()).rejects.toBeInstanceOf(StateError);
      await device.synchronize();
    });

    rule('S306', 'pinned data is shared memory: a worker changes it and nothing is copied', async () => {
      const { device } = chapter;
      using pinned = device.pinned([4], 'i32');
      expect(pinned.data.buffer).toBeInstanceOf(SharedArrayBuffer);
      pinned.data.set([1, 2, 3, 4]);
      await inWorker('for (let n = 0; n < data.length; n++) data[n] *= 10', pinned.data);
      expect([...pinned.data]).toEqual([10, 20, 30, 40]);
      using x = device.from(pinned);
      expect(await x.read()).toEqual(new Int32Array([10, 20, 30, 40]));
    });

    rule('S307', 'when done resolves, every thread sees the bytes copied into pinned memory', async () => {
      const { device } = chapter;
      using pinned = device.pinned(1 << 18, 'u32');
      using x = device.full(1 << 18, 77, 'u32');
      await device.stream.copy(pinned, x).done;
      const wrong = await inWorker('result = data.reduce((count, value) => count + (value === 77 ? 0 : 1), 0)', pinned.data);
      expect(wrong).toBe(0);
    });

    rule('S364', 'the data of a disposed pinned array and of its views is refused', async () => {
      const { device } = chapter;
      const pinned = device.pinned(8, 'i32');
      const view = pinned.subarray(2);
      using x = device.full(8, 5, 'i32');
      const copied = device.stream.copy(pinned, x);
      pinned[Symbol.dispose]();
      for (const array of [pinned, view]) expect(thrownBy(() => array.data)).toBeInstanceOf(StateError);
      await copied.done;
    });

    rule('S309', 'many pinned arrays share one arena without overlapping', async () => {
      const { device } = chapter;
      const pinned = Array.from({ length: 64 }, (_, n) => device.pinned(100 + n, 'u16'));
      for (const [n, array] of pinned.entries()) array.data.fill(n + 1);
      for (const [n, array] of pinned.entries()) expect(array.data.every((value) => value === n + 1)).toBe(true);
      for (const array of pinned) array[Symbol.dispose]();
      using again = device.pinned(1 << 12, 'u16');
      expect(again.length).toBe(1 << 12);
      await device.synchronize();
    });
  });
});

/** Runs a statement in another thread with `data` in scope; resolves with what it stored in `result`. */
function inWorker(statement: string, data: HostArray): Promise<unknown> {
  const code = `const { parentPort, workerData: data } = require('node:worker_threads'); let result; ${statement}; parentPort.postMessage(result);`;
  return new Promise((resolve, reject) => {
    const worker = new Worker(code, { eval: true, workerData: data });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

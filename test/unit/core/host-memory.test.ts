// Memory of the caller and of the worker in copies: how long it is detached, borrowed, lent and page-locked.
import { describe, expect, test } from 'vitest';
import { ArgumentError, DeviceLostError, LimitError, OutOfMemoryError, StateError } from '../../../src/core/base/errors.js';
import { CopyRecord, Status } from '../../../src/protocol/protocol.gen.js';
import { thrownBy } from '../../support/wait.js';
import { fixture, turn } from './fake-channel.js';
import { type SimulatedChannel, World } from './simulated.js';

const MIB = 2 ** 20;
/** This project's types of Node lack those of the web. */
const wasm = (globalThis as unknown as { WebAssembly: { Memory: new (opts: { initial: number }) => { buffer: ArrayBuffer } } }).WebAssembly;

function simulated(): { readonly world: World; readonly channel: SimulatedChannel } & ReturnType<World['add']> {
  const world = new World();
  const made = world.add('cuda', 'cuda:0');
  return { ...made, world, channel: made.channel as SimulatedChannel };
}

describe('an upload that transfers', () => {
  test('detaches the whole buffer at the call, and the bytes arrive', async () => {
    const { world, channel, core, device } = simulated();
    const whole = new Float32Array([1, 2, 3, 4, 5, 6]);
    const data = whole.subarray(2, 5);
    const x = device.zeros(3);
    const operation = device.stream.copy(x, data, { transfer: true });
    expect([whole.byteLength, data.byteLength, whole.buffer.byteLength]).toEqual([0, 0, 0]);
    expect(channel.registered.at(-1)).toMatchObject({ byteOffset: 8, byteLength: 12, isLocked: false });
    await world.settle();
    await operation.done;
    const read = x.read();
    await world.settle();
    expect(await read).toEqual(new Float32Array([3, 4, 5]));
    // Given back only now that the copy is complete.
    core.arena.reclaim();
    await turn();
    expect(channel.unregistered).toEqual([channel.registered.find(({ isLocked }) => !isLocked)!.handle]);
    expect(core.arena.liveBytes).toBe(0);
  });

  test('takes no time per byte', () => {
    const { device } = simulated();
    const data = new Uint8Array(512 * MIB);
    const x = device.empty(data.length, 'u8');
    // Time of this process alone: other tests run beside.
    const before = process.cpuUsage();
    device.stream.copy(x, data, { transfer: true });
    const { user, system } = process.cpuUsage(before);
    // A snapshot would take more than a hundred milliseconds.
    expect((user + system) / 1000).toBeLessThan(50);
    expect(data.length).toBe(0);
  });

  test('makes an array, also with another order of axes', async () => {
    const { world, device } = simulated();
    const x = device.from(new Int16Array([1, 2, 3, 4, 5, 6]), { shape: [2, 3], transfer: true });
    const y = device.zeros([3, 2], 'i16');
    const data = new Int16Array([1, 2, 3, 4, 5, 6]);
    device.stream.copy(y.transpose(), data, { transfer: true });
    expect(data.length).toBe(0);
    const reads = [x.read(), y.read()];
    await world.settle();
    expect(await Promise.all(reads)).toEqual([new Int16Array([1, 2, 3, 4, 5, 6]), new Int16Array([1, 4, 2, 5, 3, 6])]);
  });

  test('keeps the data with the caller when the call is refused', async () => {
    const { world, channel, core, device } = simulated();
    const x = device.zeros([2, 3], 'i16');
    await world.settle();
    const data = new Int16Array([1, 2, 3, 4, 5, 6]);
    for (const call of [
      () => device.stream.copy(x, data, { transfer: true, count: 7 }),
      () => device.stream.copy(x, new Float32Array(6) as never, { transfer: true }),
    ]) {
      expect(thrownBy(call)).toBeInstanceOf(ArgumentError);
    }
    // The first, or a later one of several records.
    for (const accepts of [0, 1, 2]) {
      channel.accepts = accepts;
      expect(
        thrownBy(() => device.stream.copy(accepts === 0 ? x : x.view([undefined, undefined, -1]), data, { transfer: true })),
      ).toBeInstanceOf(LimitError);
      channel.accepts = -1;
    }
    expect([...data]).toEqual([1, 2, 3, 4, 5, 6]);
    await world.settle();
    core.arena.reclaim();
    expect([core.arena.liveBytes, channel.liveStaging]).toEqual([0, 0]);
    device.stream.copy(x, data, { transfer: true });
    expect(data.length).toBe(0);
  });

  test('of a buffer that cannot be detached is refused and nothing happens', () => {
    const { channel, device } = simulated();
    const x = device.zeros(4, 'u8');
    const pinned = device.pinned(4, 'u8');
    const before = channel.records.length;
    const memory = new Uint8Array(new wasm.Memory({ initial: 1 }).buffer, 0, 4);
    const pooled = new Uint8Array(Buffer.from('abcd').buffer, 0, 4);
    for (const [call, message] of [
      [() => device.stream.copy(x, memory, { transfer: true }), /cannot be detached/],
      [() => device.stream.copy(x, pooled, { transfer: true }), /cannot be detached/],
      [() => device.from(memory, { transfer: true }), /cannot be detached/],
      [() => device.stream.copy(x, new Uint8Array(new SharedArrayBuffer(4)), { transfer: true }), /remove the option transfer/],
      [() => device.stream.copy(x, pinned, { transfer: true }), /not PinnedArray/],
      [() => device.stream.copy(new Uint8Array(4), x, { transfer: true }), /not DeviceArray/],
      [() => device.from([1, 2, 3], { dtype: 'u8', transfer: true }), /not \[1, 2, 3\]/],
    ] as const) {
      const error = thrownBy(call);
      expect(error).toMatchObject({ name: 'ArgumentError', code: 'ERR_MILLRACE_COPY', argument: 'transfer' });
      expect(error.message).toMatch(message);
    }
    expect([memory.length, pooled.length, channel.records.length]).toEqual([4, 4, before]);
  });
});

describe('a view of a SharedArrayBuffer', () => {
  test('is borrowed until the copy has finished when it is large, and copied when it is small', async () => {
    const { world, channel, core, device } = simulated();
    const large = new Uint8Array(new SharedArrayBuffer(MIB), 4096, MIB / 2).fill(7);
    const x = device.zeros(large.length, 'u8');
    device.stream.copy(x, large);
    expect(channel.registered.at(-1)).toMatchObject({ byteOffset: 4096, byteLength: MIB / 2, isLocked: false });
    large[5] = 9;
    core.arena.reclaim();
    expect(channel.unregistered).toEqual([]);
    const registered = channel.registered.length;
    const small = new Uint8Array(new SharedArrayBuffer(1000)).fill(3);
    device.stream.copy(x, small, { dstOffset: 100 });
    small.fill(4);
    expect(channel.registered).toHaveLength(registered + 1);
    const read = x.read();
    await world.settle();
    const bytes = await read;
    // The caller must not change borrowed memory; this shows that it is borrowed.
    expect([bytes[5], bytes[99], bytes[100], bytes[1099], bytes[1100]]).toEqual([9, 7, 3, 3, 7]);
    core.arena.reclaim();
    expect(channel.unregistered).toHaveLength(1);
  });
});

describe('a large read', () => {
  test('is written into a buffer of the worker, which is transferred', async () => {
    const { world, channel, core, device } = simulated();
    const x = device.full(9 * MIB, 2.5);
    const read = x.read();
    expect(channel.registered.at(-1)).toMatchObject({ byteLength: 36 * MIB, isLocked: false });
    let lent: ArrayBufferLike | undefined;
    const { collect } = channel;
    channel.collect = async (handle) => (lent = await collect.call(channel, handle));
    await world.settle();
    const values = await read;
    expect([values.length, values[0], values.at(-1), values.buffer === lent]).toEqual([9 * MIB, 2.5, 2.5, true]);
    expect(core.arena.liveBytes).toBe(0);
  });

  test('of elements in another order is gathered first', async () => {
    const { world, channel, device } = simulated();
    const [rows, columns] = [9, MIB / 2 - 10_000];
    const x = device.zeros([rows, columns], 'f64');
    device.stream.fill(x.view(1), 1);
    const read = x.view(undefined, [undefined, undefined, -1]).read();
    await world.settle();
    const values = await read;
    expect([values.length, values[columns - 1], values[columns], values[2 * columns - 1], values[2 * columns]]).toEqual([
      rows * columns,
      0,
      1,
      1,
      0,
    ]);
    expect([channel.mostStaging, channel.liveStaging]).toEqual([8 * rows * columns, 0]);
  }, 30_000);

  test('that is given up frees its memory when the device has finished', async () => {
    const { world, core, device } = simulated();
    const x = device.zeros(9 * MIB);
    await expect(x.read({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
    expect(core.arena.liveBytes).toBe(36 * MIB);
    await world.settle();
    expect(core.arena.liveBytes).toBe(0);
  });

  test('rejects with OutOfMemoryError if the worker cannot allocate the buffer', async () => {
    const { channel, progress, device } = fixture();
    channel.collect = () => Promise.reject(new OutOfMemoryError('ERR_MILLRACE_MEMORY', 'no memory', 0, 0));
    const read = device.zeros(9 * MIB).read();
    const { stream, ticket } = channel.records.at(-1)!;
    channel.fail(stream, { id: 1, first: ticket, last: ticket, status: Status.INTERNAL });
    channel.completeAll();
    progress.wake();
    await expect(read).rejects.toBeInstanceOf(OutOfMemoryError);
  });

  test('rejects when the device is lost', async () => {
    const { core, device } = fixture();
    const read = device.zeros(9 * MIB).read();
    core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'gone', 'fault'));
    await expect(read).rejects.toBeInstanceOf(DeviceLostError);
  });
});

describe('memory that is page-locked in place', () => {
  test('is the same array, named by copies, until it is disposed and unused', async () => {
    const { world, channel, core, device } = simulated();
    const data = new Float64Array(new SharedArrayBuffer(800), 80, 10).fill(1.5);
    const pinned = device.pin(data);
    expect([pinned.data === data, pinned.dtype, pinned.shape, pinned.byteLength]).toEqual([true, 'f64', [10], 80]);
    expect(channel.registered.at(-1)).toMatchObject({ byteOffset: 80, byteLength: 80, isLocked: true });
    const x = device.zeros(10, 'f64');
    device.stream.copy(x, pinned);
    device.stream.copy(pinned.subarray(4), x, { count: 2, srcOffset: 1 });
    expect(channel.records.at(-1)!.view.getUint32(CopyRecord.DST_HANDLE, true)).toBe(channel.registered.at(-1)!.handle);
    pinned[Symbol.dispose]();
    core.arena.reclaim();
    expect(channel.unregistered).toEqual([]);
    expect(thrownBy(() => device.pin(data))).toBeInstanceOf(StateError);
    await world.settle();
    core.arena.reclaim();
    expect(channel.unregistered).toEqual([channel.registered.at(-1)!.handle]);
    // The memory belongs to the caller again.
    expect(device.pin(data).data).toBe(data);
  });

  test('is locked once: memory that overlaps it or that the device has locked is refused', () => {
    const { device } = simulated();
    const buffer = new SharedArrayBuffer(1000);
    device.pin(new Uint8Array(buffer, 100, 100));
    for (const data of [new Uint8Array(buffer), new Uint8Array(buffer, 199, 1), new Uint8Array(buffer, 50, 51), device.pinned(4).data]) {
      const error = thrownBy(() => device.pin(data as Uint8Array<SharedArrayBuffer>));
      expect(error).toBeInstanceOf(StateError);
      expect(error.message).toMatch(/already page-locked for device cuda:0/);
    }
    device.pin(new Uint8Array(buffer, 200, 100));
    device.pin(new Uint8Array(buffer, 0, 100));
    // Another device locks it for itself.
    simulated().device.pin(new Uint8Array(buffer));
    expect(device.pin(new Uint8Array(buffer, 120, 0)).length).toBe(0);
  });
});

test('page-locked memory that an unfinished copy needs is not reused, for any stream and order of copies', () => {
  const { channel, core, device } = fixture();
  const copying = device.createStream({ ordering: 'explicit' });
  const x = device.zeros(MIB, 'u8');
  const p = device.pinned(MIB, 'u8');
  device.stream.copy(p, x);
  copying.copy(x, p);
  const { buffer } = p.data;
  p[Symbol.dispose]();
  const { stream } = channel.records.at(-1)!;
  // All but the copy from it: its first use is over, its last is not.
  channel.complete(device.stream.timeline.slot, device.stream.timeline.last);
  core.arena.reclaim();
  expect(device.pinned(MIB, 'u8').data.buffer).not.toBe(buffer);
  channel.complete(stream, copying.timeline.last);
  core.arena.reclaim();
  expect(device.pinned(MIB, 'u8').data.buffer).toBe(buffer);
});

test('small blocks are reused also if the arena is full, and keep the memory that they share', () => {
  const { channel, core } = fixture();
  const { arena } = core;
  const large = Array.from({ length: 64 }, () => arena.take(MIB));
  const one = arena.take(1024);
  const other = arena.take(1024);
  expect(one.buffer).not.toBe(channel.arena);
  expect(other.buffer).toBe(one.buffer);
  arena.giveBack(one, []);
  expect(channel.unregistered).toEqual([]);
  const again = arena.take(1024);
  expect(again.buffer).toBe(other.buffer);
  expect(again.byteOffset).not.toBe(other.byteOffset);
  for (const block of [other, again]) arena.giveBack(block, []);
  expect(channel.unregistered).toEqual([]);
  expect(large.filter(({ buffer }) => buffer === channel.arena).length).toBeGreaterThan(8);
});

// Events and memory of other processes: their records and worker calls, and their refusal on devices without support.
import { describe, expect, test } from 'vitest';
import {
  ArgumentError,
  DeviceLostError,
  LimitError,
  StateError,
  UnavailableError,
  UnsupportedError,
  WaitTimeoutError,
} from '../../../src/core/base/errors.js';
import { elapsed } from '../../../src/core/api/elapsed.js';
import {
  AllocKind,
  AllocRecord,
  EventKind,
  RecordEventRecord,
  Status,
  WaitEventRecord,
  WaitRecord,
} from '../../../src/protocol/protocol.gen.js';
import { FakeChannel, type Fixture, fixture, turn } from './fake-channel.js';

const HANDLE = Uint8Array.from({ length: 64 }, (_, n) => n);

/** A CUDA device that exports one handle and opens every handle. */
function cuda(): Fixture & { readonly asked: unknown[][] } {
  const channel = new FakeChannel();
  channel.backend = 'cuda';
  const asked: unknown[][] = [];
  for (const name of ['exportEvent', 'exportMemory', 'openEvent', 'openMemory'] as const) {
    channel.answers.set(name, (...args) => {
      asked.push([name, ...args]);
      return name.startsWith('export') ? HANDLE : undefined;
    });
  }
  return { ...fixture(channel), asked };
}

const named = (channel: FakeChannel, opcode: string): number[] =>
  channel.records.filter((record) => record.opcode === opcode).map(({ view }) => view.getUint32(RecordEventRecord.HANDLE, true));

describe('on a CPU device', () => {
  test('everything is an UnsupportedError, before anything is submitted', async () => {
    const { channel, device } = fixture();
    const { stream } = device;
    const before = channel.records.length;
    const refusal = expect.objectContaining({ name: 'UnsupportedError', capability: 'interprocess', code: 'ERR_MILLRACE_IPC_UNSUPPORTED' });
    expect(() => device.createEvent({ interprocess: true })).toThrow(UnsupportedError);
    expect(() => device.createEvent({ interprocess: true })).toThrow(refusal);
    expect(() => stream.record({ interprocess: true })).toThrow(refusal);
    expect(() => device.interprocess(4, 'f32')).toThrow(refusal);
    await expect(device.openIpcEvent(HANDLE)).rejects.toEqual(refusal);
    await expect(device.openIpcArray(HANDLE, 4, 'f32')).rejects.toEqual(refusal);
    expect(channel.records).toHaveLength(before);
    await expect(device.createEvent().ipcHandle()).rejects.toBeInstanceOf(StateError);
    await expect(device.createEvent({ timing: true }).ipcHandle()).rejects.toThrow(/without the option interprocess/);
  });
});

describe('an event of this process', () => {
  test('is one driver event for all records, and a point in this process', () => {
    const { channel, device } = cuda();
    const [a, b] = [device.createStream(), device.createStream()];
    const event = device.createEvent({ interprocess: true });
    expect(event.isComplete).toBe(true);
    a.record(event);
    a.record(event);
    const [first, second] = named(channel, 'RECORD_EVENT');
    expect(second).toBe(first);
    expect(channel.records.at(-1)?.view.getUint32(RecordEventRecord.KIND, true)).toBe(EventKind.INTERPROCESS);
    b.waitEvent(event);
    expect(channel.opcodes(b.timeline.slot)).toEqual(['STREAM_CREATE', 'WAIT']);
    expect(event.isComplete).toBe(false);
    channel.completeAll();
    expect(event.isComplete).toBe(true);
  });

  test('has no time', async () => {
    const { device } = cuda();
    const event = device.stream.record({ interprocess: true });
    await expect(elapsed(event, event)).rejects.toMatchObject({ reason: 'timing-off' });
  });

  test('is freed after its uses on all streams; an unused one needs no record', () => {
    const { channel, device } = cuda();
    const [a, b] = [device.createStream(), device.createStream()];
    device.createEvent({ interprocess: true })[Symbol.dispose]();
    expect(channel.opcodes()).not.toContain('FREE_EVENT');
    const event = a.record({ interprocess: true });
    b.record(event);
    event[Symbol.dispose]();
    // On none of these streams, so their later work does not wait for it.
    const { stream } = channel.records.at(-1)!;
    expect(channel.opcodes(stream)).toEqual(['STREAM_CREATE', 'WAIT', 'WAIT', 'FREE_EVENT']);
    const waits = channel.records.filter(({ opcode }) => opcode === 'WAIT').map(({ view }) => view.getUint32(WaitRecord.TARGET, true));
    expect(new Set(waits)).toEqual(new Set([a.timeline.slot, b.timeline.slot]));
    expect(named(channel, 'FREE_EVENT')).toEqual([named(channel, 'RECORD_EVENT')[0]]);
  });

  test('gives the handle that the device exports, also before its first record', async () => {
    const { channel, device, asked } = cuda();
    const event = device.createEvent({ interprocess: true });
    expect(await event.ipcHandle()).toEqual(HANDLE);
    device.stream.record(event);
    expect(asked).toEqual([['exportEvent', named(channel, 'RECORD_EVENT')[0]]]);
    event[Symbol.dispose]();
    expect(channel.opcodes()).toContain('FREE_EVENT');
    await expect(event.ipcHandle()).rejects.toBeInstanceOf(StateError);
  });

  test('disposed while its handle is requested, it is freed afterwards', async () => {
    const { channel, device } = cuda();
    const event = device.createEvent({ interprocess: true });
    const handle = event.ipcHandle();
    event[Symbol.dispose]();
    expect(channel.opcodes()).not.toContain('FREE_EVENT');
    await handle;
    expect(channel.opcodes()).toContain('FREE_EVENT');
  });

  test('once another process may record it, waits are for its point and its driver event', async () => {
    const opened = cuda();
    const { channel, device } = opened;
    const [a, b] = [device.createStream(), device.createStream()];
    const event = a.record({ interprocess: true });
    await event.ipcHandle();
    b.waitEvent(event);
    expect(channel.opcodes(b.timeline.slot)).toEqual(['STREAM_CREATE', 'WAIT', 'WAIT_EVENT']);
    expect(event.isComplete).toBe(false);
  });
});

describe('isComplete of an event that another process may record', () => {
  async function shared() {
    const opened = cuda();
    const event = opened.device.createEvent({ interprocess: true });
    await event.ipcHandle();
    return { ...opened, event, waits: () => opened.channel.opcodes().filter((opcode) => opcode === 'WAIT_EVENT').length };
  }

  test('submits one wait after each record, and becomes true without an await', async () => {
    const { channel, device, event, waits } = await shared();
    for (const record of [1, 2]) {
      device.stream.record(event);
      expect([event.isComplete, event.isComplete]).toEqual([false, false]);
      expect(waits()).toBe(record);
      channel.completeAll();
      expect([event.isComplete, event.isComplete]).toEqual([true, true]);
      expect(waits()).toBe(record);
    }
  });

  test('submits a wait also before the first record of this process', async () => {
    const { channel, event, waits } = await shared();
    expect(event.isComplete).toBe(false);
    expect(waits()).toBe(1);
    channel.completeAll();
    expect(event.isComplete).toBe(true);
  });

  test('is false while the device is full, and tries again', async () => {
    const { channel, device, event, waits } = await shared();
    device.stream.record(event);
    channel.refusal = Status.LIMIT;
    expect(event.isComplete).toBe(false);
    channel.refusal = Status.OK;
    expect(event.isComplete).toBe(false);
    expect(waits()).toBe(1);
    channel.completeAll();
    expect(event.isComplete).toBe(true);
  });

  test('submits nothing after the event was disposed', async () => {
    const { channel, device, event } = await shared();
    device.stream.record(event);
    event[Symbol.dispose]();
    const before = channel.records.length;
    expect(event.isComplete).toBe(false);
    expect(channel.records).toHaveLength(before);
  });
});

describe('an event of another process', () => {
  test('is waited for on the stream, by its driver event', async () => {
    const { channel, device, asked } = cuda();
    const given = new Uint8Array(HANDLE);
    const opening = device.openIpcEvent(given);
    // The bytes are those of the call.
    given.fill(0);
    const event = await opening;
    expect(asked).toEqual([['openEvent', expect.any(Number), HANDLE]]);
    expect(event.timing).toBe(false);
    const stream = device.createStream();
    const operation = stream.waitEvent(event);
    expect(operation.kind).toBe('wait');
    expect(channel.opcodes(stream.timeline.slot)).toEqual(['STREAM_CREATE', 'WAIT_EVENT']);
    expect(channel.records.at(-1)?.view.getUint32(WaitEventRecord.HANDLE, true)).toBe(asked[0]?.[1]);
    expect(operation.isComplete).toBe(false);
  });

  test('is waited for by streams of other devices through a hidden stream', async () => {
    const [one, other] = [cuda(), fixture()];
    const event = await one.device.openIpcEvent(HANDLE);
    const stream = other.device.createStream();
    stream.waitEvent(event);
    expect(other.channel.opcodes(stream.timeline.slot)).toEqual(['STREAM_CREATE', 'WAIT']);
    expect(one.channel.opcodes(one.channel.records.at(-1)!.stream)).toEqual(['STREAM_CREATE', 'WAIT_EVENT']);
  });

  test('is waited for by the host through a hidden stream, with a new wait each time', async () => {
    const opened = cuda();
    const { channel, device, progress } = opened;
    const event = await device.openIpcEvent(HANDLE);
    const { done } = event;
    expect(device.inspect().streams).toHaveLength(1);
    expect(device.stream.pending).toBe(0);
    await expect(event.synchronize({ timeoutMs: 1 })).rejects.toBeInstanceOf(WaitTimeoutError);
    expect(named(channel, 'WAIT_EVENT')).toHaveLength(2);
    // The second one does not wait for the first.
    expect(new Set(channel.records.filter(({ opcode }) => opcode === 'WAIT_EVENT').map(({ stream }) => stream)).size).toBe(2);
    channel.completeAll();
    progress.wake();
    await done;
    expect(event.isComplete).toBe(true);
    void event.done;
    expect(event.isComplete).toBe(false);
    // An idle one is reused.
    expect(channel.opcodes().filter((opcode) => opcode === 'STREAM_CREATE')).toHaveLength(3);
  });

  test('may be recorded; then the host waits for that record too', async () => {
    const { channel, device, progress } = cuda();
    const event = await device.openIpcEvent(HANDLE);
    void event.done;
    channel.completeAll();
    progress.wake();
    await turn();
    expect(event.isComplete).toBe(true);
    device.stream.record(event);
    expect(event.isComplete).toBe(false);
    void event.done;
    expect(channel.records.slice(-2).map(({ opcode }) => opcode)).toEqual(['WAIT', 'WAIT_EVENT']);
  });

  test('at most eight such waits have separate streams', async () => {
    const { channel, device } = cuda();
    const event = await device.openIpcEvent(HANDLE);
    for (let n = 0; n < 12; n++) void event.done.catch(() => undefined);
    expect(channel.opcodes().filter((opcode) => opcode === 'STREAM_CREATE')).toHaveLength(1 + 8);
    expect(named(channel, 'WAIT_EVENT')).toHaveLength(12);
    await device.destroy();
  });

  test('has no handle here, and is closed by its disposal', async () => {
    const { channel, device } = cuda();
    const event = await device.openIpcEvent(HANDLE);
    await expect(event.ipcHandle()).rejects.toThrow(/another process/);
    event[Symbol.dispose]();
    expect(channel.records.at(-1)).toMatchObject({ opcode: 'FREE_EVENT', stream: device.defaultStream.timeline.slot });
    await expect(event.done).rejects.toBeInstanceOf(StateError);
    expect(() => device.stream.waitEvent(event)).toThrow(StateError);
  });

  test('an invalid handle, a handle that the driver refuses, and a full device change nothing', async () => {
    const { channel, device, core } = cuda();
    for (const wrong of [new Uint8Array(63), 'handle', new ArrayBuffer(64), undefined]) {
      await expect(device.openIpcEvent(wrong as never)).rejects.toBeInstanceOf(ArgumentError);
      await expect(device.openIpcArray(wrong as never, 4, 'f32')).rejects.toBeInstanceOf(ArgumentError);
    }
    const refuse = (): never => {
      throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', 'No such handle.', []);
    };
    channel.answers.set('openEvent', refuse);
    channel.answers.set('openMemory', refuse);
    await expect(device.openIpcEvent(HANDLE)).rejects.toBeInstanceOf(UnavailableError);
    await expect(device.openIpcArray(HANDLE, 4, 'f32')).rejects.toBeInstanceOf(UnavailableError);
    // The handles are reused, with another generation.
    expect(core.handles.events.take() >>> 22).toBe(2);
    expect(core.handles.memory.take() >>> 22).toBe(2);
    expect(channel.opcodes()).toEqual(['STREAM_CREATE']);
    const event = device.createEvent({ interprocess: true });
    channel.refusal = Status.LIMIT;
    expect(() => device.stream.record(event)).toThrow(LimitError);
    channel.refusal = Status.OK;
    expect(event.isComplete).toBe(true);
  });
});

describe('arrays', () => {
  test('of this process are separate allocations, whose handle is requested when they are made', async () => {
    const { channel, device, progress, asked } = cuda();
    const stream = device.createStream();
    const array = stream.run(() => device.interprocess([2, 2], 'i32'));
    const alloc = channel.records.at(-1)!;
    expect(alloc).toMatchObject({ opcode: 'ALLOC', stream: stream.timeline.slot });
    expect(alloc.view.getUint32(AllocRecord.KIND, true)).toBe(AllocKind.INTERPROCESS);
    const handle = array.ipcHandle();
    await turn();
    expect(asked).toEqual([]);
    channel.completeAll();
    progress.wake();
    expect(await handle).toEqual(HANDLE);
    expect(asked).toEqual([['exportMemory', alloc.view.getUint32(AllocRecord.HANDLE, true)]]);
    await expect(array.subarray(1).ipcHandle()).rejects.toThrow(/view/);
    await expect(device.empty(4).ipcHandle()).rejects.toThrow(/device\.interprocess/);
    array[Symbol.dispose]();
    await expect(array.ipcHandle()).rejects.toBeInstanceOf(StateError);
  });

  test('of another process have no earlier uses here, and a free closes them', async () => {
    const { channel, device, asked } = cuda();
    const array = await device.openIpcArray(HANDLE, [2, 3], 'f64');
    expect([array.shape, array.dtype, array.device]).toEqual([[2, 3], 'f64', device]);
    expect(asked).toEqual([['openMemory', array.storage.handle, HANDLE, 48]]);
    const stream = device.createStream();
    stream.fill(array, 1);
    expect(channel.opcodes(stream.timeline.slot)).toEqual(['STREAM_CREATE', 'FILL']);
    array[Symbol.dispose]();
    expect(channel.opcodes(stream.timeline.slot).at(-1)).toBe('FREE');
    const unused = await device.openIpcArray(HANDLE, 0, 'u8');
    expect(asked.at(-1)?.[3]).toBe(1);
    unused[Symbol.dispose]();
    expect(channel.records.at(-1)).toMatchObject({ opcode: 'FREE', stream: device.defaultStream.timeline.slot });
    await expect(device.openIpcArray(HANDLE, -1, 'u8')).rejects.toBeInstanceOf(ArgumentError);
    await expect(device.openIpcArray(HANDLE, 2 ** 40, 'u8')).rejects.toBeInstanceOf(ArgumentError);
  });

  test.each([['close', StateError] as const, ['destroy', DeviceLostError] as const])('refuse after `%s`', async (end, error) => {
    const { device } = cuda();
    const event = device.createEvent({ interprocess: true });
    await device[end]();
    await expect(event.ipcHandle()).rejects.toBeInstanceOf(error);
    await expect(device.openIpcEvent(HANDLE)).rejects.toBeInstanceOf(error);
    await expect(device.openIpcArray(HANDLE, 4, 'f32')).rejects.toBeInstanceOf(error);
    expect(() => device.interprocess(4, 'f32')).toThrow(error);
  });
});

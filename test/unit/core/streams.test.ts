// How streams are made: their priority, and wrapped streams.
import { describe, expect, test } from 'vitest';
import { ArgumentError, StateError, UnsupportedError } from '../../../src/core/base/errors.js';
import { StreamCreateRecord } from '../../../src/protocol/protocol.gen.js';
import { collectUntil } from '../../support/wait.js';
import { isSettled } from '../../support/wait.js';
import { closeStream, FakeChannel, type Fixture, fixture, INFO, finish } from './fake-channel.js';

function cuda(): Fixture {
  const channel = new FakeChannel();
  channel.backend = 'cuda';
  return fixture(channel);
}

describe('priority', () => {
  const given = (channel: FakeChannel): number => channel.records.at(-1)!.view.getInt32(StreamCreateRecord.PRIORITY, true);

  // The device's range is [0, -5].
  test.each([
    [undefined, false, 0],
    [0, false, 0],
    [-0, false, 0],
    [-1, false, -1],
    [-2, false, -1],
    [7, false, 0],
    [-3, true, -3],
    [-5, true, -5],
    [-6, true, -5],
    [2, true, 0],
    [Number.MIN_SAFE_INTEGER, true, -5],
  ])('%s, fullRange %s, is clamped to %d', (priority, fullRange, clamped) => {
    const { channel, device } = fixture();
    const stream = device.createStream(priority === undefined ? { fullRange } : { priority, fullRange });
    expect(stream.priority).toBe(clamped);
    expect(given(channel)).toBe(clamped);
    expect(device.info.priorityRange).toEqual([0, -5]);
  });

  test('is always 0 on a device without priorities', () => {
    const channel = new FakeChannel();
    channel.info = { ...INFO, priorityRange: [0, 0] };
    const { device } = fixture(channel);
    expect([{ priority: -1 }, { priority: -1, fullRange: true }].map((opts) => device.createStream(opts).priority)).toEqual([0, 0]);
  });
});

describe('a wrapped stream', () => {
  test('is made from its 64-bit handle', () => {
    const { channel, device } = cuda();
    const handle = 0xfedc_ba98_7654_3210n;
    const stream = device.wrapStream(handle, { label: 'theirs' });
    const { view } = channel.records.at(-1)!;
    expect(view.getUint32(StreamCreateRecord.IS_FOREIGN, true)).toBe(1);
    expect(view.getBigUint64(StreamCreateRecord.FOREIGN, true)).toBe(handle);
    expect([stream.label, stream.nativeHandle, stream.priority]).toEqual(['theirs', handle, 0]);
    expect(device.wrapStream(0n).nativeHandle).toBe(0n);
    stream.fill(stream.empty(4), 1);
    expect(channel.opcodes(stream.timeline.slot)).toEqual(['STREAM_CREATE', 'ALLOC', 'FILL']);
  });

  test('the same handle gives the same Stream, also before the device has created it; after close, a new one', async () => {
    const opened = cuda();
    const { channel, device } = opened;
    const stream = device.wrapStream(16n);
    channel.unmade.add(stream.timeline.slot);
    expect(() => stream.nativeHandle).toThrow(StateError);
    expect(device.wrapStream(16n)).toBe(stream);
    channel.unmade.clear();
    expect(device.wrapStream(16n)).toBe(stream);
    expect(device.wrapStream(32n)).not.toBe(stream);
    await closeStream(opened, stream);
    const again = device.wrapStream(16n);
    expect(again).not.toBe(stream);
    expect(again.isComplete).toBe(true);
  });

  test('is waited for with the work of other code: by its synchronize, and by that of its device', async () => {
    const opened = cuda();
    const { channel, device } = opened;
    const stream = device.wrapStream(16n);
    channel.completeAll();
    for (const wait of [() => stream.synchronize(), () => device.synchronize()]) {
      expect(stream.isComplete).toBe(true);
      const waited = wait();
      expect(channel.opcodes(stream.timeline.slot).at(-1)).toBe('NOP');
      expect(await isSettled(waited)).toBe(false);
      finish(opened);
      await waited;
    }
  });

  test('the handle of a stream of the device gives that stream', () => {
    const { channel, device } = cuda();
    const own = device.createStream();
    const before = channel.records.length;
    expect(device.wrapStream(own.nativeHandle)).toBe(own);
    expect(device.wrapStream(device.defaultStream.nativeHandle)).toBe(device.defaultStream);
    expect(channel.records).toHaveLength(before);
  });

  test('its owners are kept alive exactly while it is open', async () => {
    const opened = cuda();
    const { device } = opened;
    const owners = (): WeakRef<object>[] => {
      const made = [{ name: 'first' }, { name: 'second' }];
      for (const owner of made) device.wrapStream(16n, { owner });
      return made.map((owner) => new WeakRef(owner));
    };
    const kept = owners();
    await collectUntil(() => false, 10);
    expect(kept.map((owner) => owner.deref())).toEqual([{ name: 'first' }, { name: 'second' }]);
    const stream = device.wrapStream(16n);
    await closeStream(opened, stream);
    await collectUntil(() => kept.every((owner) => owner.deref() === undefined));
    expect(kept.map((owner) => owner.deref())).toEqual([undefined, undefined]);
    expect(stream.label).toBe('foreign-1');
  });

  test('is refused on a CPU device, and for an invalid handle', () => {
    const [cpu, gpu] = [fixture(), cuda()];
    expect(() => cpu.device.wrapStream(1n)).toThrow(UnsupportedError);
    for (const wrong of [1, -1n, 2n ** 64n, '1', undefined]) expect(() => gpu.device.wrapStream(wrong as never)).toThrow(ArgumentError);
  });
});

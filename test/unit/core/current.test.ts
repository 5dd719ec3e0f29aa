// The current stream: the effects of `run` and `setCurrentStream`, their scope, and the state afterwards.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { ArgumentError, DeviceLostError, LimitError, StateError } from '../../../src/core/base/errors.js';
import { getDefaultDevice, setDefaultDevice } from '../../../src/core/api/global-functions.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { closeStream } from './fake-channel.js';
import { open, waitsOf } from './opened.js';

test('AsyncLocalStorage is loaded by the first run and not before', () => {
  const load = vi.spyOn(process, 'getBuiltinModule');
  const { device } = open();
  const stream = device.createStream();
  device.setCurrentStream(stream);
  expect(device.stream).toBe(stream);
  setDefaultDevice(device);
  expect(getDefaultDevice()).toBe(device);
  expect(load).not.toHaveBeenCalled();
  stream.run(() => undefined);
  stream.run(() => undefined);
  expect(load).toHaveBeenCalledTimes(1);
  load.mockRestore();
});

describe('run', () => {
  test('of the same stream again adds no wait', () => {
    const { channel, device } = open();
    const stream = device.createStream();
    stream.run(() => stream.run(() => expect(device.stream).toBe(stream), { syncExit: true }), { syncExit: true });
    expect(waitsOf(channel, stream)).toEqual([]);
    expect(device.stream).toBe(device.defaultStream);
  });

  test('passes an exception on and restores the previous state, also with syncExit', async () => {
    const { channel, device } = open();
    const stream = device.createStream();
    const fail = (): never => {
      stream.zeros(4);
      throw new RangeError('mine');
    };
    expect(() => stream.run(fail, { syncExit: true })).toThrow(RangeError);
    expect(device.stream).toBe(device.defaultStream);
    expect(waitsOf(channel, device.defaultStream)).toEqual([stream.timeline.slot]);
    const later = stream.run(
      async () => {
        await nextTurn();
        fail();
      },
      { syncExit: true },
    );
    expect(waitsOf(channel, device.defaultStream)).toHaveLength(1);
    await expect(later).rejects.toThrow(RangeError);
    expect(waitsOf(channel, device.defaultStream)).toHaveLength(2);
    // A result whose `then` cannot be read.
    expect(() => stream.run(() => Object.defineProperty({}, 'then', { get: fail }), { syncExit: true })).toThrow(RangeError);
    expect(waitsOf(channel, device.defaultStream)).toHaveLength(3);
  });

  test('a wait at the beginning that is refused throws before fn is called', () => {
    const { channel, device } = open();
    const stream = device.createStream();
    device.zeros(4);
    channel.refusal = Status.LIMIT;
    const fn = vi.fn<() => void>();
    expect(() => stream.run(fn)).toThrow(LimitError);
    expect(fn).not.toHaveBeenCalled();
  });

  test('refuses a value that is not a function, and a closed stream, before anything happens', async () => {
    const { channel, device } = open();
    const stream = device.createStream();
    expect(() => stream.run(7 as never)).toThrow(ArgumentError);
    const closing = stream.close();
    channel.completeAll();
    const fn = vi.fn<() => void>();
    expect(() => stream.run(fn)).toThrow(StateError);
    expect(fn).not.toHaveBeenCalled();
    await device.destroy();
    await closing.catch(() => undefined);
    expect(() => stream.run(fn)).toThrow(DeviceLostError);
  });

  test('ends without an error when the outer stream was closed or the device lost meanwhile', async () => {
    const { channel, device, progress } = open();
    const [a, b] = [device.createStream(), device.createStream()];
    device.setCurrentStream(a);
    const value = b.run(
      () => {
        void a.close();
        return 3;
      },
      { syncExit: true },
    );
    expect(value).toBe(3);
    channel.completeAll();
    progress.wake();
    device.setCurrentStream(device.defaultStream);
    const after = b.run(
      async () => {
        await device.destroy();
        return 4;
      },
      { syncExit: true },
    );
    expect(await after).toBe(4);
  });
});

describe('setCurrentStream', () => {
  test('refuses streams of other devices, closed ones and other values', () => {
    const [one, two] = [open(), open()];
    const other = two.device.createStream();
    const refusal = expect.objectContaining({ code: 'ERR_MILLRACE_DEVICE_MISMATCH', argument: 'stream' });
    expect(() => one.device.setCurrentStream(other)).toThrow(refusal);
    expect(() => one.device.setCurrentStream(other)).toThrow(ArgumentError);
    expect(() => one.device.setCurrentStream({} as never)).toThrow(ArgumentError);
    const closing = one.device.createStream();
    void closing.close();
    expect(() => one.device.setCurrentStream(closing)).toThrow(StateError);
    expect(one.device.stream).toBe(one.device.defaultStream);
  });

  test('a closed current stream stays current: making an array throws and names the stream', async () => {
    const all = open();
    const { device } = all;
    const stream = device.createStream({ label: 'mine' });
    device.setCurrentStream(stream);
    await closeStream(all, stream);
    expect(() => device.zeros(4)).toThrow(/Stream mine .* is closed/);
    const next = device.createStream();
    expect(next.run(() => device.zeros(4)).length).toBe(4);
    device.setCurrentStream(device.defaultStream, { sync: true });
    expect(device.zeros(4).length).toBe(4);
  });
});

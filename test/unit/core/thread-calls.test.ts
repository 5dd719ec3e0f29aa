// Calls that name no device or stream: which one they use, and that they keep no device in memory.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { elapsed } from '../../../src/core/api/elapsed.js';
import { ArgumentError, DeviceLostError, StateError, StreamHazardError, WaitTimeoutError } from '../../../src/core/base/errors.js';
import type { Device } from '../../../src/core/api/device.js';
import { getDefaultDevice, recordEvent, setDefaultDevice, synchronize } from '../../../src/core/api/global-functions.js';
import { collectUntil } from '../../support/wait.js';
import { fixture } from './fake-channel.js';
import { open } from './opened.js';

test('the default device is the first opened one that is still open', async () => {
  expect(() => getDefaultDevice()).toThrow(StateError);
  expect(() => recordEvent()).toThrow(StateError);
  const [one, two, three] = [open(), open(), open()];
  expect(getDefaultDevice()).toBe(one.device);
  setDefaultDevice(three.device);
  expect(getDefaultDevice()).toBe(three.device);
  await three.device.destroy();
  expect(getDefaultDevice()).toBe(one.device);
  await one.device.destroy();
  expect(getDefaultDevice()).toBe(two.device);
  expect(() => setDefaultDevice(one.device)).toThrow(DeviceLostError);
  const lost = open();
  lost.core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
  expect(() => setDefaultDevice(lost.device)).toThrow(DeviceLostError);
  for (const stranger of [{}, undefined, 'gpu:0', two.core]) expect(() => setDefaultDevice(stranger as never)).toThrow(ArgumentError);
});

test('a timeout of synchronize names the devices and what their streams wait for', async () => {
  const [one, two] = [open(), open()];
  two.device.createStream({ label: 'slow' }).zeros(4);
  const error: unknown = await synchronize({ timeoutMs: 1 }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(WaitTimeoutError);
  expect((error as WaitTimeoutError).waitingFor.map(({ stream }) => stream)).toEqual(['slow']);
  expect((error as WaitTimeoutError).message).toContain(`${one.core.name}, ${two.core.name}`);
});

test('awaited calls of synchronize and elapsed order later uses on checked streams', async () => {
  const { channel, device, progress } = open();
  channel.answers.set('elapsed', () => 1);
  const [a, b] = [device.createStream({ ordering: 'checked' }), device.createStream({ ordering: 'checked' })];
  const array = a.zeros(4);
  const complete = (): void => {
    channel.completeAll();
    progress.wake();
  };
  complete();
  expect(() => b.fill(array, 1)).toThrow(StreamHazardError);
  const event = a.record({ timing: true });
  complete();
  await elapsed(event, event);
  b.fill(array, 1);
  complete();
  expect(() => a.fill(array, 2)).toThrow(StreamHazardError);
  await synchronize();
  a.fill(array, 2);
});

test('nothing keeps a closed device in memory', async () => {
  async function openAndClose(): Promise<WeakRef<Device>> {
    const { channel, device, progress } = fixture();
    setDefaultDevice(device);
    const stream = device.createStream();
    device.setCurrentStream(stream);
    await stream.run(async () => nextTurn());
    const closing = device.close();
    channel.completeAll();
    progress.wake();
    await closing;
    return new WeakRef(device);
  }
  const device = await openAndClose();
  await collectUntil(() => device.deref() === undefined);
  expect(device.deref()).toBeUndefined();
});

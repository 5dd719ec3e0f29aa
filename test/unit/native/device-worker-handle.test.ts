// A device's worker before a device is open in it, on a worker that speaks and ends when the test says so.
import { EventEmitter } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { DeviceLostError } from '../../../src/core/base/errors.js';
import type { Binding } from '../../../src/native/binding.js';
import { RAISE_LIMITS } from '../../../src/native/load.js';
import type { Encoder } from '../../../src/protocol/encoder.js';
import type { NativeDeviceInfo } from '../../../src/protocol/reports.js';
import { DeviceWorkerHandle } from '../../../src/workers/device-worker-handle.js';
import { asOpenFailure } from '../../../src/workers/native-errors.js';

class SpokenWorker extends EventEmitter {
  readonly heard: unknown[] = [];
  postMessage(message: unknown): void {
    this.heard.push(message);
  }
  ref(): void {}
  unref(): void {}
}

async function looked(): Promise<{ readonly worker: SpokenWorker; readonly thread: DeviceWorkerHandle; readonly detached: number[] }> {
  const worker = new SpokenWorker();
  const detached: number[] = [];
  const binding = { attach: () => undefined, detach: (id: number) => detached.push(id) } as unknown as Binding;
  const thread = new DeviceWorkerHandle(binding, worker as unknown as Worker);
  const backends = thread.backends();
  worker.emit('message', { type: 'enumerated', backends: [] });
  expect(await backends).toEqual([]);
  return { worker, thread, detached };
}
const open = (thread: DeviceWorkerHandle): Promise<unknown> =>
  thread.open(
    'cpu',
    { ordinal: 0 } as NativeDeviceInfo,
    {
      maxPending: 1,
      isGuarded: false,
      memoryLimitBytes: 0,
      findsRaces: false,
      schedule: 0,
      seed: 2 ** 32,
      threads: 0,
      images: undefined,
      isolation: 'thread',
      launchTimeoutMs: 0,
    },
    {} as Encoder,
  );

test('an error of the worker between its two messages is no uncaught one, and the opening is refused with it', async () => {
  const { worker, thread } = await looked();
  const error = new Error('on purpose');
  worker.emit('error', error);
  worker.emit('exit', 1);
  expect(thread.hasEnded).toBe(true);
  await expect(open(thread)).rejects.toMatchObject({ code: 'ERR_MILLRACE_INTERNAL', cause: error });
  await thread.close();
}, 2000);

test('an opening for which there are too few addresses says so', () => {
  const error = asOpenFailure(new RangeError('Array buffer allocation failed'), 'cpu:0');
  expect(error).toMatchObject({ code: 'ERR_MILLRACE_UNAVAILABLE', device: 'cpu:0', help: [RAISE_LIMITS] });
});

test('an exit of the worker before, or while, the device opens refuses the opening', async () => {
  const before = await looked();
  before.worker.emit('exit', 1);
  await expect(open(before.thread)).rejects.toThrow(DeviceLostError);
  const during = await looked();
  const opening = open(during.thread);
  during.worker.emit('exit', 1);
  await expect(opening).rejects.toMatchObject({ reason: 'worker-exit' });
}, 2000);

test('an exit right behind the message that the device is open is heard by the channel', async () => {
  const { worker, thread, detached } = await looked();
  const opening = open(thread);
  const buffers = { timeline: new SharedArrayBuffer(8), arena: new SharedArrayBuffer(8) };
  worker.emit('message', { type: 'opened', channel: 5, info: { ordinal: 0 }, ...buffers });
  worker.emit('exit', 1);
  await opening;
  expect(detached).toEqual([5]);
}, 2000);

// What one thread asks of the device's worker, which all threads use: a refusal is that thread's alone.
import { expect, test } from 'vitest';
import type { FromWorker } from '../../../src/workers/messages.js';
import { type ControlledDevice, WorkerClient } from '../../../src/workers/worker-client.js';

test('memory that cannot be registered, and memory that the driver does not unlock, end no worker', () => {
  const sent: FromWorker[] = [];
  const registered: (readonly number[])[] = [];
  const binding = {
    registerHost(_channel: number, handle: number, { length }: Uint8Array): void {
      if (length > 1) throw new Error('registerHost: wrong arguments');
      registered.push([handle, length]);
    },
    unregisterHost(): void {
      throw new Error('unregisterHost: the driver refused');
    },
  };
  const device = { binding, channel: 1, isOnCpu: false, isClosing: false } as unknown as ControlledDevice;
  const client = new WorkerClient(device, (message) => sent.push(message));
  const buffer = new SharedArrayBuffer(8);
  client.receive({ type: 'register', handle: 5, buffer, byteOffset: 16, byteLength: 8, isLocked: true });
  client.receive({ type: 'register', handle: 6, buffer, byteOffset: 0, byteLength: 8, isLocked: true });
  // Copies of the bytes that are not there fail as out of bounds.
  expect(registered).toEqual([
    [5, 1],
    [6, 1],
  ]);
  client.receive({ type: 'unregister', handle: 5 });
  expect(sent.map(({ type }) => type)).toEqual(['registerFailed', 'registerFailed', 'unregistered']);
});

// Four widths of waiting on the host: for everything, for a device, for a stream, for an event. The narrowest that serves
// is the best. None of them blocks the thread.
import assert from 'node:assert/strict';
import { synchronize, type Device } from 'millrace';
import { spin } from './kernels.js';

export async function run(devices: readonly Device[]): Promise<void> {
  const streams = devices.map((device) => device.createStream());
  const arrays = streams.map((stream) => stream.zeros(1));
  const work = (): void => {
    for (const [n, stream] of streams.entries()) stream.launch(spin, 1, { x: arrays[n]!, steps: 100_000 });
  };

  work();
  await synchronize();
  assert.ok(streams.every((stream) => stream.isComplete));

  work();
  await Promise.all(devices.map((device) => device.synchronize()));
  assert.ok(streams.every((stream) => stream.isComplete));

  work();
  await streams[0]!.synchronize();
  assert.ok(streams[0]!.isComplete);

  work();
  const events = streams.map((stream) => stream.record());
  work();
  await events[0]!.done;
  assert.ok(events[0]!.isComplete);

  await synchronize();
  for (const one of [...arrays, ...events]) one[Symbol.dispose]();
  await Promise.all(streams.map((stream) => stream.close()));
}

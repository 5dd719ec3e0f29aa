// Two results of one stream, each read as soon as it is there: an event behind each copy, and no wait for the whole stream.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';

export async function run([device]: readonly [Device]): Promise<void> {
  const n = 512;
  const stream = device.createStream();
  using x = stream.empty(n, 'i32');
  using first = device.pinned(n, 'i32');
  using second = device.pinned(n, 'i32');

  stream.fill(x, 17);
  stream.copy(first, x);
  using firstArrived = stream.record();
  stream.fill(x, 42);
  stream.copy(second, x);
  using secondArrived = stream.record();

  await firstArrived.done;
  assert.ok(first.data.every((value) => value === 17));
  await secondArrived.done;
  assert.ok(second.data.every((value) => value === 42));
  await stream.close();
}

// Reading needs no synchronisation: it waits for what wrote the array, on whichever stream, and for nothing else.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';
import { addTo } from './kernels.js';

export async function run([device]: readonly [Device]): Promise<void> {
  const [one, two] = [device.createStream(), device.createStream()];
  using x = device.zeros(100);
  using y = device.zeros(100);
  one.launch(addTo, 100, { x, value: 17 });
  two.launch(addTo, 100, { x: y, value: 42 });
  assert.ok((await x.read()).every((value) => value === 17));
  assert.ok((await y.read()).every((value) => value === 42));
  assert.equal(await y.item(99), 42);
  await Promise.all([one.close(), two.close()]);
}

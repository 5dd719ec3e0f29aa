// A launch returns as soon as it is submitted: two devices work at the same time, and this thread computes beside them.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';
import { saxpy } from './kernels.js';

export async function run(devices: readonly Device[]): Promise<void> {
  const n = 1 << 16;
  await Promise.all(devices.map((device) => device.compile(saxpy)));
  const work = devices.map((device, at) => {
    const x = device.ones(n);
    const y = device.full(n, at);
    for (let round = 0; round < 10; round++) device.stream.launch(saxpy, n, { a: 2, x, y });
    return { x, y };
  });

  // Both devices are busy, and so is the CPU.
  let sum = 0;
  for (let k = 0; k < n; k++) sum += k % 3;
  assert.equal(sum, 65535);

  for (const [at, { x, y }] of work.entries()) {
    const values = await y.read();
    assert.ok(values.every((value) => value === 20 + at));
    x[Symbol.dispose]();
    y[Symbol.dispose]();
  }
}

// One batch over several devices. Every device has a worker of its own and the loop only submits, so one thread keeps all of
// them busy; the parts meet on the first device.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';
import { addTo, square } from './kernels.js';

export async function run(devices: readonly Device[]): Promise<void> {
  const part = 4096;
  await Promise.all(devices.map((device) => device.compile(square, addTo)));
  const batch = Float32Array.from({ length: part * devices.length }, (_, n) => n % 100);

  const home = devices[0]!;
  using gathered = home.empty(batch.length);
  for (const [rank, device] of devices.entries()) {
    const range = [rank * part, (rank + 1) * part] as const;
    const stream = device.createStream({ label: `rank ${rank}` });
    stream.run(() => {
      using x = device.from(batch.subarray(...range));
      using y = device.empty(part);
      stream.launch(square, part, { x, y });
      stream.launch(addTo, part, { x: y, value: rank });
      // Freed behind the copy, although this block ends now.
      stream.copy(gathered.subarray(...range), y);
    });
    void stream.close();
  }
  const values = await gathered.read();
  assert.ok(values.every((value, n) => value === batch[n]! ** 2 + Math.floor(n / part)));
}

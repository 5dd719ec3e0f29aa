// Copies between host and device. An ordinary array is taken at the call and may change at once; pinned memory is copied
// where it stands, so it must be left alone until the copy is done.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';

export async function run([device]: readonly [Device]): Promise<void> {
  const n = 10_000;
  const { stream } = device;
  using a = device.empty(n);
  using b = device.empty(n);

  // Pageable: the bytes of the call count.
  const data = new Float32Array(n).fill(3);
  stream.copy(a, data);
  data.fill(-1);

  // On the device, and back into pinned memory.
  stream.copy(b, a);
  using pinned = device.pinned(n);
  const arrived = stream.copy(pinned, b);
  await arrived.done;
  assert.ok(pinned.data.every((value) => value === 3));

  // Pinned to device, then a part of it back into an ordinary array.
  pinned.data.fill(4);
  stream.copy(a, pinned);
  const part = new Float32Array(5);
  await stream.copy(part, a, { srcOffset: n - 5 }).done;
  assert.deepEqual([...part], [4, 4, 4, 4, 4]);
}

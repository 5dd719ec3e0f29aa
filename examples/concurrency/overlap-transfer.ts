// While one half of the data is computed on, the other is on its way: two streams, pinned memory, and chunks that share one
// array. Uses of disjoint parts never wait for each other.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';
import { square } from './kernels.js';

const CHUNKS = 8;
const CHUNK = 1 << 14;

export async function run([device]: readonly [Device]): Promise<void> {
  await device.compile(square);
  using input = device.pinned(CHUNKS * CHUNK);
  using output = device.pinned(CHUNKS * CHUNK);
  input.data.forEach((_, n) => (input.data[n] = n % 1000));
  using x = device.empty(CHUNKS * CHUNK);
  using y = device.empty(CHUNKS * CHUNK);

  const streams = [device.createStream({ label: 'even' }), device.createStream({ label: 'odd' })];
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    const stream = streams[chunk % 2]!;
    const [from, to] = [chunk * CHUNK, (chunk + 1) * CHUNK];
    const part = { x: x.subarray(from, to), y: y.subarray(from, to) };
    stream.copy(part.x, input.subarray(from, to));
    stream.launch(square, CHUNK, part);
    stream.copy(output.subarray(from, to), part.y);
  }
  await Promise.all(streams.map((stream) => stream.synchronize()));
  assert.ok(output.data.every((value, n) => value === (n % 1000) ** 2));
  await Promise.all(streams.map((stream) => stream.close()));
}

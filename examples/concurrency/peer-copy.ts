// From one device to another. Tracked arrays order such a copy with the work of both devices by themselves; on explicit
// streams the copy has to wait for the stream that makes its source.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';
import { addTo } from './kernels.js';

export async function run([first, second]: readonly [Device, Device]): Promise<void> {
  const n = 4096;
  await Promise.all([first.compile(addTo), second.compile(addTo)]);

  using source = first.zeros(n);
  using destination = second.zeros(n);
  first.stream.launch(addTo, n, { x: source, value: 17 });
  second.stream.copy(destination, source);
  second.stream.launch(addTo, n, { x: destination, value: 25 });
  assert.ok((await destination.read()).every((value) => value === 42));

  // By hand: the consumer waits for the producer, and the producer's next write for the copy.
  const producer = first.createStream({ ordering: 'explicit' });
  const consumer = second.createStream({ ordering: 'explicit' });
  producer.waitStream(first.stream);
  producer.waitStream(second.stream);
  consumer.waitStream(second.stream);
  for (let round = 1; round <= 5; round++) {
    producer.fill(source, round);
    consumer.waitStream(producer);
    consumer.copy(destination, source);
    producer.waitStream(consumer);
  }
  await consumer.synchronize();
  assert.equal(await destination.item(n - 1), 5);
  await Promise.all([producer.close(), consumer.close()]);
}

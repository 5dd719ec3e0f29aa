// An event is a place in a stream. Another stream waits for it on the device; whatever the producer is given afterwards is
// no concern of the consumer.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';
import { addTo } from './kernels.js';

export async function run([device]: readonly [Device]): Promise<void> {
  const n = 1024;
  await device.compile(addTo);
  const producer = device.createStream({ ordering: 'explicit' });
  const consumer = device.createStream({ ordering: 'explicit' });
  using x = producer.zeros(n);
  using y = consumer.zeros(n);
  using ready = device.createEvent();
  using taken = device.createEvent();

  for (let round = 1; round <= 4; round++) {
    producer.waitEvent(taken);
    producer.launch(addTo, n, { x, value: round });
    producer.record(ready);
    consumer.waitEvent(ready);
    consumer.copy(y, x);
    consumer.record(taken);
  }
  // Or in one line, with an event of its own: everything that the producer has been given so far.
  consumer.waitStream(producer);
  assert.ok((await y.read()).every((value) => value === 10));
  await Promise.all([producer.close(), consumer.close()]);
}

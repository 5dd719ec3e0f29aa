// The short forms: they speak of the current stream of the default device.
import assert from 'node:assert/strict';
import { recordEvent, waitEvent, waitStream, type Device } from 'millrace';

export async function run([device]: readonly [Device]): Promise<void> {
  const producer = device.createStream({ ordering: 'explicit' });
  const consumer = device.createStream({ ordering: 'explicit' });
  const x = await producer.run(async () => {
    const made = device.full(16, 5);
    const event = recordEvent();
    assert.equal(event.device, device);
    consumer.run(
      () => {
        waitEvent(event);
        waitStream(producer);
        device.stream.fill(made, 6);
      },
      { syncEnter: false },
    );
    return made;
  });
  assert.ok((await x.read()).every((value) => value === 6));
  x[Symbol.dispose]();
  await Promise.all([producer.close(), consumer.close()]);
}

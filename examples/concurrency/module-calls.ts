// The short forms, which name no device and no stream: they work on the default device and its current stream.
import assert from 'node:assert/strict';
import {
  array,
  copy,
  createStream,
  empty,
  fill,
  getStream,
  launch,
  recordEvent,
  waitEvent,
  waitStream,
  withDevice,
  type Device,
} from 'millrace';
import { addTo } from './kernels.js';

export async function run([device]: readonly [Device]): Promise<void> {
  await withDevice(device, async () => {
    const x = array([1, 2, 3, 4]);
    const y = empty(4);
    launch(addTo, x.length, { x, value: 1 });
    copy(y, x);
    assert.deepEqual([...(await y.read())], [2, 3, 4, 5]);

    const producer = createStream({ ordering: 'explicit' });
    const consumer = createStream({ ordering: 'explicit' });
    const made = producer.run(() => {
      fill(x, 5); // on the producer's stream
      return recordEvent();
    });
    consumer.run(
      () => {
        waitEvent(made);
        waitStream(producer);
        assert.equal(getStream(), consumer);
        launch(addTo, x.length, { x, value: 1 });
      },
      { syncEnter: false },
    );
    assert.deepEqual([...(await x.read())], [6, 6, 6, 6]);
    x[Symbol.dispose]();
    y[Symbol.dispose]();
    await Promise.all([producer.close(), consumer.close()]);
  });
}

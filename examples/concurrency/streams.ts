// Streams: each device has one from the start, more are made, one is the current one. Where the device is a GPU, a stream of
// another library takes part by its handle.
import assert from 'node:assert/strict';
import { getDefaultDevice, type Device } from 'millrace';
import { addTo } from './kernels.js';

export async function run([device]: readonly [Device]): Promise<void> {
  const before = device.stream;
  assert.equal(before, device.defaultStream);

  // For a function, and what it awaits; the device is the default one meanwhile.
  const stream = device.createStream({ label: 'mine' });
  const x = await stream.run(async () => {
    assert.equal(device.stream, stream);
    assert.equal(getDefaultDevice(), device);
    const made = device.ones(8);
    await made.read();
    device.stream.launch(addTo, 8, { x: made, value: 1 });
    return made;
  });
  assert.equal(device.stream, before);
  assert.deepEqual(
    [...(await x.read())],
    Array.from({ length: 8 }, () => 2),
  );

  // Until further notice; with `sync` the new current stream waits for the old one.
  device.setCurrentStream(stream, { sync: true });
  assert.equal(device.stream, stream);
  device.setCurrentStream(device.defaultStream);
  assert.equal(device.stream, before);

  if (device.info.backend === 'cuda') {
    const foreign = device.wrapStream(0n, { label: 'the default stream of the driver' });
    foreign.fill(x, 9);
    assert.equal(await x.item(0), 9);
    await foreign.close();
  }
  x[Symbol.dispose]();
  await stream.close();
}

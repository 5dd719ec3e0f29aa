// Each function has a current stream of its own, for every device, and keeps it while it waits: what threads are to other
// systems, asynchronous functions are here. Streams are equal when they are the same.
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import type { Device, Stream } from 'millrace';

export async function run([device]: readonly [Device]): Promise<void> {
  const streams = [device.createStream(), device.createStream(), device.createStream()];
  const work = async (mine: Stream): Promise<number> => {
    let sum = 0;
    for (let n = 0; n < 5; n++) {
      await turn();
      assert.equal(device.stream, mine);
      using x = device.full(4, n);
      sum += await x.item(0);
    }
    return sum;
  };
  const sums = await Promise.all(streams.map((stream) => stream.run(() => work(stream))));
  assert.deepEqual(sums, [10, 10, 10]);

  // Use one from now on, then the default one again.
  device.setCurrentStream(streams[0]!);
  assert.equal(device.stream, streams[0]);
  device.setCurrentStream(device.defaultStream);
  assert.equal(device.stream, device.defaultStream);
  assert.notEqual(streams[0], streams[1]);
  assert.equal(new Set([...streams, device.stream, device.defaultStream]).size, 4);
  await Promise.all(streams.map((stream) => stream.close()));
}

// A worker that shares a device and measures what it does: test/conformance/runtime/usages.test.ts.
import { parentPort, workerData } from 'node:worker_threads';
import { openShared } from 'millrace';
import { usage } from 'millrace/timeline';

const device = await openShared(workerData);
const { used } = usage(async () => {
  const x = device.zeros([1024]);
  for (let n = 0; n < 3; n++) device.stream.fill(x, n);
  await x.read();
});
const { bytesToHost, deviceMs } = await used;
await device.close();
parentPort.postMessage({ bytesToHost, deviceMs });

// One device, two threads: a worker squares, on a stream of its own, what this thread uploads. The arrays pass as tokens, so nothing is
// copied, and the worker's stream waits on the device for the upload.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import type { Device } from 'millrace';

/** The worker, which a program of its own keeps in a file of its own. */
const WORKER = `
const { parentPort, workerData } = require('node:worker_threads');
(async () => {
  const { cudaKernel, input, openShared, output, f32 } = require(workerData.library);
  const square = cudaKernel('square', { x: input(f32), y: output(f32) },
    'extern "C" __global__ void square(const float* x, float* y) { int i = threadIdx.x; y[i] = x[i] * x[i]; }');
  const device = await openShared(workerData.device);
  const stream = device.createStream({ label: 'worker' });
  const x = device.adopt(workerData.x);
  const y = stream.empty(x.length);
  stream.launch(square, { grid: 1, block: x.length }, { x, y });
  parentPort.postMessage(y.share()); // not computed yet: the stream that adopts it waits on the device
  await new Promise((resolve) => parentPort.once('message', resolve)); // y was adopted
  y[Symbol.dispose]();
  await device.close();
})();
`;

export async function run([device]: readonly [Device]): Promise<void> {
  const upload = device.createStream({ label: 'upload' });
  using x = upload.from(Float32Array.from({ length: 64 }, (_, i) => i));
  const library = createRequire(import.meta.url).resolve('millrace');
  const worker = new Worker(WORKER, { eval: true, workerData: { library, device: device.share(), x: x.share() } });
  const ended = once(worker, 'exit');
  const [token] = await once(worker, 'message');
  using y = device.adopt(token, 'f32'); // checks the dtype of what came
  worker.postMessage('adopted');
  assert.deepEqual([...(await y.read())].slice(0, 5), [0, 1, 4, 9, 16]);
  await Promise.all([ended, upload.close()]);
}

// Threads that share one device and submit a million operations altogether: `sharing-crowd.mjs <spec> <threads> <operations>`.
// Each stream counts by a chain of launches in which every launch and its place in the order show in the result.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { cudaKernel, inout, openDevice, openShared, u32 } from 'millrace';
import { untilGivenBack } from './given-back.mjs';

const STREAMS = 4;
/** Submitted by a stream before it waits for some of it. */
const BATCH = 512;

const mix = cudaKernel(
  'mix',
  { x: inout(u32), k: u32 },
  `extern "C" __global__ void mix(unsigned* x, unsigned k) { x[0] = x[0] * 1664525u + k; }`,
);

if (isMainThread) {
  const [spec, threads, operations] = process.argv.slice(2);
  const device = await openDevice(spec);
  const each = Math.ceil(Number(operations) / Number(threads));
  const workers = Array.from(
    { length: Number(threads) },
    () => new Worker(new URL(import.meta.url), { workerData: { token: device.share(), each } }),
  );
  let done = 0;
  for (const worker of workers) worker.on('message', (count) => (done += count));
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
  console.log(done >= Number(operations) ? `at least ${operations} operations` : `${done} operations`);
  await untilGivenBack(device);
  await device.close();
} else {
  const { token, each } = workerData;
  const device = await openShared(token);
  const count = Math.ceil(each / STREAMS);
  const run = async () => {
    const stream = device.createStream();
    const x = stream.zeros(1, u32);
    let expected = 0;
    for (let k = 1; k <= count; k++) {
      stream.launch(mix, { grid: 1, block: 1 }, { x, k });
      expected = (Math.imul(expected, 1664525) + k) >>> 0;
      if (k % BATCH === 0) await stream.ready({ below: BATCH / 2 });
    }
    const found = await x.item(0);
    if (found !== expected) throw new Error(`The chain gave ${found} in place of ${expected}.`);
    return count;
  };
  const counts = await Promise.all(Array.from({ length: STREAMS }, run));
  parentPort.postMessage(counts.reduce((sum, next) => sum + next, 0));
  await device.close();
}

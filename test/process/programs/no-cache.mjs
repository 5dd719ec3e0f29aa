// Builds a kernel where no cache folder can be made, so that a temporary folder holds it, and ends in the given way without closing the
// device. Prints how many entries TMPDIR has while the device is open, and after the worker was terminated.
//   no-cache.mjs <nothing left | exit | throw | terminate>
import { readdirSync } from 'node:fs';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { cudaKernel, i32, openDevice, output } from 'millrace';

const how = isMainThread ? process.argv[2] : workerData;
const count = () => readdirSync(process.env.TMPDIR).length;

async function build() {
  const device = await openDevice('cpu');
  const y = device.empty(4, 'i32');
  const k = cudaKernel('k', { y: output(i32) }, 'extern "C" __global__ void k(int* y) { y[threadIdx.x] = 1; }');
  await device.stream.launch(k, { grid: 1, block: 4 }, { y }).done;
  return y;
}

if (!isMainThread) {
  const y = await build();
  parentPort.postMessage(count());
  setInterval(() => y, 1000);
} else if (how === 'terminate') {
  const worker = new Worker(new URL(import.meta.url), { workerData: how });
  console.log(await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject)));
  await worker.terminate();
  // The device's worker ends a moment after its owner.
  for (const start = performance.now(); count() > 0 && performance.now() - start < 5000; )
    await new Promise((resolve) => setTimeout(resolve, 5));
  console.log(count());
} else {
  const y = await build();
  console.log(count(), y.length);
  if (how === 'exit') process.exit(7);
  if (how === 'throw') {
    setImmediate(() => {
      throw new Error('on purpose');
    });
  }
}

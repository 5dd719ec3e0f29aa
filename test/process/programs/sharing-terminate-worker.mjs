// A worker of sharing-terminate.mjs. Node 20 aborts the process when a worker is terminated just as it begins to evaluate a module with a
// top-level await, so this module has none.
import { parentPort, workerData } from 'node:worker_threads';
import { cudaKernel, inout, openShared, u32 } from 'millrace';

const mix = cudaKernel(
  'mix',
  { x: inout(u32), k: u32 },
  `extern "C" __global__ void mix(unsigned* x, unsigned k) { x[0] = x[0] * 1664525u + k; }`,
);

/** Launches until it is told to end, and says whether the result is right. */
async function survive() {
  const device = await openShared(workerData.token);
  const stream = device.createStream();
  const x = stream.zeros(1, u32);
  const over = new AbortController();
  parentPort.once('message', () => over.abort());
  let expected = 0;
  for (let k = 1; !over.signal.aborted; k++) {
    stream.launch(mix, { grid: 1, block: 1 }, { x, k });
    expected = (Math.imul(expected, 1664525) + k) >>> 0;
    if (k % 64 === 0) await stream.synchronize();
  }
  parentPort.postMessage((await x.item(0)) === expected ? 'a survivor went on' : 'a survivor lost work');
  await device.close();
}

/** Uses everything of a shared device, until it is terminated. */
async function use() {
  const device = await openShared(workerData.token);
  const kept = [];
  for (let k = 0; ; k++) {
    const stream = device.createStream();
    const x = stream.full(50_000, k, u32);
    const pinned = device.pinned(1000, u32);
    stream.launch(mix, { grid: 1, block: 1 }, { x, k });
    stream.copy(x.subarray(0, 1000), pinned);
    stream.hold(() => new Promise((resolve) => setImmediate(resolve)), { timeoutMs: 10_000 });
    stream.record({ timing: true });
    const read = x.read();
    if (k % 3 === 0) {
      kept.push(x, pinned);
      void read.catch(() => undefined);
    } else {
      await read;
      x[Symbol.dispose]();
      pinned[Symbol.dispose]();
      await stream.close();
    }
    parentPort.postMessage(k);
  }
}

void (workerData.part === 'survivor' ? survive() : use());

// Threads that share a device are terminated, each at a moment of its own, while others go on: `sharing-terminate.mjs <spec> <victims>`.
// A victim is terminated a number of its messages after it began, so that it is hit wherever it is by then.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { cudaKernel, inout, openDevice, openShared, u32 } from 'millrace';
import { untilGivenBack } from './given-back.mjs';

/** Victims that live at the same time. */
const ABREAST = 4;
/** Messages after which a victim is terminated, at the most. */
const LONGEST_LIFE = 40;

const mix = cudaKernel(
  'mix',
  { x: inout(u32), k: u32 },
  `extern "C" __global__ void mix(unsigned* x, unsigned k) { x[0] = x[0] * 1664525u + k; }`,
);

const start = (part, device) => new Worker(new URL(import.meta.url), { workerData: { part, token: device.share() } });

if (isMainThread) {
  const [spec, victims] = process.argv.slice(2);
  const device = await openDevice(spec);
  const survivors = ['survivor', 'survivor'].map((part) => start(part, device));
  const results = survivors.map((survivor) => once(survivor, 'message'));
  const exits = survivors.map((survivor) => once(survivor, 'exit'));
  let left = Number(victims);
  const endOne = async (n) => {
    const victim = start('victim', device);
    let failed;
    victim.on('error', (error) => (failed = error));
    const ended = once(victim, 'exit');
    const life = (n * 7) % LONGEST_LIFE;
    let heard = 0;
    await new Promise((resolve) => {
      // Life 0: wherever it is in its start.
      if (life === 0) victim.once('online', resolve);
      else victim.on('message', () => ++heard === life && resolve());
      void ended.then(resolve);
    });
    await victim.terminate();
    await ended;
    if (failed !== undefined) console.log(`a victim failed: ${failed.stack}`);
  };
  const lane = async () => {
    while (left > 0) await endOne(left--);
  };
  await Promise.all(Array.from({ length: ABREAST }, lane));
  console.log('all terminated');
  for (const survivor of survivors) survivor.postMessage('end');
  for (const result of results) console.log((await result)[0]);
  await Promise.all(exits);
  await untilGivenBack(device);
  await device.close();
} else if (workerData.part === 'survivor') {
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
} else {
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

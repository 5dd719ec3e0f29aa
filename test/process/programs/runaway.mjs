// Kernels that never end, or would take minutes, and the device's end under them.
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parentPort, isMainThread, Worker, workerData } from 'node:worker_threads';
import { cudaKernel, DeviceLostError, i32, inout, openDevice, u32, WaitTimeoutError } from 'millrace';
import { checkDevice } from './work.mjs';

/** One block that goes on until somebody writes. It counts, so it is not a wait that the CPU device ends (S487). */
const forever = cudaKernel(
  'forever',
  { x: inout(u32) },
  `extern "C" __global__ void forever(unsigned* x) {
  volatile unsigned* seen = x;
  seen[0] = 1u;
  for (unsigned n = 0u; seen[0] != 0u; ++n) {}
}`,
);
/** Blocks of some milliseconds each. */
const slow = cudaKernel(
  'slow',
  { x: inout(u32), turns: i32 },
  `extern "C" __global__ void slow(unsigned* x, int turns) {
  unsigned value = x[0] + blockIdx.x;
  for (int n = 0; n < turns; ++n) value = value * 1664525u + 1013904223u;
  if (value == 1u) x[0] = value;
}`,
);
/** The first half ends at once, so that the others are taken many at a time. */
const uneven = cudaKernel(
  'uneven',
  { x: inout(u32), turns: i32 },
  `extern "C" __global__ void uneven(unsigned* x, int turns) {
  if (blockIdx.x < gridDim.x / 2) return;
  unsigned value = x[0] + blockIdx.x;
  for (int n = 0; n < turns; ++n) value = value * 1664525u + 1013904223u;
  if (value == 1u) x[0] = value;
}`,
);
const TURNS = 5_000_000;
const BLOCKS = 100_000;

const [how, name = 'cpu'] = isMainThread ? process.argv.slice(2) : workerData;
const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs the kernel that never ends; resolves when it has begun. */
async function begin(device) {
  await device.compile(forever);
  const stream = device.createStream({ label: 'lane' });
  const x = device.zeros(1, 'u32');
  await device.synchronize();
  stream.launch(forever, 1, { x }).done.catch(() => {});
  while (device.inspect().streams.find((one) => one.stream === 'lane').current?.kind !== 'launch') await after(1);
  await after(50);
  return x;
}

/** Minutes of work, the first of it running. */
async function flood(device, kernel = slow) {
  await device.compile(kernel);
  const streams = [0, 1].map((n) => device.createStream({ label: `lane ${n}` }));
  const x = device.zeros(1, 'u32');
  await device.synchronize();
  for (const stream of streams)
    for (let n = 0; n < 300; n++) stream.launch(kernel, { grid: BLOCKS, block: 1 }, { x, turns: TURNS }).done.catch(() => {});
  await after(300);
  return x;
}

/** Whether no thread of a CPU device is left, soon. They end when nothing runs any more. */
async function isQuiet() {
  const commandOf = (task) => {
    try {
      return readFileSync(`/proc/self/task/${task}/comm`, 'utf8');
    } catch {
      return '';
    }
  };
  for (const start = performance.now(); performance.now() - start < 8000; await after(20)) {
    if (!readdirSync('/proc/self/task').some((task) => commandOf(task).startsWith('mr-cpu'))) return true;
  }
  return false;
}

async function rejection(promise) {
  const start = performance.now();
  const error = await promise.then(
    () => undefined,
    (reason) => reason,
  );
  return { error, ms: performance.now() - start };
}

function owner(...data) {
  const worker = new Worker(new URL(import.meta.url), { workerData: data });
  return new Promise((resolve, reject) => worker.once('message', () => resolve(worker)).once('error', reject));
}

const ways = {
  async 'destroy four'() {
    const devices = await Promise.all([0, 1, 2, 3].map((n) => openDevice(`cpu:${n}`)));
    const kept = await Promise.all(devices.map(begin));
    // On a loaded machine, the fourth kernel takes longer to begin.
    await after(1000);
    const ends = devices.map((device) => rejection(device.destroy()));
    await readFile(new URL(import.meta.url));
    console.log('file read');
    for (const { error, ms } of await Promise.all(ends)) {
      console.log(error instanceof DeviceLostError, error.reason, error.restartNeeds, error.operation?.label, ms < 9000);
      console.log(error.message);
    }
    console.log(devices.map(({ state }) => state).join(' '), kept.length);
    const again = await openDevice('cpu:0');
    await checkDevice(again);
    await again.close();
    console.log('works');
    process.exit(3);
  },
  async 'open again'() {
    const device = await openDevice(name);
    const kept = await begin(device);
    const closing = await rejection(device.close({ timeoutMs: 200 }));
    console.log(closing.error instanceof WaitTimeoutError, closing.error.message);
    const opening = await rejection(openDevice(name));
    console.log(opening.error instanceof WaitTimeoutError, opening.ms < 9000, opening.error.message);
    const destroyed = rejection(device.destroy());
    const again = await openDevice(name);
    console.log(again !== device, again.state, device.state, kept.length);
    await again.close();
    console.log((await destroyed).error.reason);
    // The process ends, because nothing is left to do.
  },
  async 'destroy, exit'() {
    const device = await openDevice(name);
    await begin(device);
    void device.destroy().catch(() => {});
    await after(100);
    console.log('exits');
    process.exit(3);
  },
  async 'destroy, throw'() {
    const device = await openDevice(name);
    await begin(device);
    void device.destroy().catch(() => {});
    await after(100);
    console.log('throws');
    setImmediate(() => {
      throw new Error('on purpose');
    });
  },
  async 'destroy, terminate'() {
    const worker = await owner('destroy, wait', name);
    const start = performance.now();
    await worker.terminate();
    console.log(performance.now() - start < 3000);
    process.exit(3);
  },
  async 'destroy, wait'() {
    const device = await openDevice(name);
    await begin(device);
    void device.destroy().catch(() => {});
    await after(100);
    parentPort.postMessage('destroyed');
    setInterval(() => {}, 1000);
  },
  async 'destroy a flood'() {
    for (const kernel of [slow, uneven]) {
      const device = await openDevice(name);
      const x = await flood(device, kernel);
      const { error, ms } = await rejection(device.destroy());
      console.log(error, ms < 5000, x.length, await isQuiet());
    }
  },
  async 'terminate a flood'() {
    const worker = await owner('flood', name);
    await worker.terminate();
    console.log(await isQuiet());
  },
  async flood() {
    const device = await openDevice(name);
    const x = await flood(device);
    parentPort.postMessage('busy');
    setInterval(() => x, 1000);
  },
};
await ways[how]();

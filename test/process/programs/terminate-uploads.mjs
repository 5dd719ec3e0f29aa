// Terminates worker threads whose CPU device runs a kernel for longer than the end of a thread waits, with a copy from host
// memory behind it, of the same device or of another; that memory is gone when the kernel ends.
import { readdirSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { openDevice } from 'millrace';
import { checkDevice, ONE, spin } from './work.mjs';

const BYTES = 64 * 2 ** 20;
/** About two seconds: well above the 400 ms that the end of each of two devices waits. */
const TURNS = 1_000_000_000;
/** A kernel that still runs then fails the test. */
const LIMIT_MS = 20_000;
const LEAD_MS = 100;

process.env['MILLRACE_CPU_DEVICES'] = '2';

/** The threads of CPU devices that were not closed. They end with their kernels. */
function runningThreads() {
  return readdirSync('/proc/self/task').filter((task) => {
    try {
      return /^mr-(?:cpu|channel)/.test(readFileSync(`/proc/self/task/${task}/comm`, 'utf8'));
    } catch {
      return false;
    }
  });
}

if (isMainThread) {
  let isRunning = true;
  for (const mode of process.argv.slice(2)) {
    const worker = new Worker(new URL(import.meta.url), { workerData: mode });
    const before = runningThreads();
    await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    await worker.terminate();
    // Otherwise no copy is behind a kernel whose owner has ended.
    isRunning &&= runningThreads().some((thread) => !before.includes(thread));
  }
  console.log(isRunning ? 'still running' : 'ended too early');
  const limit = performance.now() + LIMIT_MS;
  while (runningThreads().length > 0 && performance.now() < limit) await new Promise((resolve) => setTimeout(resolve, 20));
  if (runningThreads().length > 0) console.log('still running at the end');
  const device = await openDevice('cpu');
  await checkDevice(device);
  await device.close();
  console.log('works');
} else {
  const device = await openDevice('cpu');
  const isOnOther = workerData.endsWith('on another device');
  const running = isOnOther ? await openDevice('cpu:1') : device;
  await running.compile(spin);
  const stream = running.createStream();
  const x = stream.zeros(1, 'u32');
  // Bytes for it are its own device's to hold, whichever stream brings them.
  const array = device.zeros(BYTES, 'u8');
  await Promise.all([stream.synchronize(), device.synchronize()]);
  stream.launch(spin, ONE, { x, turns: TURNS });
  if (workerData.startsWith('transfer')) stream.copy(array, new Uint8Array(BYTES), { transfer: true });
  else stream.copy(array, new Uint8Array(new SharedArrayBuffer(BYTES)));
  setTimeout(() => parentPort.postMessage('busy'), LEAD_MS);
  // Nothing is disposed: this thread is not asked.
  setInterval(() => [x, array], 1000);
}

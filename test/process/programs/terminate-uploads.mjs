// Terminates worker threads whose CPU device runs a kernel for longer than the end of a thread waits, with a copy from host
// memory behind it; that memory is gone when the kernel ends.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { openDevice } from 'millrace';
import { checkDevice, ONE, spin } from './work.mjs';

const BYTES = 64 * 2 ** 20;
/** Well above the 400 ms that an end waits, on any machine. */
const TURNS = 1_000_000_000;
const LEAD_MS = 100;

if (isMainThread) {
  const [mode, rounds] = process.argv.slice(2);
  const started = performance.now();
  for (let round = 0; round < Number(rounds); round++) {
    const worker = new Worker(new URL(import.meta.url), { workerData: mode });
    await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    await worker.terminate();
  }
  // The kernels, all at once, end meanwhile.
  await new Promise((resolve) => setTimeout(resolve, performance.now() - started + 6000));
  const device = await openDevice('cpu');
  await checkDevice(device);
  await device.close();
  console.log('works');
} else {
  const device = await openDevice('cpu');
  await device.compile(spin);
  const stream = device.createStream();
  const x = stream.zeros(1, 'u32');
  const array = stream.zeros(BYTES, 'u8');
  await stream.synchronize();
  stream.launch(spin, ONE, { x, turns: TURNS });
  if (workerData === 'transfer') stream.copy(array, new Uint8Array(BYTES), { transfer: true });
  else stream.copy(array, new Uint8Array(new SharedArrayBuffer(BYTES)));
  setTimeout(() => parentPort.postMessage('busy'), LEAD_MS);
  // Nothing is disposed: this thread is not asked.
  setInterval(() => [x, array], 1000);
}

// Terminates worker threads whose CPU device runs a kernel for longer than the end of a thread waits, with a copy from host
// memory behind it, of the same device or of another; that memory is gone when the kernel ends.
import process from 'node:process';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { openDevice } from 'millrace';
import { checkDevice, ONE, spin } from './work.mjs';

const BYTES = 64 * 2 ** 20;
/** Well above the 400 ms that an end waits, on any machine. */
const TURNS = 1_000_000_000;
const LEAD_MS = 100;

process.env['MILLRACE_CPU_DEVICES'] = '2';

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

// A worker thread that opens a device and keeps it busy until it is terminated or told to go.
import { parentPort, workerData } from 'node:worker_threads';
import { openDevice } from 'millrace';
import { checkDevice, startWork, TURNS } from './work.mjs';

const { spec, mode } = workerData;
const device = await openDevice(spec);
if (mode === 'check') {
  await checkDevice(device);
  await device.close();
  parentPort.postMessage('checked');
} else if (mode === 'leave open') {
  await checkDevice(device);
  parentPort.postMessage('checked');
} else {
  // 'long': far more than a thread that ends waits for.
  const lanes = mode === 'long' ? await startWork(device, 300, 20 * TURNS) : await startWork(device);
  // Somebody waits on this thread: its termination has to take the waiters along.
  for (const lane of lanes) lane.copied.done.catch(() => {});
  parentPort.postMessage('busy');
}

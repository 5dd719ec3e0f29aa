// A worker of hung-gpu.mjs: opens the GPU and posts how that settles.
import { parentPort } from 'node:worker_threads';
import { openDevice } from 'millrace';

openDevice('cuda').then(
  () => parentPort.postMessage('open'),
  ({ name, reason, restartNeeds, message }) => parentPort.postMessage({ name, reason, restartNeeds, message }),
);

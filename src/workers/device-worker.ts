// The worker that hosts a device for threads of its process.
import { type MessagePort, parentPort } from 'node:worker_threads';
import { loadBinding } from '../native/load.js';
import { endBuildsWith } from '../toolchain/system/exit-cleanup.js';
import { DeviceHost } from './host.js';
import type { ShareRequest, ToWorker } from './messages.js';

const port = parentPort as MessagePort;
const binding = loadBinding();
endBuildsWith(binding);
const host = new DeviceHost(binding, (message, moved = []) => port.postMessage(message, moved), {
  closePort: () => port.close(),
  exit: () => process.exit(),
});

port.on('message', (message: ToWorker) => host.receive(message));

process.on('workerMessage', (value: unknown) => {
  const request = value as ShareRequest | null | undefined;
  if (request?.type === 'millrace.share') host.share(request);
});

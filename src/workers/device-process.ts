// The process that hosts a device for one thread of another process, which started it (docs/decisions/0065).
import { loadBinding } from '../native/load.js';
import { endBuildsWith } from '../toolchain/system/exit-cleanup.js';
import { DeviceHost } from './host.js';
import type { FromWorker, ToWorker } from './messages.js';

const binding = loadBinding();
// Also when the owner is killed. It may be gone already.
if (!binding.endWithParent(process.ppid) || !process.connected) process.exit();
process.on('disconnect', () => process.exit());
// A terminal sends these to every process of its group, and service managers to every process: the owner decides what to do.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => undefined);
endBuildsWith(binding);

/** The owner has made the shared memory itself. */
function sent(message: FromWorker): object {
  return message.type === 'opened' ? { ...message, timeline: undefined, arena: undefined } : message;
}

let lastSent: Promise<void> = Promise.resolve();
function send(message: FromWorker): void {
  lastSent = new Promise((resolve) => process.send?.(sent(message), () => resolve()));
}
// What was sent must have left before.
const exit = (): void => void lastSent.then(() => process.exit());

const host = new DeviceHost(binding, send, { closePort: exit, exit });

process.on('message', (message) => host.receive(message as ToWorker));

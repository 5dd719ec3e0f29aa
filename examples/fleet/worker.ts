// One worker of the fleet: `worker.js SERVER DEVICE`. Any number of them, on any number of machines, share the work. Ends in peace on SIGTERM.
import { openDevice, type DeviceSpec } from 'millrace';
import { natsSink, natsSource, overlapQueue } from 'millrace/queue';
import { resize, shrink } from './resize.js';

const [servers = '127.0.0.1:4222', spec = 'auto'] = process.argv.slice(2);
const connection = { servers };
const text = new TextDecoder();

await using device = await openDevice(spec as DeviceSpec);
await device.compile(shrink);
const pictures = natsSource({
  connection,
  stream: 'pictures',
  consumer: 'resize',
  deadLetter: 'dead.pictures',
  // How long the items of a worker that died wait.
  ackWaitMs: 2000,
  decode: (bytes) => text.decode(bytes),
});
const thumbnails = natsSink<Uint8Array>({ connection, subject: 'thumbnails.{id}', once: 'subject' });
// An item that a kill interrupted again and again would be a dead letter after four of them by default.
const opts = { depth: 3, onError: { retry: 20, delayMs: 100 }, drainOn: 'SIGTERM' } as const;
const run = overlapQueue(device, pictures, opts, (file, lane) => resize(file, lane), thumbnails);
const { stored } = await run.done;
console.log(`${stored} pictures`);

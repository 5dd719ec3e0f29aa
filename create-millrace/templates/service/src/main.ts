// Opens the device and serves until SIGTERM or SIGINT.
import { once } from 'node:events';
import { openDevice } from 'millrace';
import { createService } from './service.js';

const PORT = Number(process.env['PORT'] ?? 8080);
const device = await openDevice();
const references = device.from([1, 0, 0, 1, 0.7, 0.7], { shape: [3, 2] });
const server = await createService(device, references);
await once(server.listen(PORT), 'listening');
console.log(`port ${PORT}, ${device.info.name}`);
await Promise.race(['SIGTERM', 'SIGINT'].map((signal) => once(process, signal)));
server.close();
await once(server, 'close');
await device.close();

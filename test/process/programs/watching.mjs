// Readers of a stream or device and nothing else that keeps the process alive: prints what they are given.
import { openDevice, operationsOf } from 'millrace';
import { ONE, spin, TURNS } from './work.mjs';

const [spec, how, when] = process.argv.slice(2);
const device = await openDevice(spec);
await device.compile(spin);
const stream = device.createStream();
const x = stream.zeros(1, 'u32');
globalThis.kept = x; // The collector would tell of it.
await stream.synchronize();

const operations = { stream, 'operations of the stream': operationsOf(stream, { every: 99 }), device: operationsOf(device, { every: 99 }) }[
  how
];
async function read() {
  for await (const { kind } of operations) console.log(kind);
  console.log('the end');
}
void read();
process.on('exit', () => console.log('exit'));
if (when !== 'idle') for (let n = 0; n < 3; n++) stream.launch(spin, ONE, { x, turns: 20 * TURNS });
if (when === 'closed') void device.close();

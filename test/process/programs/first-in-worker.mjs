// The addon is loaded first, and at first only, in a worker thread that ends; then in another; then here.
import { startOwner } from './owner.mjs';

const [spec, mode] = process.argv.slice(2);
for (let round = 0; round < 2; round++) {
  const owner = startOwner(spec, mode);
  console.log(await owner.message);
  const code = await owner.exited;
  if (code !== 0) throw new Error(`The worker ended with ${code}.`);
}
const { openDevice } = await import('millrace');
const { checkDevice } = await import('./work.mjs');
const device = await openDevice(spec);
await checkDevice(device);
await device.close();
console.log('works here');

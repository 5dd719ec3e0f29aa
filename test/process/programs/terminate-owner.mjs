// Terminates worker threads that opened the device and have work in flight; then the device still works here.
import { openDevice } from 'millrace';
import { startOwner } from './owner.mjs';
import { checkDevice } from './work.mjs';

const [spec, mode, rounds] = process.argv.slice(2);
let slowest = 0;
for (let round = 0; round < Number(rounds); round++) {
  const { worker, message } = startOwner(spec, mode);
  const word = await message;
  if (word !== 'busy') throw new Error(`The worker said ${word}.`);
  const start = performance.now();
  await worker.terminate();
  slowest = Math.max(slowest, performance.now() - start);
}
console.log(`slowest ${Math.round(slowest)}`);
const device = await openDevice(spec);
await checkDevice(device);
await device.close();
console.log('works');

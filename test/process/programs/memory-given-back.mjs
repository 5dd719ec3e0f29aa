// Moves many large host buffers to or from a device, one after the other, and prints the most memory that the process had
// meanwhile beyond what it had after the first, in MiB. With 'collected' this thread's garbage is collected after each, so
// that what is left is what the library holds.
import { openDevice } from 'millrace';

const [, , spec, way, count, mib, collected] = process.argv;
const MIB = 2 ** 20;
const length = (Number(mib) * MIB) / 4;

const device = await openDevice(spec);
const x = device.zeros(length);
const { stream } = device;
const shared = () => new Float32Array(new SharedArrayBuffer(length * 4)).fill(1);

async function through(pinned) {
  pinned.data.fill(1);
  await stream.copy(x, pinned).done;
  pinned[Symbol.dispose]();
}

const WAYS = {
  transferred: () => stream.copy(x, new Float32Array(length).fill(1), { transfer: true }).done,
  shared: () => stream.copy(x, shared()).done,
  read: () => x.read(),
  pin: () => through(device.pin(shared())),
  pinned: () => through(device.pinned(length)),
};

const resident = () => Math.round(process.memoryUsage.rss() / MIB);
await WAYS[way]();
const atFirst = resident();
let most = 0;
for (let n = 0; n < Number(count); n++) {
  await WAYS[way]();
  if (collected === 'collected') globalThis.gc();
  most = Math.max(most, resident() - atFirst);
}
console.log(most);
await device.close();

// Kernels that write outside of their arrays: how each launch ends, and that the process is well afterwards.
import { cudaKernel, f64, i32, kernel, openDevice, output, u8 } from 'millrace';

const put = cudaKernel(
  'put',
  { y: output(u8), at: f64 },
  'extern "C" __global__ void put(unsigned char* y, double at) { *(volatile int*)(y + (long long)at) = 0x41414141; }',
);
const shared = cudaKernel(
  'shared',
  { y: output(u8), at: f64 },
  `extern "C" __global__ void shared(unsigned char* y, double at) {
  extern __shared__ unsigned char s[];
  *(volatile int*)(s + (long long)at) = 0x41414141;
  y[0] = s[0];
}`,
);
const script = kernel(
  'script',
  { y: output(i32), at: i32 },
  ({ y, at }, { i }) => {
    y[i + at] = 0x41414141;
  },
  { bounds: 'unchecked' },
);

const device = await openDevice('cpu', { guard: false });
const FAR = [2 ** 31, 2 ** 32, 2 ** 34, 2 ** 35, 2 ** 39];
const endings = new Map();
const note = (how) => endings.set(how, (endings.get(how) ?? 0) + 1);
const messages = new Set();
async function run(operation, mustFail) {
  const error = await operation.done.then(
    () => undefined,
    (reason) => reason,
  );
  if (error !== undefined) messages.add(error.message.replace(/-?\d+/g, '#'));
  note(mustFail && error === undefined ? 'not found' : (error?.name ?? 'done'));
}
// The first array of all begins where the inaccessible pages end.
const first = device.zeros(16, 'u8');
for (const at of [-4, -20, -4096]) await run(device.defaultStream.launch(put, { grid: 1, block: 1 }, { y: first, at }), true);
for (const bytes of [4, 1000, 4096, 60_000, 65_536, 1 << 20, 5 << 20]) {
  const y = device.zeros(bytes, 'u8');
  const words = device.zeros(bytes / 4, 'i32');
  for (const at of [-1, -4, -5, -16, -20, -4096, -65_536, -(2 ** 21), bytes, bytes + 4096, bytes + 2 ** 21]) {
    await run(device.defaultStream.launch(put, { grid: 1, block: 1 }, { y, at }));
    if (at % 4 === 0) await run(device.defaultStream.launch(script, 1, { y: words, at: at / 4 }));
  }
  for (const at of FAR) {
    for (const sign of [-1, 1]) {
      await run(device.defaultStream.launch(put, { grid: 1, block: 1 }, { y, at: sign * at }), true);
      if (at < 2 ** 33) await run(device.defaultStream.launch(script, 1, { y: words, at: (sign * at) / 4 }), true);
    }
  }
}
for (const at of [-5000, -(2 ** 29), 4096, 2 ** 29]) {
  await run(device.defaultStream.launch(shared, { grid: 1, block: 1, sharedBytes: 64 }, { y: first, at }), true);
}
// The process: objects of every kind, a collection, and kernels that behave.
const objects = Array.from({ length: 1000 }, (_, n) => Buffer.alloc(n, n).toString('hex'));
globalThis.gc();
const y = device.zeros(64, 'u8');
await device.defaultStream.launch(put, { grid: 1, block: 1 }, { y, at: 8 }).done;
console.log([...endings.keys()].toSorted((a, b) => (a < b ? -1 : 1)).join(' '), (await y.read())[8], objects.length);
for (const message of messages) console.error(message);
await device.close();
console.log('closed');

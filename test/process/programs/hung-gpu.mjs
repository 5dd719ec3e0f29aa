// Destroys a GPU whose kernel never ends, and prints how `destroy`, the kernel's promise and later openings settle.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { cudaKernel, inout, openDevice, u32 } from 'millrace';

/** Goes on until somebody writes. */
const forever = cudaKernel(
  'forever',
  { x: inout(u32) },
  `extern "C" __global__ void forever(unsigned* x) {
  volatile unsigned* seen = x;
  seen[0] = 1u;
  while (seen[0] != 0u) {}
}`,
);

const rejection = (promise) =>
  promise.then(
    () => undefined,
    (error) => error,
  );
const facts = ({ name, reason, restartNeeds, operation, device, message }) => ({
  name,
  reason,
  restartNeeds,
  operation: operation?.label,
  device,
  message,
});

const gpu = await openDevice('cuda');
await gpu.compile(forever);
const stream = gpu.createStream({ label: 'lane' });
const x = gpu.zeros(1, 'u32');
await gpu.synchronize();
const launched = rejection(stream.launch(forever, 1, { x }).done);
while (gpu.inspect().streams.find((one) => one.stream === 'lane').current?.kind !== 'launch')
  await new Promise((resolve) => setTimeout(resolve, 1));

const start = performance.now();
const destroyed = rejection(gpu.destroy());
const pending = facts(await launched);
const pendingMs = performance.now() - start;
const hung = facts(await destroyed);
const ms = performance.now() - start;
const again = facts(await rejection(openDevice('cuda')));
// Another thread knows from the native code that the GPU is busy, and does not know with what.
const other = new Worker(new URL('./open-cuda.mjs', import.meta.url));
const [elsewhere] = await once(other, 'message');
const cpu = await openDevice('cpu');
await cpu.close();
console.log(JSON.stringify({ pending, pendingMs, hung, ms, state: gpu.state, kept: x.length, again, elsewhere }));
process.exit(3);

// Destroys a GPU whose kernel never ends, and prints how `destroy` and the kernel's promise settle.
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
console.log(JSON.stringify({ pending, pendingMs, hung, ms, state: gpu.state, kept: x.length }));
process.exit(3);

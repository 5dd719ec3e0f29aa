// Builds kernels while all file descriptors but a few are taken, for 0 to 11 free ones, and builds each again afterwards.
import { closeSync, openSync } from 'node:fs';
import { cudaKernel, i32, openDevice, output } from 'millrace';

const device = await openDevice('cpu');
const y = device.zeros(1, 'i32');
await y.read();
const kernelOf = (n) => cudaKernel('k', { y: output(i32) }, `extern "C" __global__ void k(int* y) { y[0] = ${n}; }`);
// The first build of a process opens files that stay open.
await device.stream.launch(kernelOf(1000), 1, { y }).done;

const failures = new Set();
let worked = 0;
for (let spare = 0; spare < 12; spare++) {
  const k = kernelOf(spare);
  const taken = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch {
    for (let n = 0; n < spare; n++) closeSync(taken.pop());
  }
  const failure = await device.stream.launch(k, 1, { y }).done.then(
    () => undefined,
    (error) => error,
  );
  for (const file of taken) closeSync(file);
  if (failure !== undefined) failures.add(`${failure.name} ${failure.code}`);
  await device.stream.launch(k, 1, { y }).done;
  if ((await y.item(0)) === spare) worked++;
}
console.log(JSON.stringify({ failures: [...failures], worked, state: device.state }));
await device.close();

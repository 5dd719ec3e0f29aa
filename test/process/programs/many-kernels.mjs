// Launches so many new kernels on each of two devices at once, and says how many of them gave what they should.
import { cudaKernel, i32, openDevice, output } from 'millrace';

const count = Number(process.argv[2]);
const devices = [await openDevice('cpu:0'), await openDevice('cpu:1')];
const launches = [];
for (let n = 0; n < count; n++) {
  for (const [at, device] of devices.entries()) {
    const value = 100 * at + n;
    const source = `extern "C" __global__ void k(int* y) { y[0] = ${value}; }`;
    const y = device.empty(1, 'i32');
    device.createStream({ ordering: 'explicit' }).launch(cudaKernel('k', { y: output(i32) }, source), 1, { y });
    launches.push(
      y.read().then(
        ([read]) => read === value,
        (error) => (console.log(error.message), false),
      ),
    );
  }
}
const right = (await Promise.all(launches)).filter(Boolean).length;
console.log(`${right} of ${launches.length}`);
for (const device of devices) await device.close();

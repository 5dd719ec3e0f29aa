// Arguments: COUNT DEVICES [VALUE]. Launches COUNT new kernels on each device and prints how many gave the right number: VALUE,
// or a number of their own.
import { cudaKernel, i32, openDevice, output } from 'millrace';

const [count, names, given] = process.argv.slice(2);
const devices = await Promise.all(names.split(',').map((name) => openDevice(name)));
const launches = [];
for (let n = 0; n < Number(count); n++) {
  for (const [at, device] of devices.entries()) {
    const value = 1000 * at + n;
    const source = `extern "C" __global__ void k(int* y) { y[0] = ${value}; }`;
    const y = device.empty(1, 'i32');
    device.stream.launch(cudaKernel('k', { y: output(i32) }, source), 1, { y });
    launches.push(
      y
        .read()
        .then(
          ([read]) => read === (given === undefined ? value : Number(given)),
          (error) => console.log(error.message),
        )
        .finally(() => y[Symbol.dispose]()),
    );
  }
}
const right = (await Promise.all(launches)).filter(Boolean).length;
console.log(`${right} of ${launches.length}`);
for (const device of devices) await device.close();

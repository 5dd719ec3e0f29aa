// Signals that are no kernel's, after kernels ran that divide by zero.
import { cudaKernel, i32, inout, openDevice } from 'millrace';

const [how] = process.argv.slice(2);
if (how === 'own handler') process.on('SIGFPE', () => console.log('heard'));
const device = await openDevice('cpu');
const divide = cudaKernel('divide', { x: inout(i32) }, 'extern "C" __global__ void divide(int* x) { x[0] = x[0] / x[1]; x[2] = 5; }');
const x = device.zeros(3, 'i32');
await device.defaultStream.launch(divide, { grid: 1, block: 1 }, { x }).done;
console.log('divided', await x.item(2));

if (how === 'wasm') {
  // (func (export "f") (param i32) (result i32) (i32.load (local.get 0))) with one page, and an unreachable.
  const bytes = [
    [0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 102, 0, 0],
    [10, 9, 1, 7, 0, 32, 0, 40, 2, 0, 11],
  ].flat();
  const { f } = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes))).exports;
  for (const address of [0, 2 ** 28]) {
    try {
      console.log(f(address));
    } catch (error) {
      console.log(error.name);
    }
  }
}
if (how === 'own handler') {
  const heard = new Promise((resolve) => process.once('SIGFPE', resolve));
  // A listener of a signal does not keep the process alive.
  const awake = setInterval(() => {}, 1000);
  process.kill(process.pid, 'SIGFPE');
  await heard;
  clearInterval(awake);
}
if (how === 'SIGSEGV' || how === 'SIGFPE') {
  process.kill(process.pid, how);
  await new Promise(() => setTimeout(() => {}, 10_000));
}
await device.close();
console.log('closed');

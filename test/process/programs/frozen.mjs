// Kernels of both languages, launched and read, with intrinsics frozen.
import { cudaKernel, f32, inout, kernel, openDevice } from 'millrace';

const device = await openDevice('cpu');
const one = kernel('one', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i] + 1;
});
const two = cudaKernel('two', { x: inout(f32) }, 'extern "C" __global__ void two(float* x) { x[threadIdx.x] *= 2; }');
const numbers = device.from(new Float32Array([1, 2, 3]));
await device.stream.launch(one, numbers.length, { x: numbers }).done;
await device.stream.launch(two, { grid: 1, block: 3 }, { x: numbers }).done;
console.log((await numbers.read()).join(' '));

const checked = device.createStream({ ordering: 'checked', label: 'checked' });
const y = device.zeros(8, 'f32');
try {
  checked.launch(one, y.length, { x: y });
} catch (error) {
  console.log(error.name);
}
try {
  kernel('wrong', { x: inout(f32) }, (given, { i }) => {
    given.x[i] = new Date();
  });
} catch (error) {
  console.log(error.name);
}
await device.close();

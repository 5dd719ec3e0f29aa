// Kernels that index outside of their shared and local arrays, in each form that the CPU device compiles them to: how each
// launch ends, and that the process is well afterwards.
import { cudaKernel, i32, inout, openDevice, output } from 'millrace';

const BODY = {
  'without barriers': 's[t] = 1; if (t == 0) s[at] = 3; y[t] = s[t];',
  'between barriers': 's[t] = 1; __syncthreads(); if (t == 0) s[at] = 3; __syncthreads(); y[t] = s[t];',
  waiting: 's[t] = 1; if (at != 1 << 30) __syncthreads(); if (t == 0) s[at] = 3; if (at != 1 << 30) __syncthreads(); y[t] = s[t];',
};
const WITHIN = { ...BODY, 'kept across barriers': 'int own = t; __syncthreads(); s[at] = 3; __syncthreads(); y[t] = own + s[0];' };
const TEXTS = [
  ...Object.entries(BODY).map(([form, body]) => [`shared, ${form}`, '__shared__ int s[64];', body]),
  // Counted in shared memory, which has code of its own.
  ['shared, counted', '__shared__ int s[64];', 's[t] = 0; __syncthreads(); atomicAdd(&s[at], 1); __syncthreads(); y[t] = s[t];'],
  ...Object.entries(WITHIN).map(([form, body]) => [`local, ${form}`, 'volatile int s[64];', body]),
];
const well = cudaKernel(
  'well',
  { y: inout(i32) },
  'extern "C" __global__ void well(int* y) { __shared__ int s[64]; s[threadIdx.x] = y[threadIdx.x]; __syncthreads(); y[threadIdx.x] = s[63 - threadIdx.x] + 1; }',
);

const device = await openDevice('cpu', { guard: false });
const stream = device.defaultStream;
const far = [1 << 24, -(1 << 24), (1 << 27) - 1];
const OFFSETS = [64, 70, 200, -1, -2, -10, -100, 5000, -5000, 1 << 20, -(1 << 20), ...far];
const endings = new Set();
for (const [name, declared, body] of TEXTS) {
  const text = `extern "C" __global__ void k(int* y, int at) { ${declared} int t = threadIdx.x; ${body} }`;
  const kernel = cudaKernel('k', { y: output(i32), at: i32 }, text);
  for (const at of OFFSETS) {
    const y = device.zeros(64, 'i32');
    for (let round = 0; round < 3; round++) {
      const error = await stream.launch(kernel, { grid: 4, block: 64 }, { y, at }).done.then(
        () => undefined,
        (reason) => reason,
      );
      const isNear = !far.includes(at);
      const how = error === undefined ? 'done' : `${error.name}: ${error.message.replace(/^.* (accessed [^(]*) in block.*$/, '$1')}`;
      if (name.startsWith('shared') || !isNear) endings.add(`${name.split(',')[0]}${isNear ? '' : ', far'}: ${how}`);
      // What a thread's own memory becomes is not known: only that no other operation is affected.
      else if (error !== undefined && error.name !== 'LaunchError') endings.add(`${name}: ${error.name}`);
    }
    y[Symbol.dispose]();
  }
}
// The process: objects of every kind, a collection, and a kernel that behaves.
const objects = Array.from({ length: 1000 }, (_, n) => Buffer.alloc(n, n).toString('hex'));
globalThis.gc();
const y = device.zeros(64, 'i32');
for (let n = 0; n < 3; n++) stream.launch(well, { grid: 1, block: 64 }, { y });
for (const line of [...endings].toSorted((a, b) => (a < b ? -1 : 1))) console.log(line);
console.log(device.state, [...new Set(await y.read())].join(' '), objects.length);
await device.close();
console.log('closed');

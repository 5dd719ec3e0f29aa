// A CUDA text that cannot go on, launched on the first device; what comes of it, and of what runs beside it.
import { cudaKernel, i32, inout, openDevice } from 'millrace';

const [spec, which] = process.argv.slice(2);
const DEEP = `__device__ __noinline__ int deeper(int n, int* x) {
  volatile int own[64];
  own[n & 63] = n;
  return n < 0 ? 0 : deeper(n + 1, x) + own[(n + 1) & 63] + x[0];
}
extern "C" __global__ void k(int* x) { if (blockIdx.x == 2) x[threadIdx.x] = deeper(x[2], x); }`;
const TEXTS = {
  stack: DEEP,
  'stack while it prints': DEEP.replace('own[n & 63] = n;', 'own[n & 63] = n; if (n < -1) printf("never %d", n);'),
  'calls of threads that wait': `__device__ __noinline__ int deeper(int n, int* x) {
  __syncthreads();
  return n < 0 ? 0 : deeper(n + 1, x) + x[0];
}
extern "C" __global__ void k(int* x) { x[threadIdx.x] = deeper(x[2], x); }`,
  // Only the upper end of each frame is used: what lies below a frame must not be another thread's.
  'large frames of threads that wait': `__device__ __noinline__ int deeper(int n, int* x) {
  volatile int own[10000];
  own[9999] = n;
  __syncthreads();
  return n > 40 ? 0 : deeper(n + 1, x) + own[9999];
}
extern "C" __global__ void k(int* x) { x[threadIdx.x] = deeper(x[2], x); }`,
  'no memory': 'extern "C" __global__ void k(int* x) { *(volatile int*)(16 + (long long)x[2]) = 1; }',
  'no address': 'extern "C" __global__ void k(int* x) { *(volatile int*)(0x1234567800000000ll + x[2]) = 1; }',
  trap: 'extern "C" __global__ void k(int* x) { if (x[2] == 0) __trap(); }',
};
const add = cudaKernel('add', { x: inout(i32) }, 'extern "C" __global__ void add(int* x) { x[threadIdx.x] += 1; }');
const device = await openDevice(spec);
const beside = await openDevice('cpu:1');
const y = beside.zeros(8, 'i32');
const x = device.zeros(64, 'i32');
beside.defaultStream.launch(add, { grid: 1, block: 8 }, { x: y });
const launch = device.defaultStream.launch(cudaKernel('k', { x: inout(i32) }, TEXTS[which]), { grid: 4, block: 32 }, { x });
const error = await launch.done.catch((reason) => reason);
console.log(error.name, error.reason ?? '');
console.error(error.message);
beside.defaultStream.launch(add, { grid: 1, block: 8 }, { x: y });
console.log((await y.read()).join(' '));
if (device.state === 'open') {
  // Another stream, another array.
  const z = device.createStream().zeros(8, 'i32');
  device.stream.launch(add, { grid: 1, block: 8 }, { x: z });
  console.log((await z.read()).join(' '));
}
await Promise.allSettled([device.close(), beside.close()]);
console.log('closed');

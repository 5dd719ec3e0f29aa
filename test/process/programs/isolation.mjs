// A device in a process of its own: what ends that process, and what goes on.
import { execFileSync } from 'node:child_process';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { cudaKernel, i32, inout, openDevice } from 'millrace';

const which = isMainThread ? process.argv[2] : 'in worker';
const add = cudaKernel('add', { x: inout(i32) }, 'extern "C" __global__ void add(int* x) { x[threadIdx.x] += 1; }');
const spin = cudaKernel('spin', { x: inout(i32) }, 'extern "C" __global__ void spin(int* x) { while (*(volatile int*)x != 77) { } }');
const ENDS = {
  exits: 'extern "C" void _exit(int); extern "C" __global__ void k(int* x) { _exit(5); }',
  address: 'extern "C" __global__ void k(int* x) { *(volatile int*)(16 + (long long)x[2]) = 1; }',
  abort: 'extern "C" void abort(); extern "C" __global__ void k(int* x) { abort(); }',
  // Data of the allocator lie around those of the standard streams.
  heap: `extern "C" void* stdin; extern "C" int malloc_trim(unsigned long); extern "C" __global__ void k(int* x) {
    volatile char* data = (volatile char*)stdin;
    for (int n = 0; n < 8000; n++) data[n] = 0;
    malloc_trim(0);
  }`,
};

/** The process of the device: the only one of its kind that this one has started. */
function deviceProcess() {
  const listed = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(process.pid)], { encoding: 'utf8' });
  return Number(/^\s*(\d+) .*device-process\.cjs/m.exec(listed)?.[1]);
}

if (which === 'worker') {
  const worker = new Worker(new URL(import.meta.url));
  await new Promise((resolve) => worker.once('message', resolve));
  await worker.terminate();
  console.log(`terminated ${await processAfter()}`);
  // Its event loop would have waited for the process, which is no zombie either.
  const states = () => execFileSync('ps', ['-o', 'stat=', '--ppid', String(process.pid)], { encoding: 'utf8' }).match(/^Z/gm) ?? [];
  for (let look = 0; look < 200 && states().length > 0; look++) await new Promise((resolve) => setTimeout(resolve, 50));
  console.log('zombies', states().length);
  process.exit();
}

/** The error of the first call that the process of the device does not answer. */
function refusal() {
  const sleeping = new Int32Array(new SharedArrayBuffer(4));
  for (let call = 0; call < 2000; call++) {
    Atomics.wait(sleeping, 0, 0, 5);
    try {
      void device.createStream().close();
    } catch (error) {
      return `${error.name} ${error.reason}`;
    }
  }
  return 'none';
}

/** The process of the device, when there is none any more or time is up. */
async function processAfter() {
  for (let look = 0; look < 200 && !Number.isNaN(deviceProcess()); look++) await new Promise((resolve) => setTimeout(resolve, 50));
  return deviceProcess();
}

const device = await openDevice('cpu', { isolation: 'process' });
const x = device.zeros(8, 'i32');
device.stream.launch(add, { grid: 1, block: 8 }, { x });
const ones = (await x.read()).join(' ');
const pid = deviceProcess();

if (which === 'close') {
  console.log(ones);
  await device.close();
  console.log('closed', deviceProcess());
} else if (which === 'destroy') {
  // Nothing else keeps the event loop.
  device.stream.launch(spin, { grid: 1, block: 1 }, { x: device.zeros(1, 'i32') }).done.catch(() => undefined);
  // Usually long enough for it to begin.
  await new Promise((resolve) => setTimeout(resolve, 500));
  await device.destroy();
  console.log('destroyed', deviceProcess());
} else if (which === 'leave') {
  // The event loop has nothing left to do, and the device is open.
  console.log(`process ${pid}`);
} else if (which === 'exit') {
  console.log(`process ${pid}`);
  device.stream.launch(spin, { grid: 1, block: 1 }, { x: device.zeros(1, 'i32') });
  process.exit(3);
} else if (which === 'wait') {
  const operation = device.stream.launch(spin, { grid: 1, block: 1 }, { x: device.zeros(1, 'i32') });
  while (device.inspect().streams.every(({ pending }) => pending === 0)) await new Promise(setImmediate);
  console.log(`process ${pid}`);
  console.log('running');
  await operation.done;
} else if (which === 'in worker') {
  console.log(ones);
  parentPort.postMessage('open');
} else {
  console.log(ones);
  const other = await openDevice('cpu:1');
  const z = other.zeros(8, 'i32');
  other.stream.launch(add, { grid: 1, block: 8 }, { x: z });
  const held = device.createStream();
  const hold = held.hold(() => new Promise(() => undefined), { timeoutMs: 60_000 }).done;
  const text = ENDS[which];
  const last = text === undefined ? spin : cudaKernel('k', { x: inout(i32) }, text);
  const launch = device.stream.launch(last, { grid: 1, block: 1 }, { x });
  const pending = [hold, held.synchronize(), launch.done, x.read()];
  if (text === undefined) {
    process.kill(pid, which);
    // The event loop has not heard of it.
    console.log('call', refusal());
  }
  for (const { reason } of await Promise.allSettled(pending)) {
    // What derives from an operation that faulted says so.
    const error = reason?.name === 'UpstreamError' ? reason.cause : reason;
    console.log(error?.name, error?.reason, error?.restartNeeds);
  }
  console.log(device.state);
  other.stream.launch(add, { grid: 1, block: 8 }, { x: z });
  console.log('other', (await z.read()).join(' '));
  const again = await openDevice('cpu', { isolation: 'process' });
  const y = again.zeros(8, 'i32');
  again.stream.launch(add, { grid: 1, block: 8 }, { x: y });
  console.log((await y.read()).join(' '));
  await Promise.all([again.close(), other.close()]);
  console.log('closed', await processAfter());
}

// Ends while work of every kind runs: a kernel that never ends, copies that take long, a hold, a build, devices that are being opened, a
// communicator that waits for its other rank, a device in a process of its own whose kernel never ends. A capture is open at the end.
//   node end-anywhere.mjs <device> <exit|wait|terminate> <kinds of work, with commas, or all>
// Prints the moment (Date.now()), and then `ready`. `wait`: it is ended from outside.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { promisify } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { cudaKernel, inout, openDevice, u32 } from 'millrace';
import { joinCommunicator } from 'millrace/collectives';

const [spec, how, kinds] = isMainThread ? process.argv.slice(2) : workerData;
const forever = cudaKernel(
  'forever',
  { x: inout(u32) },
  'extern "C" __global__ void forever(unsigned* x) { volatile unsigned* seen = x; seen[0] = 1u; while (seen[0] != 0u) {} }',
);
// Some seconds of any compiler.
const loops = Array.from({ length: 400 }, (_, n) => `{ constexpr long c = count(${200_000 + n}); x[0] += c; }`);
const slowText = `__device__ constexpr long count(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += i % 3; return sum; }
extern "C" __global__ void slow(unsigned* x) { ${loops.join(' ')} }`;
const slow = cudaKernel('slow', { x: inout(u32) }, slowText);
const COPIED = 64 << 20;

const begins = async (device, stream) => {
  while (device.inspect().streams.find((one) => one.stream === stream.label)?.current?.kind !== 'launch')
    await new Promise((resolve) => setTimeout(resolve, 2));
};
const ignored = (promise) => void promise.then(undefined, () => undefined);

const WORK = {
  async kernel(device) {
    await device.compile(forever);
    const stream = device.createStream({ label: 'forever' });
    ignored(stream.launch(forever, 1, { x: stream.zeros(1, 'u32') }).done);
    await begins(device, stream);
  },
  async copies(device) {
    const stream = device.createStream({ label: 'copies' });
    const [from, to] = [stream.zeros(COPIED, 'u8'), stream.zeros(COPIED, 'u8')];
    for (let n = 0; n < 2000; n++) ignored(stream.copy(to, from).done);
  },
  async hold(device) {
    const stream = device.createStream({ label: 'held' });
    ignored(stream.hold(() => new Promise(() => undefined), { timeoutMs: 60_000 }).done);
    ignored(stream.fill(stream.zeros(8, 'u32'), 1).done);
  },
  async build(device) {
    ignored(device.compile(slow));
    await new Promise((resolve) => setTimeout(resolve, 300));
  },
  async opening() {
    for (const options of [{}, { isolation: 'process' }]) ignored(openDevice(options.isolation ? 'cpu:2' : 'cpu:1', options));
  },
  async communicator(device) {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    await promisify(server.close.bind(server))();
    ignored(joinCommunicator({ device, rank: 0, size: 2, store: { port }, timeoutMs: 60_000 }));
  },
  async apart() {
    const device = await openDevice('cpu:3', { isolation: 'process' });
    await WORK.kernel(device);
  },
};

const ready = () => console.log(`${Date.now()}\nready`);

if (isMainThread && how === 'terminate') {
  const worker = new Worker(new URL(import.meta.url), { workerData: [spec, how, kinds] });
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  ready();
  await worker.terminate();
  process.exit(7);
}
const device = await openDevice(spec);
const captured = device.zeros(8, 'u32');
for (const kind of kinds === 'all' ? Object.keys(WORK) : kinds.split(',')) await WORK[kind](device);
/** Ends the thread, or waits for its end, in which nothing of its event loop runs any more. */
function end() {
  if (!isMainThread) parentPort.postMessage('ready');
  else {
    ready();
    if (how === 'exit') process.exit(7);
  }
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
device.stream.capture((stream) => {
  stream.fill(captured, 1);
  end();
});

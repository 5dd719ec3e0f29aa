// What a device in a process of its own costs beside one of a thread, in one run:
//   node bench/programs/isolation.mjs [rounds]
// Each round opens both devices in turn. A row is the median of the rounds' medians. Seen on one machine: docs/decisions/0065.
import { cudaKernel, i32, inout, openDevice } from 'millrace';

const rounds = Number(process.argv[2] ?? 5);
const [AWAITS, BURSTS, BURST, RESTS, REST_MS] = [5000, 10, 10_000, 60, 8];
const add = cudaKernel('add', { x: inout(i32) }, 'extern "C" __global__ void add(int* x) { x[threadIdx.x] += 1; }');
const SHAPE = { grid: 1, block: 8 };

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const timed = async (fn) => {
  const start = performance.now();
  await fn();
  return performance.now() - start;
};

async function measure(isolation) {
  const start = performance.now();
  const device = await openDevice('cpu', { isolation });
  const openMs = performance.now() - start;
  const { stream } = device;
  const x = device.zeros(8, 'i32');
  const launch = () => stream.launch(add, SHAPE, { x });
  for (let n = 0; n < 2000; n++) await launch().done;
  const hot = [];
  for (let n = 0; n < AWAITS; n++) hot.push(await timed(() => launch().done));
  const [calls, bursts] = [[], []];
  for (let n = 0; n < BURSTS; n++) {
    const begin = performance.now();
    for (let at = 0; at < BURST; at++) launch();
    calls.push((performance.now() - begin) / BURST);
    await stream.synchronize();
    bursts.push((performance.now() - begin) / BURST);
  }
  const rested = [];
  for (let n = 0; n < RESTS; n++) {
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
    rested.push(await timed(() => launch().done));
  }
  await device.close();
  const us = (values) => 1000 * median(values);
  return {
    'launch and await, hot (us)': us(hot),
    'launch, in a burst (us)': us(calls),
    'the burst to its end, a launch (us)': us(bursts),
    [`launch and await after ${REST_MS} ms (us)`]: us(rested),
    'to open (ms)': openMs,
  };
}

const found = { thread: [], process: [] };
for (let round = 0; round < rounds; round++) {
  for (const isolation of ['thread', 'process']) found[isolation].push(await measure(isolation));
}
const rows = Object.keys(found.thread[0]).map((row) => {
  const [thread, apart] = [found.thread, found.process].map((all) => median(all.map((one) => one[row])));
  return [row, { thread: thread.toFixed(2), process: apart.toFixed(2), ratio: (apart / thread).toFixed(2) }];
});
console.table(Object.fromEntries(rows));

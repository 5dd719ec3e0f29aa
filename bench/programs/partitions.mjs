// Latency of short kernels beside long ones, by how the two are kept apart, in one process and in turns:
//   node bench/programs/partitions.mjs [cuda|cpu] [rounds] [multiprocessors or threads of the latency work]
// A request is a launch of one block of 0.1 ms for each multiprocessor of its share, awaited; the batch work is a queue of launches whose blocks
// fill the device several times and take about 2 ms each. A row has the latencies of all rounds, and how many batch launches ended in a second.
import { cudaKernel, f32, inout, i32, openDevice } from 'millrace';

const [spec = 'cuda', rounds = '5', share] = process.argv.slice(2);
const device = await openDevice(spec, spec === 'cpu' ? { threads: 4 } : {});
const { multiprocessors } = device.info;
const wanted = Number(share ?? (spec === 'cpu' ? 1 : 16));
const REQUESTS = 200;
const DEPTH = 8;

const work = cudaKernel(
  'work',
  { x: inout(f32), steps: i32 },
  `extern "C" __global__ void work(float* x, int steps) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  float value = x[at];
  for (int n = 0; n < steps; ++n) value = value * 0.999f + 0.001f;
  x[at] = value;
}`,
);
await device.compile(work);
const BLOCK = spec === 'cpu' ? 64 : 1024;
const x = device.zeros(BLOCK * wanted);
const bulk = device.zeros(BLOCK * multiprocessors * 16);

/** Steps with which a launch of `blocks` on an idle device takes so long. */
async function stepsFor(array, blocks, ms) {
  let steps = 1000;
  for (let round = 0; round < 12; round++) {
    const start = performance.now();
    await device.stream.launch(work, { grid: blocks, block: BLOCK }, { x: array, steps }).done;
    const taken = performance.now() - start;
    if (round > 8 && Math.abs(taken / ms - 1) < 0.1) break;
    steps = Math.max(100, Math.min(1e8, Math.round((steps * ms) / Math.max(taken, 0.05))));
  }
  return steps;
}
const shortSteps = await stepsFor(x, wanted, 0.1);
// Two blocks of 1024 threads fit one multiprocessor, so this is eight waves of 2 ms.
const longSteps = Math.round(await stepsFor(bulk, 2 * multiprocessors, 2));

async function measure(ways) {
  const latencies = [];
  let ended = 0;
  const { urgent, bulk: batch } = ways;
  const end = new AbortController();
  const pump = async () => {
    while (!end.signal.aborted) {
      await batch.launch(work, { grid: 16 * multiprocessors, block: BLOCK }, { x: bulk, steps: longSteps }).done;
      ended++;
    }
  };
  const begin = performance.now();
  const pumps = batch === undefined ? [] : Array.from({ length: DEPTH }, pump);
  await new Promise((resolve) => setTimeout(resolve, 20));
  for (let n = 0; n < REQUESTS; n++) {
    const start = performance.now();
    await urgent.launch(work, { grid: wanted, block: BLOCK }, { x, steps: shortSteps }).done;
    latencies.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const seconds = (performance.now() - begin) / 1000;
  end.abort();
  await Promise.all(pumps);
  return { latencies, rate: ended / seconds };
}

const ordering = 'explicit';
const [fast, rest] = await device.partition([wanted, 'rest']);
const ways = {
  'alone, whole device': { urgent: device.createStream({ ordering }) },
  'alone, in its partition': { urgent: device.createStream({ ordering, partition: fast }) },
  'beside, nothing': { urgent: device.createStream({ ordering }), bulk: device.createStream({ ordering }) },
  'beside, priority -1': { urgent: device.createStream({ ordering, priority: -1 }), bulk: device.createStream({ ordering }) },
  'beside, partitions': {
    urgent: device.createStream({ ordering, partition: fast }),
    bulk: device.createStream({ ordering, partition: rest }),
  },
  'beside, partitions and priority': {
    urgent: device.createStream({ ordering, partition: fast, priority: -1 }),
    bulk: device.createStream({ ordering, partition: rest }),
  },
};
const found = Object.fromEntries(Object.keys(ways).map((name) => [name, { latencies: [], rates: [] }]));
for (let round = 0; round < Number(rounds); round++) {
  for (const [name, way] of Object.entries(ways)) {
    const { latencies, rate } = await measure(way);
    found[name].latencies.push(...latencies);
    found[name].rates.push(rate);
  }
}
console.log(
  `${device.info.name}: ${fast.multiprocessors} and ${rest.multiprocessors} of ${multiprocessors}; ${rounds} rounds of ${REQUESTS} requests`,
);
const rows = Object.entries(found).map(([name, { latencies, rates }]) => {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (part) => sorted[Math.floor(part * (sorted.length - 1))].toFixed(3);
  const rate = rates.toSorted((a, b) => a - b)[Math.floor(rates.length / 2)];
  return [name, { 'p50 (ms)': at(0.5), 'p99 (ms)': at(0.99), 'batch launches a second': rate === 0 ? '' : rate.toFixed(0) }];
});
console.table(Object.fromEntries(rows));
await device.close();

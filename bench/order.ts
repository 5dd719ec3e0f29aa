// What order costs the main thread, against no order in column `raw`: the same launch of three arguments on streams that keep no order, track it, and check
// it, in bursts by turns, so that what else the machine does meets all of them alike.
//
//   node build/js/bench/order.js [--device cpu] [--json FILE] [--quick]
import { parseArgs } from 'node:util';
import { cudaKernel, f32, inout, input, openDevice, type DeviceSpec, type Ordering } from 'millrace';
import { printTable, summarize, writeReport, type Row } from './harness.js';

const { values } = parseArgs({
  options: {
    device: { type: 'string', default: 'cpu' },
    json: { type: 'string', default: 'build/reports/order.json' },
    quick: { type: 'boolean', default: false },
  },
});
const ROUNDS = values.quick ? 60 : 600;
const LAUNCHES = 1000;

const saxpy = cudaKernel(
  'saxpy_one',
  { a: f32, x: input(f32), y: inout(f32) },
  'extern "C" __global__ void saxpy_one(float a, const float* x, float* y) { y[0] = a * x[0] + y[0]; }',
);
const ONE = { grid: 1, block: 1 } as const;

await using device = await openDevice(values.device as DeviceSpec);
await device.compile(saxpy);

interface Case {
  readonly what: string;
  readonly submit: (n: number) => void;
  readonly ns: number[];
}

/** One stream that uses whole arrays. */
function whole(ordering: Ordering): Case {
  const stream = device.createStream({ ordering });
  const args = { a: 2, x: stream.ones(1), y: stream.zeros(1) };
  return { what: `${ordering}, whole arrays`, submit: () => void stream.launch(saxpy, ONE, args), ns: [] };
}

/** One stream that goes through an array in 64 parts. */
function parts(ordering: Ordering): Case {
  const stream = device.createStream({ ordering });
  const y = stream.zeros(64);
  const x = stream.ones(1);
  const args = Array.from({ length: 64 }, (_, at) => ({ a: 2, x, y: y.subarray(at, at + 1) }));
  return { what: `${ordering}, 64 parts in turn`, submit: (n) => void stream.launch(saxpy, ONE, args[n % 64]!), ns: [] };
}

/** Two streams that use the same array in turn. */
function shared(ordering: Ordering): Case {
  const streams = [device.createStream({ ordering }), device.createStream({ ordering })] as const;
  const args = { a: 2, x: streams[0].ones(1), y: streams[0].zeros(1) };
  return { what: `${ordering}, two streams in turn`, submit: (n) => void streams[n % 2 === 0 ? 0 : 1].launch(saxpy, ONE, args), ns: [] };
}

async function measure(cases: readonly Case[]): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    for (let turn = 0; turn < cases.length; turn++) {
      const { submit, ns } = cases[(round + turn) % cases.length]!;
      const start = performance.now();
      for (let n = 0; n < LAUNCHES; n++) submit(n);
      ns.push(((performance.now() - start) * 1e6) / LAUNCHES);
      await device.synchronize();
    }
  }
}

const rows: Row[] = [];
function report(cases: readonly Case[]): void {
  const settled = cases.map(({ ns }) => summarize(ns.slice(ROUNDS / 10)));
  cases.forEach(({ what }, at) => {
    const { p50, p99, min } = settled[at]!;
    const least = settled[0]!.min;
    rows.push({
      device: device.info.id,
      what,
      unit: 'ns',
      p50,
      p99,
      raw: settled[0]!.p50,
      note: `least ${Math.round(min)}, ${(min / least).toFixed(2)} of explicit`,
    });
  });
}

const unchecked = [whole('explicit'), whole('tracked'), parts('tracked'), shared('tracked')];
await measure(unchecked);
report(unchecked);
// From here on clocks are kept.
const checked = [whole('explicit'), whole('tracked'), whole('checked'), parts('checked')];
await measure(checked);
report(checked.map((each, at) => (at < 2 ? { ...each, what: `${each.what}, beside checked streams` } : each)));
printTable(rows);
writeReport(values.json, rows);
console.log(`Written to ${values.json}.`);

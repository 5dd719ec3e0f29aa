// What graphs cost and save: a launch on the main thread, a node of a chain of empty kernels, and a diamond of four kernels of 5 ms, each
// beside the same kernels launched one by one, by turns in one run. Column `raw` is the chain without JavaScript, ring and channel
// (bench/native/graph_replay): by the driver alone on a GPU, by the backend alone on the CPU device.
//
//   node build/js/bench/graphs.js [--device cpu --device cuda:0] [--json FILE] [--quick]
import { parseArgs } from 'node:util';
import { cudaKernel, f32, i32, inout, input, listDevices, openDevice, output, type Device, type DeviceSpec, type Recorder } from 'millrace';
import { printTable, type Row, runNative, summarize, writeReport } from './harness.js';

const { values } = parseArgs({
  options: {
    device: { type: 'string', multiple: true },
    json: { type: 'string', default: 'build/reports/graphs.json' },
    quick: { type: 'boolean', default: false },
  },
});
const LENGTHS = [1, 100, 1000] as const;
/** Launches in a burst, and bursts of every graph. */
const [BURST, BURSTS] = values.quick ? [1000, 20] : [1000, 100];
/** Nodes between two waits, when the time of a node is measured, and how often. */
const [NODES, ROUNDS] = values.quick ? [50_000, 5] : [200_000, 15];
const DIAMONDS = values.quick ? 5 : 21;
const DIAMOND_MS = 5;

const empty = cudaKernel('empty', {}, 'extern "C" __global__ void empty() {}');
const saxpy = cudaKernel(
  'saxpy_one',
  { a: f32, x: input(f32), y: inout(f32) },
  'extern "C" __global__ void saxpy_one(float a, const float* x, float* y) { y[0] = a * x[0] + y[0]; }',
);
/** Busy on one thread for as long as `steps` says. */
const spin = cudaKernel(
  'spin',
  { x: output(f32), steps: i32 },
  `extern "C" __global__ void spin(float* x, int steps) {
    float value = 0;
    for (int n = 0; n < steps; n++) value = value * 0.5f + 1;
    x[0] = value;
  }`,
);
const ONE = { grid: 1, block: 1 } as const;

const chain = (stream: Recorder, length: number): void => {
  for (let n = 0; n < length; n++) stream.launch(empty, ONE, {});
};

interface NativeFigures {
  readonly nodes: number;
  readonly backend: { readonly issueNs: number; readonly nodeNs: number };
  readonly driver?: { readonly issueNs: number; readonly nodeNs: number };
}

/** By the length of the chain. */
function nativeFigures(device: Device): Map<number, NativeFigures['backend']> {
  const [backend = '', ordinal = '0'] = device.info.id.split(':');
  const lines = runNative('graph_replay', [backend, ordinal, String(values.quick ? 200_000 : 2_000_000)])
    .trim()
    .split('\n');
  const figures = lines.map((line) => JSON.parse(line) as NativeFigures);
  return new Map(figures.map((one) => [one.nodes, one.driver ?? one.backend]));
}

/** Something that is submitted again and again, and what one time took. */
interface Case {
  readonly what: string;
  readonly unit: string;
  readonly submit: () => void;
  readonly taken: number[];
  readonly raw?: number | undefined;
  readonly note?: (median: number) => string;
}

/** Times the cases by turns. `measure` runs a case once and returns what it took. */
async function byTurns(device: Device, rounds: number, cases: readonly Case[], measure: (one: Case) => Promise<number>): Promise<Row[]> {
  for (const one of cases) await measure(one);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < cases.length; turn++) {
      const one = cases[(round + turn) % cases.length]!;
      one.taken.push(await measure(one));
    }
  }
  return cases.map(({ what, unit, taken, raw, note }) => {
    const { p50, p99, min } = summarize(taken);
    const remarks = [`least ${min.toPrecision(3)}`, ...(note === undefined ? [] : [note(p50)])];
    return { device: device.info.id, what, unit, p50, p99, note: remarks.join(', '), ...(raw === undefined ? {} : { raw }) };
  });
}

/** What the main thread pays for a launch, whatever the graph has. */
async function launchCosts(device: Device): Promise<Row[]> {
  const stream = device.createStream({ ordering: 'explicit' });
  const tracked = device.createStream({ ordering: 'tracked' });
  using x = tracked.ones(1);
  using y = tracked.zeros(1);
  const graphs = LENGTHS.map((length) => stream.capture((s) => chain(s, length)));
  const withValues = tracked.capture({ a: f32 }, (s, { a }) => {
    for (let n = 0; n < 100; n++) s.launch(saxpy, ONE, { a, x, y });
  });
  const cases: Case[] = LENGTHS.map((length, at) => ({
    what: `launch of a graph of ${length}, main thread`,
    unit: 'ns',
    submit: () => void stream.launch(graphs[at]!),
    taken: [],
  }));
  cases.push(
    {
      what: 'launch of a graph of 100, tracked, one value',
      unit: 'ns',
      submit: () => void tracked.launch(withValues, { a: 2 }),
      taken: [],
    },
    { what: 'launch of one kernel', unit: 'ns', submit: () => chain(stream, 1), taken: [] },
  );
  const rows = await byTurns(device, BURSTS, cases, async ({ submit }) => {
    const start = performance.now();
    for (let n = 0; n < BURST; n++) submit();
    const ns = ((performance.now() - start) * 1e6) / BURST;
    await device.synchronize();
    return ns;
  });
  await Promise.all([...graphs, withValues].map((graph) => graph.close()));
  await Promise.all([stream.close(), tracked.close()]);
  return rows;
}

/** The time of a node while launches follow each other, until the device has finished. */
async function nodeTimes(device: Device, native: ReadonlyMap<number, NativeFigures['backend']>): Promise<Row[]> {
  const stream = device.createStream({ ordering: 'explicit' });
  const graphs = LENGTHS.map((length) => stream.capture((s) => chain(s, length)));
  const cases: Case[] = LENGTHS.map((length, at) => ({
    what: `a node of chains of ${length}`,
    unit: 'ns',
    submit: () => {
      for (let n = 0; n < NODES / length; n++) stream.launch(graphs[at]!);
    },
    taken: [],
    raw: native.get(length)?.nodeNs,
  }));
  cases.push({ what: 'the same kernels one by one', unit: 'ns', submit: () => chain(stream, NODES), taken: [] });
  const rows = await byTurns(device, ROUNDS, cases, async ({ submit }) => {
    const start = performance.now();
    submit();
    await stream.synchronize();
    return ((performance.now() - start) * 1e6) / NODES;
  });
  await Promise.all(graphs.map((graph) => graph.close()));
  await stream.close();
  return rows;
}

/** The number of steps with which `spin` takes DIAMOND_MS. */
async function calibrate(device: Device): Promise<number> {
  using x = device.zeros(1);
  let steps = 100_000;
  for (let round = 0; round < 5; round++) {
    const ms: number[] = [];
    for (let n = 0; n < 5; n++) {
      const start = performance.now();
      await device.stream.launch(spin, ONE, { x, steps }).done;
      ms.push(performance.now() - start);
    }
    steps = Math.round((steps * DIAMOND_MS) / summarize(ms).min);
  }
  return steps;
}

/** Four kernels of 5 ms, of which the two in the middle may run at the same time: 15 ms with two threads, 20 with one. */
async function diamonds(device: Device): Promise<Row[]> {
  const [left, right] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
  using results = left.zeros(4);
  const parts = Array.from({ length: 4 }, (_, at) => results.subarray(at, at + 1));
  const steps = await calibrate(device);
  const diamond = (s: Recorder): void => {
    const one = (stream: Recorder, at: number): void => void stream.launch(spin, ONE, { x: parts[at]!, steps });
    one(s, 0);
    right.waitStream(left);
    one(s, 1);
    one(right, 2);
    s.waitStream(right);
    one(s, 3);
  };
  const graph = left.capture(diamond);
  const kernels = (median: number): string => `${(median / DIAMOND_MS).toFixed(2)} kernels one after another`;
  /** Tells how many of the kernels the machine really runs at the same time. */
  const two = (): void => {
    left.launch(spin, ONE, { x: parts[0]!, steps });
    right.launch(spin, ONE, { x: parts[1]!, steps });
    left.waitStream(right);
  };
  const cases: Case[] = [
    { what: 'two kernels of the diamond on two streams', unit: 'ms', submit: two, taken: [], note: kernels },
    { what: 'one kernel of the diamond', unit: 'ms', submit: () => void left.launch(spin, ONE, { x: parts[0]!, steps }), taken: [] },
    { what: 'diamond of four 5 ms kernels, graph', unit: 'ms', submit: () => void left.launch(graph), taken: [], note: kernels },
    { what: 'diamond of four 5 ms kernels, one by one', unit: 'ms', submit: () => diamond(left), taken: [], note: kernels },
  ];
  const rows = await byTurns(device, DIAMONDS, cases, async ({ submit }) => {
    const start = performance.now();
    submit();
    await left.synchronize();
    return performance.now() - start;
  });
  await graph.close();
  await Promise.all([left.close(), right.close()]);
  return rows;
}

const available = (await listDevices()).map((device) => device.id);
const wanted = values.device ?? (available.includes('cuda:0') ? ['cpu', 'cuda:0'] : ['cpu']);
const rows: Row[] = [];
for (const spec of wanted) {
  await using device = await openDevice(spec as DeviceSpec);
  await device.compile(empty, saxpy, spin);
  const native = nativeFigures(device);
  for (const measure of [launchCosts, nodeTimes, diamonds]) rows.push(...(await measure(device, native)));
}
printTable(rows);
writeReport(values.json, rows);
console.log(`Written to ${values.json}.`);

// The cost of the spine: a launch from JavaScript to the device and back, with a kernel that does nothing, beside the same
// launches issued natively in the same run: by the driver alone on a GPU, by the CPU backend alone (no JavaScript, no
// ring, no channel) on the CPU device.
//
//   node build/js/bench/spine.js [--device cpu --device cuda:0] [--json FILE] [--quick]
import { parseArgs } from 'node:util';
import { cudaKernel, f32, inout, input, listDevices, openDevice, u32, type Device, type DeviceSpec } from 'millrace';
import { printTable, runNative, summarize, time, writeReport, type Row } from './harness.js';

const { values } = parseArgs({
  options: {
    device: { type: 'string', multiple: true },
    json: { type: 'string', default: 'build/reports/spine.json' },
    quick: { type: 'boolean', default: false },
  },
});
const scale = values.quick ? 0.1 : 1;
const times = (count: number): number => Math.max(10, Math.round(count * scale));

const empty = cudaKernel('empty', {}, 'extern "C" __global__ void empty() {}');
const saxpy = cudaKernel(
  'saxpy_one',
  { a: f32, x: input(f32), y: inout(f32) },
  'extern "C" __global__ void saxpy_one(float a, const float* x, float* y) { y[0] = a * x[0] + y[0]; }',
);
/** Its result depends on every launch and on their order. */
const mix = cudaKernel(
  'mix',
  { x: inout(u32), k: u32 },
  'extern "C" __global__ void mix(unsigned* x, unsigned k) { x[0] = x[0] * 1664525u + k; }',
);
const ONE = { grid: 1, block: 1 } as const;

interface RawFigures {
  readonly sustainedNs: number;
  readonly roundTripP50Us: number;
  readonly roundTripP99Us: number;
}

/** The same launches without JavaScript: by the driver alone (a GPU), by the backend alone, and through ring and channel. */
interface NativeFigures {
  readonly raw: RawFigures;
  readonly backend: RawFigures;
  readonly channel: RawFigures;
}

function nativeFigures(device: Device): NativeFigures {
  const [backend = '', ordinal = '0'] = device.info.id.split(':');
  const ask = (name: string, ...args: string[]): unknown => JSON.parse(runNative(name, [...args, String(times(200_000))]));
  const layers = ask('backend_launch', backend, ordinal) as Omit<NativeFigures, 'raw'>;
  return { raw: backend === 'cuda' ? (ask('driver_launch', ordinal) as RawFigures) : layers.backend, ...layers };
}

/** Main-thread nanoseconds of one launch, in bursts of a thousand; the device finishes between bursts, outside the clock. */
async function burst(device: Device, submit: () => void): Promise<{ readonly p50: number; readonly p99: number }> {
  const perLaunch: number[] = [];
  for (let n = 0; n < times(300); n++) {
    const start = performance.now();
    for (let k = 0; k < 1000; k++) submit();
    perLaunch.push((performance.now() - start) * 1e3);
    await device.synchronize();
  }
  return summarize(perLaunch.slice(Math.floor(perLaunch.length / 10)));
}

async function measure(spec: DeviceSpec, rows: Row[]): Promise<void> {
  await using device = await openDevice(spec);
  await device.compile(empty, saxpy, mix);
  const id = device.info.id;
  const { raw, backend, channel } = nativeFigures(device);
  const stream = device.createStream({ ordering: 'explicit' });
  const tracked = device.createStream({ ordering: 'tracked' });
  const x = tracked.ones(1);
  const y = tracked.zeros(1);
  const seed = stream.zeros(1, 'u32');
  await device.synchronize();

  rows.push({
    device: id,
    what: 'one launch in a burst, no arguments',
    unit: 'ns',
    ...(await burst(device, () => void stream.launch(empty, ONE, {}))),
  });
  const args = { a: 2, x, y };
  rows.push({
    device: id,
    what: 'one launch in a burst, three arguments, tracked',
    unit: 'ns',
    ...(await burst(device, () => void tracked.launch(saxpy, ONE, args))),
  });

  const roundTrip = async (): Promise<void> => {
    await stream.launch(empty, ONE, {}).done;
  };
  await time(times(1000), roundTrip);
  const hot = await time(times(10_000), roundTrip);
  rows.push({ device: id, what: 'launch and await, hot', unit: 'us', p50: hot.p50, p99: hot.p99, raw: raw.roundTripP50Us });
  const cold = await time(times(500), roundTrip, 2);
  rows.push({ device: id, what: 'launch and await, 2 ms idle before each', unit: 'us', p50: cold.p50, p99: cold.p99 });

  const sustained: number[] = [];
  const count = times(200_000);
  for (let n = 0; n < 5; n++) {
    const start = performance.now();
    for (let k = 0; k < count; k++) stream.launch(empty, ONE, {});
    await stream.synchronize();
    sustained.push(((performance.now() - start) * 1e6) / count);
  }
  const { p50 } = summarize(sustained);
  rows.push({
    device: id,
    what: 'sustained, per launch',
    unit: 'ns',
    p50,
    raw: raw.sustainedNs,
    note: `${Math.round(1e9 / p50).toLocaleString('en')} launches/s`,
  });
  for (const [what, figures] of [
    ['native, backend alone', backend],
    ['native, through the channel', channel],
  ] as const) {
    const note = `round trip ${figures.roundTripP50Us} us`;
    rows.push({ device: id, what: `${what}: sustained, per launch`, unit: 'ns', p50: figures.sustainedNs, raw: raw.sustainedNs, note });
  }

  const oneByOne = times(10_000);
  const start = performance.now();
  for (let n = 0; n < oneByOne; n++) await stream.launch(empty, ONE, {}).done;
  rows.push({ device: id, what: `${oneByOne} launches awaited one by one`, unit: 'ms', p50: performance.now() - start });

  await unawaited(
    device,
    stream.label,
    rows,
    (k) => void stream.launch(mix, ONE, { x: seed, k }),
    async () => (await seed.read())[0] ?? Number.NaN,
  );
}

/** A million launches in one synchronous loop, three times: nothing lost, order kept, memory flat after the first. */
async function unawaited(
  device: Device,
  label: string,
  rows: Row[],
  submit: (k: number) => void,
  result: () => Promise<number>,
): Promise<void> {
  const count = times(1_000_000);
  let expected = 0;
  const rssMiB: number[] = [];
  const submitNs: number[] = [];
  const drainMs: number[] = [];
  for (let round = 0; round < 3; round++) {
    const start = performance.now();
    for (let k = 0; k < count; k++) submit(k);
    const submitted = performance.now();
    await device.synchronize();
    submitNs.push(((submitted - start) * 1e6) / count);
    drainMs.push(performance.now() - submitted);
    rssMiB.push(process.memoryUsage.rss() / 2 ** 20);
    for (let k = 0; k < count; k++) expected = (Math.imul(expected, 1664525) + k) >>> 0;
    const value = await result();
    if (value !== expected) throw new Error(`${label}: ${count} launches left ${value}, expected ${expected}.`);
  }
  const id = device.info.id;
  const growth = (rssMiB[2] ?? 0) - (rssMiB[0] ?? 0);
  rows.push({
    device: id,
    what: `${count} launches in one loop, per launch`,
    unit: 'ns',
    p50: summarize(submitNs).p50,
    note: 'order and count checked',
  });
  rows.push({ device: id, what: 'what is left after the loop', unit: 'ms', p50: summarize(drainMs).p50 });
  rows.push({
    device: id,
    what: 'resident memory after the first and third loop',
    unit: 'MiB',
    p50: rssMiB[0] ?? 0,
    note: `${growth >= 0 ? '+' : ''}${growth.toFixed(1)} MiB`,
  });
}

const available = (await listDevices()).map((device) => device.id);
const wanted = values.device ?? (available.includes('cuda:0') ? ['cpu', 'cuda:0'] : ['cpu']);
const rows: Row[] = [];
for (const spec of wanted) await measure(spec as DeviceSpec, rows);
printTable(rows);
writeReport(values.json, rows);
console.log(`Written to ${values.json}.`);

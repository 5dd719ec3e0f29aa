// Kernels against the same thing without Millrace, by turns in one run: on the CPU device against loops in C++ with OpenMP, on a GPU
// against the same kernels compiled by nvcc. In four forms: a TypeScript function, checked, unchecked and (on
// the CPU device) without lanes, and CUDA C++ text. Then the time
// from a function's text to its first result, with and without a compiler.
//
//   node build/js/bench/kernels.js [--device cpu | --device cuda:0] [--only NAME]... [--rounds N] [--json FILE]
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { elapsed, openDevice, type Device, type DeviceSpec, type Stream } from 'millrace';
import { printTable, summarize, writeReport, type Row } from './suite/details.js';
import { type Bound, type Case, CASES, FORMS } from './kernels/cases.js';
import { NativeKernels } from './kernels/native.js';

const { values } = parseArgs({
  options: {
    device: { type: 'string', default: 'cpu' },
    only: { type: 'string', multiple: true },
    rounds: { type: 'string', default: '21' },
    json: { type: 'string', default: 'build/reports/kernels.json' },
  },
});
const ROUNDS = Math.max(3, Number(values.rounds));
/** Of f32 sums in another order. */
const TOLERANCE = 1e-3;
/** Launches between two events: more than the driver's overhead can hide behind. */
const GPU_LAUNCHES = 20;
/** On the CPU device as many launches as take so long, here as beside: bench/main.ts measures what one alone costs. */
const CPU_MS = 10;
/** Threads of OpenMP look for more work so long, at a higher priority than the device's: they would slow down the measurement that follows. */
const SPIN_MS = 30;

/**
 * Milliseconds of one launch: by events where the device has a clock of its own. Of several, after as many that are not counted: what
 * was measured before has had the caches, and of a program that stands alone that was always another program.
 */
async function timed(stream: Stream, { launch }: Bound, launches: number, isGpu: boolean): Promise<number> {
  if (launches > 1) for (let n = 0; n < launches; n++) launch();
  await stream.synchronize();
  if (isGpu) {
    using start = stream.record({ timing: true });
    for (let n = 0; n < launches; n++) launch();
    using end = stream.record({ timing: true });
    return (await elapsed(start, end)) / launches;
  }
  const start = performance.now();
  for (let n = 0; n < launches; n++) launch();
  await stream.synchronize();
  return (performance.now() - start) / launches;
}

async function measure(device: Device, native: NativeKernels, { name, size, prepare }: Case): Promise<Row[]> {
  const isGpu = device.info.backend === 'cuda';
  const n = isGpu ? size.cuda : size.cpu;
  const stream = device.createStream({ ordering: 'explicit' });
  const { arrays, forms, reset, sum } = prepare(stream, n);
  const measured = FORMS.filter((form) => !isGpu || form !== 'one by one');
  await stream.synchronize();
  const first = await native.measure(name, n, 1);
  const expected = first.sum;
  const launches = isGpu ? GPU_LAUNCHES : Math.ceil(CPU_MS / first.ms);
  for (const form of measured) {
    await device.compile(forms[form].kernel);
    reset?.();
    forms[form].launch();
    await stream.synchronize();
    const got = await sum();
    if (!(Math.abs(got - expected) <= TOLERANCE * Math.abs(expected)))
      throw new Error(`${name} (${form}) gives ${got}, the program beside it ${expected}.`);
  }
  const raw: number[] = [];
  const ms = measured.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    raw.push((await native.measure(name, n, launches)).ms);
    if (!isGpu) await setTimeout(SPIN_MS);
    for (const [at, form] of measured.entries()) ms[at]!.push(await timed(stream, forms[form], launches, isGpu));
  }
  await stream.close();
  for (const array of arrays) array[Symbol.dispose]();
  const beside = summarize(raw);
  return measured.map((form, at) => {
    const { p50, p99, min } = summarize(ms[at]!);
    const note = `${(beside.p50 / p50).toFixed(2)} of its speed, ${(beside.min / min).toFixed(2)} by the least`;
    return { device: device.info.id, what: `${name}, ${form}`, unit: 'ms', p50, p99, raw: beside.p50, note };
  });
}

/** Of the first kernel of a process and of the next one: with an empty cache, then again with what that left. */
function firstResults(): Row[] {
  const program = fileURLToPath(new URL('./kernels/first-result.js', import.meta.url));
  const ask = (directory: string): number[] =>
    execFileSync(process.execPath, [program], { env: { ...process.env, MILLRACE_CACHE_DIR: directory }, encoding: 'utf8' })
      .split(' ')
      .map(Number);
  const compiled: number[][] = [];
  const cached: number[][] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const directory = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
    try {
      compiled.push(ask(directory));
      cached.push(ask(directory));
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }
  const row = (which: 0 | 1, how: string, runs: readonly number[][]): Row => {
    const what = `text to result, ${which === 0 ? 'first' : 'next'} kernel, ${how}`;
    return { device: 'cpu:0', what, unit: 'ms', ...summarize(runs.map((run) => run[which]!)) };
  };
  return ([0, 1] as const).flatMap((which) => [row(which, 'compiled', compiled), row(which, 'cached', cached)]);
}

await using device = await openDevice(values.device as DeviceSpec);
const [backend = '', ordinal = '0'] = device.info.id.split(':');
const native = new NativeKernels(backend as 'cpu' | 'cuda', ordinal);
const rows: Row[] = [];
for (const one of CASES) {
  if (values.only !== undefined && !values.only.includes(one.name)) continue;
  const measured = await measure(device, native, one);
  for (const { what, note } of measured) console.error(`${what}: ${note}`);
  rows.push(...measured);
}
native.close();
if (backend === 'cpu' && values.only === undefined) rows.push(...firstResults());
printTable(rows);
writeReport(values.json, rows);
console.log(`Written to ${values.json}.`);

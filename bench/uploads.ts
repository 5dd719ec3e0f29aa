// What an upload costs the loop and how fast it goes, by where the bytes are: page-locked memory (the device's own route), an
// ordinary array that is snapshotted at the call, one that is handed over (`transfer`), and a borrowed SharedArrayBuffer.
// Ratios are against the page-locked row of the same run.
//
//   node build/js/bench/uploads.js [--device cuda:0] [--mib 256] [--json FILE]
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { openDevice, type Device, type DeviceSpec, type HostOf } from 'millrace';
import { printTable, summarize, writeReport, type Row } from './harness.js';

const { values } = parseArgs({
  options: {
    device: { type: 'string', multiple: true, default: ['auto'] },
    mib: { type: 'string', default: '256' },
    rounds: { type: 'string', default: '10' },
    json: { type: 'string', default: 'build/reports/uploads.json' },
  },
});
const bytes = Number(values.mib) * 2 ** 20;
const rounds = Number(values.rounds);
type F32 = HostOf['f32'];

/** A round's upload; `prepare` is outside of the clock. */
interface Source {
  readonly what: string;
  prepare(): F32;
  submit(device: Device, data: F32): { readonly done: Promise<unknown> };
}

async function sourcesOf(device: Device): Promise<Source[]> {
  const dst = device.empty(bytes / 4);
  const pinned = device.pinned(bytes / 4);
  const shared = new Float32Array(new SharedArrayBuffer(bytes));
  const ordinary = new Float32Array(bytes / 4);
  await device.stream.copy(dst, pinned).done;
  return [
    { what: 'page-locked', prepare: () => pinned.data, submit: ({ stream }) => stream.copy(dst, pinned) },
    { what: 'snapshot at the call', prepare: () => ordinary, submit: ({ stream }, data) => stream.copy(dst, data) },
    {
      what: 'handed over (transfer)',
      prepare: () => new Float32Array(bytes / 4).fill(1),
      submit: ({ stream }, data) => stream.copy(dst, data, { transfer: true }),
    },
    { what: 'borrowed SharedArrayBuffer', prepare: () => shared, submit: ({ stream }, data) => stream.copy(dst, data) },
  ];
}

async function measure(spec: DeviceSpec, rows: Row[]): Promise<void> {
  await using device = await openDevice(spec);
  let locked = 0;
  for (const source of await sourcesOf(device)) {
    const gigabytesPerSecond: number[] = [];
    const callMs: number[] = [];
    let loopMs = 0;
    for (let round = 0; round <= rounds; round++) {
      const data = source.prepare();
      const loop = monitorEventLoopDelay({ resolution: 1 });
      loop.enable();
      await new Promise((resolve) => setTimeout(resolve, 5));
      loop.reset();
      const start = performance.now();
      const operation = source.submit(device, data);
      const submitted = performance.now();
      await operation.done;
      const end = performance.now();
      loop.disable();
      // The first round grows pools and locks pages.
      if (round === 0) continue;
      gigabytesPerSecond.push(bytes / (end - start) / 1e6);
      callMs.push(submitted - start);
      // The monitor counts its own interval.
      loopMs = Math.max(loopMs, loop.max / 1e6 - 1);
    }
    const speed = summarize(gigabytesPerSecond);
    locked ||= speed.p50;
    const call = summarize(callMs);
    rows.push({ device: device.info.id, what: source.what, unit: 'GB/s', p50: speed.p50, p99: speed.p99, raw: locked });
    rows.push({ device: device.info.id, what: `${source.what}: the call`, unit: 'ms', p50: call.p50, p99: call.p99 });
    rows.push({ device: device.info.id, what: `${source.what}: longest loop delay`, unit: 'ms', p50: loopMs, p99: loopMs });
  }
}

const rows: Row[] = [];
for (const spec of values.device) await measure(spec as DeviceSpec, rows);
printTable(rows);
writeReport(values.json, rows);

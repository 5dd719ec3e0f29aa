// All benchmarks of a device, each beside its peers in the same run: what users pay for launches, awaits, copies, graphs and pipelines.
// docs/benchmarks.md explains the rows; bench/document.ts writes its tables from the JSON files.
//
//   node build/js/bench/main.js [--device cpu | --device cuda:0] [--rows arrays,launches] [--json FILE] [--note TEXT] [--quick]
//     [--limit-s SECONDS]  rows that have not begun by then are left out
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { openDevice, type DeviceSpec } from 'millrace';
import { arrays } from './groups/arrays.js';
import { awaits } from './groups/awaits.js';
import { batches } from './groups/batches.js';
import { devices } from './groups/devices.js';
import { frames, plain } from './groups/frames.js';
import { graphs } from './groups/graphs.js';
import { kernels } from './groups/kernels.js';
import { launches } from './groups/launches.js';
import { operations } from './groups/operations.js';
import { pipelines } from './groups/overlap.js';
import { pinned } from './groups/pinned.js';
import { queued } from './groups/queued.js';
import { recordings } from './groups/recordings.js';
import { schedules } from './groups/schedules.js';
import { starts } from './groups/starts.js';
import { streams } from './groups/streams.js';
import { NativeKernels } from './kernels/native.js';
import { printReport } from './suite/console-table.js';
import { machineLine } from './suite/machine.js';
import { startPeers } from './suite/peers.js';
import type { Report } from './suite/report.js';
import { GROUPS } from './suite/rows.js';
import { Run } from './suite/run.js';

/** In the order in which they run: what comes early finds the process as a user's program does. */
const MEASURES: Readonly<Record<string, (run: Run, native: NativeKernels | undefined) => Promise<void>>> = {
  launches,
  awaits,
  schedules,
  starts,
  arrays,
  pinned,
  batches,
  queued,
  graphs,
  streams,
  frames,
  plain,
  overlap: pipelines,
  devices,
  kernels,
  operations,
  recordings,
};

const { values } = parseArgs({
  options: {
    device: { type: 'string', default: 'cpu' },
    rows: { type: 'string' },
    json: { type: 'string' },
    note: { type: 'string' },
    'limit-s': { type: 'string', default: '1e9' },
    quick: { type: 'boolean', default: false },
  },
});
const wanted = values.rows?.split(',') ?? Object.keys(MEASURES);
for (const name of wanted) {
  if (!(name in MEASURES)) throw new Error(`There are no rows ${name}; there are ${Object.keys(MEASURES).join(', ')}.`);
}

const start = performance.now();
const seconds = (): number => (performance.now() - start) / 1e3;
const device = await openDevice(values.device as DeviceSpec);
const { backend, id, name } = device.info;
const machine = machineLine(device.info, values.note);
console.error(machine);
const peers = await startPeers(backend, id.split(':')[1] ?? '0');
for (const [peer, reason] of peers.absent) console.error(`${peer} is absent: ${reason}`);
const needsLoops = backend === 'cpu' && wanted.some((group) => group === 'arrays' || group === 'kernels');
const native = needsLoops ? new NativeKernels('cpu', '0') : undefined;
const run = new Run(device, peers, values.quick, (line) => console.error(`[${seconds().toFixed(0)} s] ${line}`));
const order = new Map(GROUPS.flatMap(({ rows }) => rows).map((row, at) => [row.id, at]));
const json = values.json ?? `build/reports/bench-${id.replace(':', '-')}.json`;
mkdirSync(dirname(json), { recursive: true });

/** After each group: whatever ends the run later, what was measured is there. */
function write(): Report {
  const report: Report = {
    at: new Date().toISOString(),
    device: { id, backend, name },
    machine,
    versions: Object.fromEntries([...peers.present].map(([peer, { version }]) => [peer, version])),
    command: ['node build/js/bench/main.js', ...process.argv.slice(2).map((arg) => (arg.includes(' ') ? `'${arg}'` : arg))].join(' '),
    seconds: Math.round(seconds()),
    results: run.results.toSorted((a, b) => order.get(a.id)! - order.get(b.id)!),
  };
  writeFileSync(json, `${JSON.stringify(report, undefined, 1)}\n`);
  return report;
}

const missing: string[] = [];
for (const group of Object.keys(MEASURES)) {
  if (!wanted.includes(group) || group === (backend === 'cpu' ? 'devices' : 'kernels')) continue;
  if (seconds() > Number(values['limit-s'])) {
    missing.push(`${group} (no time was left)`);
    continue;
  }
  // A group that fails must not cost the figures of the others, above all on a machine that is there for minutes.
  try {
    await MEASURES[group]!(run, native);
  } catch (error) {
    missing.push(`${group} (failed)`);
    console.error(`The rows ${group} failed:`, error);
  }
  write();
}
native?.close();
peers.close();
await device.close();

const report = write();
printReport(report);
console.log(`${report.machine}. ${report.seconds} s. Written to ${json}.`);
if (missing.length > 0) {
  console.error(`These rows are missing: ${missing.join(', ')}.`);
  process.exitCode = 1;
}

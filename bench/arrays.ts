// Copies of ordinary typed arrays to a device and back, which users write first, beside CuPy with NumPy arrays in the same run (on a GPU
// host that has it). `raw` is CuPy's speed. `the call` is how long the copy holds the event loop.
//
//   node build/js/bench/arrays.js [--device cuda:0] [--mib 16,64,256,512] [--rounds 5] [--json FILE]
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDevice, type Device, type DeviceSpec } from 'millrace';
import { printTable, summarize, writeReport, type Row } from './harness.js';

const { values } = parseArgs({
  options: {
    device: { type: 'string', default: 'auto' },
    mib: { type: 'string', default: '16,64,256,512' },
    rounds: { type: 'string', default: '5' },
    json: { type: 'string', default: 'build/reports/arrays.json' },
  },
});
const rounds = Number(values.rounds);
const MIB = 2 ** 20;

type Rows = Readonly<Record<string, readonly number[]>>;
interface Peer {
  readonly version: string;
  readonly rows: Readonly<Record<string, Rows>>;
}

/** Undefined where Python has no CuPy. */
function runPeer(mib: string): Peer | undefined {
  const path = fileURLToPath(new URL('../../../bench/peers/arrays.py', import.meta.url));
  const { status, stdout } = spawnSync('python3', [path, mib, values.rounds], { encoding: 'utf8' });
  return status === 0 ? (JSON.parse(stdout) as Peer) : undefined;
}

async function measure(device: Device, mib: number, peer: Rows | undefined): Promise<Row[]> {
  const { stream } = device;
  const bytes = mib * MIB;
  const seconds: Record<string, number[]> = {};
  const held: Record<string, number[]> = {};
  const take = async (what: string, run: () => { readonly done: PromiseLike<unknown> }): Promise<void> => {
    await stream.synchronize();
    const start = performance.now();
    const { done } = run();
    const called = performance.now();
    await done;
    (seconds[what] ??= []).push((performance.now() - start) / 1e3);
    (held[what] ??= []).push(called - start);
  };
  const dst = device.empty(bytes / 4);
  let data = new Float32Array(0);
  for (let round = 0; round < rounds; round++) {
    data = new Float32Array(bytes / 4).fill(1);
    await take(round === 0 ? 'up, the first' : 'up, a new array each time', () => stream.copy(dst, data));
  }
  for (let round = 0; round < rounds; round++) await take('up, the same array', () => stream.copy(dst, data));
  for (let round = 0; round < rounds; round++) await take('down to a new array', () => ({ done: dst.read() }));
  for (let round = 0; round < rounds; round++) await take('down to the same array', () => ({ done: dst.read({ into: data }) }));
  dst[Symbol.dispose]();
  return Object.entries(seconds).flatMap(([what, all]) => {
    const speed = summarize(all.map((one) => bytes / one / 1e9));
    const other = peer?.[what === 'up, the first' ? 'up, a new array each time' : what];
    const raw = other && summarize(other.map((one) => bytes / one / 1e9)).p50;
    const row = { device: device.info.id, what: `${mib} MiB ${what}`, unit: 'GB/s', p50: speed.p50, p99: speed.p99 };
    const call = summarize(held[what] ?? []);
    return [
      raw === undefined ? row : { ...row, raw },
      { device: device.info.id, what: `${mib} MiB ${what}: the call`, unit: 'ms', p50: call.p50, p99: call.p99 },
    ];
  });
}

const rows: Row[] = [];
await using device = await openDevice(values.device as DeviceSpec);
const peer = device.info.backend === 'cuda' ? runPeer(values.mib) : undefined;
if (device.info.backend === 'cuda') console.log(peer === undefined ? 'CuPy is not installed.' : `CuPy ${peer.version}`);
for (const mib of values.mib.split(',')) rows.push(...(await measure(device, Number(mib), peer?.rows[mib])));
printTable(rows);
writeReport(values.json, rows);

// A histogram of measurements that grows while they come. auditTime limits how often it is drawn, not how often it is computed.
import { openDevice, overlap, type DeviceSpec } from 'millrace';
import { histogram } from 'millrace/ops';
import { auditTime, lastValueFrom, scan, tap } from 'rxjs';

const BINS = 16;
const CHUNK = 100_000;
const CHUNKS = 40;

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);

/** Measurements between 0 and 1, most of them near the middle. */
function* measurements() {
  for (let chunk = 0; chunk < CHUNKS; chunk++)
    yield Float32Array.from({ length: CHUNK }, (_, n) => ((n * 7919) % 1000) / 2000 + ((n * 104_729) % 997) / 1994);
}

function draw(bins: Int32Array, write: (line: string) => void): void {
  const most = Math.max(...bins);
  for (const count of bins.subarray(6, 10)) write('#'.repeat(Math.round((20 * count) / most)));
}

const live$ = overlap(device, measurements, { depth: 3 }, (chunk, lane) =>
  histogram(lane.from(chunk), BINS, { range: [0, 1], stream: lane }).read(),
).pipe(
  scan((total, bins) => total.map((count, bin) => count + bins[bin]!), new Int32Array(BINS)),
  auditTime(40),
  tap((bins) => process.stderr.isTTY && draw(bins, (line) => process.stderr.write(`${line}\n`))),
);

const total = await lastValueFrom(live$);
draw(total, (line) => console.log(line));
// prints: #################
// prints: ####################
// prints: ####################
// prints: #################
console.log(
  'counted:',
  total.reduce((sum, count) => sum + count, 0),
); // prints: counted: 4000000

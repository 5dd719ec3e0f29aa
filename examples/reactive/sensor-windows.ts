// Sliding windows over a sensor's samples. The device computes the means of 32 windows at once, and scan keeps the baseline to compare with.
import { batchFor, openDevice, overlapMap, type DeviceSpec } from 'millrace';
import { mean } from 'millrace/ops';
import { bufferCount, concatMap, filter, from, map, scan } from 'rxjs';

const WINDOW = 256;
const STEP = 64;

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);

/** A quiet sensor: 20 degrees and a ripple. From sample 12,000 to 13,000 it gets warm. */
function* readings() {
  for (let n = 0; n < 20_000; n++) yield 20 + Math.sin(n / 5) + (n >= 12_000 && n < 13_000 ? 10 : 0);
}

const means$ = from(readings()).pipe(
  bufferCount(WINDOW, STEP),
  filter((window) => window.length === WINDOW),
  batchFor({ maxItems: 32, maxWaitMs: 5 }),
  overlapMap(device, { overflow: 'buffer', maxQueue: 1000 }, (windows, lane) => {
    const samples = lane.from(Float32Array.from(windows.flat()), { shape: [windows.length, WINDOW] });
    return mean(samples, { axis: 1, stream: lane }).read();
  }),
  concatMap((batch) => from(batch)),
);

const alarms$ = means$.pipe(
  scan(({ baseline }, own, index) => ({ baseline: 0.99 * baseline + 0.01 * own, own, first: index * STEP }), {
    baseline: 20,
    own: 20,
    first: 0,
  }),
  filter(({ baseline, own }) => own - baseline > 5),
  map(({ first }) => first),
);

const alarms: number[] = [];
await alarms$.forEach((first) => alarms.push(first));
console.log('windows with an alarm:', alarms.length); // prints: windows with an alarm: 15
console.log('samples', alarms[0], 'to', alarms.at(-1)! + WINDOW); // prints: samples 11904 to 13056

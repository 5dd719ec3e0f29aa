// Sliding windows over a sensor's samples. The device computes the mean of 32 windows in one launch, and scan keeps the baseline to compare with.
import { batchFor, f32, input, kernel, openDevice, output, overlapMap, type DeviceSpec } from 'millrace';
import { bufferCount, concatMap, filter, from, map, scan } from 'rxjs';

const WINDOW = 256;
const STEP = 64;

const means = kernel('means', { samples: input(f32, 2), mean: output(f32) }, ({ samples, mean }, { i }) => {
  let sum = 0;
  for (let at = 0; at < samples.shape[1]; at++) sum += samples[i]![at]!;
  mean[i] = sum / samples.shape[1];
});

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);

/** A quiet sensor: 20 degrees and a ripple. From sample 12,000 to 13,000 it gets warm. */
function* readings() {
  for (let n = 0; n < 20_000; n++) yield 20 + Math.sin(n / 5) + (n >= 12_000 && n < 13_000 ? 10 : 0);
}

const means$ = from(readings()).pipe(
  bufferCount(WINDOW, STEP),
  filter((window) => window.length === WINDOW),
  batchFor({ maxItems: 32, maxWaitMs: 5 }),
  overlapMap(device, { overflow: 'buffer', maxQueue: 1000 }, async (windows, lane) => {
    const samples = lane.from(Float32Array.from(windows.flat()), { shape: [windows.length, WINDOW] });
    const mean = lane.empty(windows.length);
    lane.stream.launch(means, windows.length, { samples, mean });
    return await mean.read();
  }),
  concatMap((batch) => from(batch)),
);

const alarms$ = means$.pipe(
  scan(({ baseline }, mean, index) => ({ baseline: 0.99 * baseline + 0.01 * mean, mean, first: index * STEP }), {
    baseline: 20,
    mean: 20,
    first: 0,
  }),
  filter(({ baseline, mean }) => mean - baseline > 5),
  map(({ first }) => first),
);

const alarms: number[] = [];
await alarms$.forEach((first) => alarms.push(first));
console.log('windows with an alarm:', alarms.length); // prints: windows with an alarm: 15
console.log('samples', alarms[0], 'to', alarms.at(-1)! + WINDOW); // prints: samples 11904 to 13056

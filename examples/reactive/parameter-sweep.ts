// The best damping of two springs, searched at the same time. merge mixes the results as they come, and a second subscription shows the progress.
import { f32, i32, input, kernel, openDevice, output, overlap, type Lane, type DeviceSpec } from 'millrace';
import { interval, lastValueFrom, map, merge, reduce } from 'rxjs';

const STEPS = 2000;
const BATCH = 100;

/** How far from rest a damped spring is, summed over all steps. */
const spring = kernel(
  'spring',
  { stiffness: f32, damping: input(f32), distance: output(f32), steps: i32 },
  ({ stiffness, damping, distance, steps }, { i }) => {
    let x = 1.0;
    let v = 0.0;
    let sum = 0.0;
    for (let n = 0; n < steps; n++) {
      v += 0.01 * (-stiffness * x - damping[i]! * v);
      x += 0.01 * v;
      sum += 0.01 * Math.abs(x);
    }
    distance[i] = sum;
  },
);

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
const batches = Array.from({ length: 10 }, (__, batch) => Float32Array.from({ length: BATCH }, (_, n) => (batch * BATCH + n) * 0.004));

const sweep = (name: string, stiffness: number) => {
  const stage = async (values: Float32Array, lane: Lane) => {
    const damping = lane.from(values);
    const distance = lane.empty(BATCH);
    lane.stream.launch(spring, BATCH, { stiffness, damping, distance, steps: STEPS });
    const distances = await distance.read();
    const least = Math.min(...distances);
    return { name, damping: values[distances.indexOf(least)]!, least };
  };
  return overlap(device, batches, { depth: 2, ordered: false }, stage);
};

const sweeps = [sweep('stiff', 1), sweep('soft', 0.5)];
const progress = interval(20)
  .pipe(map(() => sweeps.reduce((sum, run) => sum + run.report().items, 0)))
  .subscribe((done) => process.stderr.isTTY && process.stderr.write(`\r${done} of ${2 * batches.length}`));
const best = await lastValueFrom(
  merge(...sweeps).pipe(
    reduce((all, result) => {
      const before = all.get(result.name);
      return before !== undefined && before.least <= result.least ? all : all.set(result.name, result);
    }, new Map<string, { readonly damping: number; readonly least: number }>()),
  ),
);
progress.unsubscribe();
console.log('stiff:', best.get('stiff')!.damping.toFixed(1)); // prints: stiff: 1.3
console.log('soft:', best.get('soft')!.damping.toFixed(1)); // prints: soft: 0.9
console.log(
  'batches:',
  sweeps.reduce((sum, run) => sum + run.report().items, 0),
); // prints: batches: 20

// Heat in a square plate, with the kernels of heat.cu. A graph contains the steps of one period. While the device computes a period, the
// host reads the plate as it was after the previous period, and decides whether to stop.
import assert from 'node:assert/strict';
import { cudaModule, f32, i32, inout, input, openDevice, output, overlap, type DeviceSpec } from 'millrace';
import { lastValueFrom, takeWhile, tap } from 'rxjs';

const N = 50;
/** Steps between two checks of the plate by the host. */
const PERIOD = 400;
const RATE = 0.25;
const TOLERANCE = 1e-5;
const [TILE, BLOCK] = [16, 256]; // as in heat.cu

const module = cudaModule(new URL('./heat.cu', import.meta.url));
const heatStep = module.kernel('heat_step', { now: input(f32), next: output(f32), n: i32, rate: f32 });
const largestChange = module.kernel('largest_change', { a: input(f32), b: input(f32), count: i32, largest: inout(f32) });

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
const compute = device.createStream({ label: 'compute' });
const plate = new Float32Array(N * N).fill(1, 0, N);
using a = compute.from(plate);
using b = compute.empty(N * N);

const tiles = Math.ceil(N / TILE);
await using period = compute.capture({ shot: output(f32), largest: inout(f32) }, (s, { shot, largest }) => {
  for (let step = 0; step < PERIOD; step += 2) {
    s.launch(heatStep, { grid: [tiles, tiles], block: [TILE, TILE] }, { now: a, next: b, n: N, rate: RATE });
    s.launch(heatStep, { grid: [tiles, tiles], block: [TILE, TILE] }, { now: b, next: a, n: N, rate: RATE });
  }
  s.fill(largest, 0);
  s.launch(largestChange, { grid: 16, block: BLOCK }, { a, b, count: N * N, largest });
  s.copy(shot, a);
});
await period.upload().done; // builds and uploads the graph, so that the time below is that of the steps

function* periods() {
  for (let steps = PERIOD; ; steps += PERIOD) yield steps;
}

// With two lanes, the device computes one period while the host reads the results of the period before. `read` waits only for the writer of its
// array, and copies on a stream of its own.
const looks$ = overlap(device, periods, { depth: 2 }, async (steps, lane) => {
  const [shot, largest] = [lane.empty(N * N), lane.empty(1)];
  compute.launch(period, { shot, largest });
  const [heat, change] = await Promise.all([shot.read(), largest.item()]);
  return { steps, heat, change };
});

const startMs = performance.now();
const { steps, heat } = await lastValueFrom(
  looks$.pipe(
    tap((look) => console.log(`step ${look.steps}: the middle has ${look.heat[(N / 2) * N + N / 2]!.toFixed(3)}`)),
    takeWhile(({ change }) => change > TOLERANCE, true),
  ),
);
const ms = performance.now() - startMs;

/** The same steps in plain TypeScript. */
function stepsOnHost(count: number): Float32Array {
  let [now, next] = [plate.slice(), plate.slice()];
  for (let step = 0; step < count; step++, [now, next] = [next, now]) {
    for (let y = 1; y < N - 1; y++) {
      for (let i = y * N + 1; i < y * N + N - 1; i++)
        next[i] = now[i]! + RATE * (now[i - N]! + now[i + N]! + now[i - 1]! + now[i + 1]! - 4 * now[i]!);
    }
  }
  return now;
}

const expected = stepsOnHost(steps);
assert.ok(heat.every((value, i) => Math.abs(value - expected[i]!) < 1e-4));
console.log(`${steps} steps in ${ms.toFixed(1)} ms: as in plain TypeScript`);
// prints: step 400: the middle has 0.071
// prints: step 800: the middle has 0.164
// prints: step 1200: the middle has 0.207
// prints: step 1600: the middle has 0.226
// prints: step 2000: the middle has 0.235
// prints: step 2400: the middle has 0.239
// prints: 2400 steps in 40.2 ms: as in plain TypeScript

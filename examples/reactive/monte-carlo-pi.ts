// Estimates pi from batches of random points until its standard error is small enough. takeWhile then ends the run: the generator stops, and the
// lanes give back what they hold.
import { i32, kernel, openDevice, output, overlap, u32, type DeviceSpec } from 'millrace';
import { lastValueFrom, map, scan, takeWhile } from 'rxjs';

const THREADS = 4096;
const POINTS = 256;
const WANTED_ERROR = 0.0005;

const inside = kernel('inside', { seed: i32, points: i32, hits: output(u32) }, ({ seed, points, hits }, { i, rng }) => {
  const random = rng(seed, i);
  let count = 0;
  for (let n = 0; n < points; n++) {
    const x = random.uniform();
    const y = random.uniform();
    if (x * x + y * y < 1) count++;
  }
  hits[i] = count;
});

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);

function* seeds() {
  for (let seed = 1; ; seed++) yield seed;
}

const estimate$ = overlap(device, seeds, { depth: 3 }, async (seed, lane) => {
  const hits = lane.empty(THREADS, u32);
  lane.stream.launch(inside, THREADS, { seed, points: POINTS, hits });
  return (await hits.read()).reduce((sum, count) => sum + count, 0);
}).pipe(
  scan(({ hits, points }, more) => ({ hits: hits + more, points: points + THREADS * POINTS }), { hits: 0, points: 0 }),
  map(({ hits, points }) => {
    const share = hits / points;
    return { pi: 4 * share, error: 4 * Math.sqrt((share * (1 - share)) / points), points };
  }),
  takeWhile(({ error }) => error > WANTED_ERROR, true),
);

const { pi, error, points } = await lastValueFrom(estimate$);
console.log(`pi is ${pi.toFixed(2)} after ${points / 2 ** 20} Mi points`); // prints: pi is 3.14 after 11 Mi points
console.log('off by less than five standard errors:', Math.abs(pi - Math.PI) < 5 * error); // prints: off by less than five standard errors: true

// The chapters about order on CPU devices that delay and reorder operations pseudo-randomly, as far as the rules allow. A
// missing wait, in the library or in a test, shows within a few seeds; `npm run soak` runs many more.
import { CPU_DEVICES } from '../support/two-cpu-devices.js';
import { expect, test } from 'vitest';
import { openDevice } from 'millrace';
import { CPU_SUPPORTS } from '../support/target.js';
import { orderSuite } from './suite.js';

/** MILLRACE_SEEDS=7 runs only seed 7, to repeat a failure; 1-1000 runs these seeds. */
const [first = 1, last = first] = (process.env['MILLRACE_SEEDS'] ?? '1-2').split('-').map(Number);

for (let seed = first; seed <= last; seed++) {
  // Each device reads this variable when it opens.
  const seeded = (): void => void (process.env['MILLRACE_CPU_SEED'] = String(seed));
  orderSuite({
    name: `cpu, seed ${seed}`,
    spec: 'cpu:0',
    supports: CPU_SUPPORTS,
    programs: 15,
    open: (options) => {
      seeded();
      return openDevice('cpu:0', options);
    },
    openOther: () => {
      seeded();
      return openDevice(`cpu:${CPU_DEVICES - 1}`);
    },
  });
}

test('S102 two unordered streams run in either order under some seed', { timeout: 60_000 }, async () => {
  const seen = new Set<number>();
  let seeds = 0;
  while (seen.size < 2 && ++seeds <= 200) {
    process.env['MILLRACE_CPU_SEED'] = String(seeds);
    await using device = await openDevice('cpu:0');
    const streams = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
    using x = device.zeros(1, 'i32');
    await device.synchronize();
    for (const [n, stream] of streams.entries()) stream.fill(x, n);
    await device.synchronize();
    seen.add((await x.read())[0]!);
  }
  expect(
    [...seen].toSorted((a, b) => a - b),
    `after ${seeds - 1} seeds`,
  ).toEqual([0, 1]);
});

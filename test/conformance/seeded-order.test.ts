// Unordered streams really run in either order, so that the seeds of the project `seeded` test something.
import { expect, test } from 'vitest';
import { openDevice } from 'millrace';

test('S102 two unordered streams run in either order under some seed', { timeout: 60_000 }, async () => {
  const seen = new Set<number>();
  let seeds = 0;
  while (seen.size < 2 && ++seeds <= 200) {
    process.env['MILLRACE_CPU_SEED'] = String(seeds);
    await using device = await openDevice('cpu');
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

// How many turns of the event loop an item of a pipeline costs, on a device that is slower than the event loop polls: one wake, and for a
// result in an ordinary array at most one more. driver-calls.test.ts counts the calls of the driver.
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { ordinaryFrame, pinnedFrame, plusOne } from '../support/frame-stages.js';
import { expect, test } from 'vitest';
import { openDevice, overlap, type Stage } from 'millrace';

process.env['MILLRACE_FAKE_CUDA_DELAY_US'] = '500';

const ITEMS = 60;
const LENGTH = 2 ** 16;
/** A busy machine may add polls. */
const MOST_TURNS = 3;
const RUNS = 5;

const STAGES: Readonly<Record<string, Stage<number, number | Float32Array>>> = {
  'pinned arrays of the lane': pinnedFrame(LENGTH),
  'ordinary arrays': ordinaryFrame(LENGTH),
};

test.for(Object.entries(STAGES))('an item with %s takes few turns', { timeout: 60_000 }, async ([, stage], context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  await using device = await openDevice('cuda:0');
  await device.compile(plusOne);
  const turns: number[] = [];
  // Other programs may keep the device's thread from running, for which the loop polls.
  while (turns.length < RUNS && !(turns.at(-1)! <= MOST_TURNS)) {
    const before = performance.nodeTiming.uvMetricsInfo.loopCount;
    let count = 0;
    for await (const result of overlap(device, Array(ITEMS).keys(), stage)) {
      expect(typeof result === 'number' ? result : result[0]).toBe(++count);
    }
    expect(count).toBe(ITEMS);
    turns.push((performance.nodeTiming.uvMetricsInfo.loopCount - before) / ITEMS);
  }
  expect(Math.min(...turns), turns.join()).toBeLessThanOrEqual(MOST_TURNS);
});

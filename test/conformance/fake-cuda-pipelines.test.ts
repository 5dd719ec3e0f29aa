// What an item of `overlap` costs: calls of the driver, counted in the log of the fake driver, and turns of the event loop.
import { readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { afterAll, expect, test } from 'vitest';
import { of } from 'rxjs';
import { download, f32, inout, kernel, launch, openDevice, overlap, upload, type Lane, type Stage } from 'millrace';

const log = path.join(os.tmpdir(), `millrace-pipelines-${process.pid}.log`);
process.env['MILLRACE_FAKE_CUDA_LOG'] = log;
// Longer than the event loop polls, so that each item waits for a wake.
process.env['MILLRACE_FAKE_CUDA_DELAY_US'] = '500';
afterAll(() => rmSync(log, { force: true }));

const ITEMS = 60;
const DEPTH = 3;
const LENGTH = 2 ** 16;
const plusOne = kernel('plus_one', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i]! + 1;
});

const STAGES: Readonly<Record<string, Stage<number, number>>> = {
  'pinned arrays of the lane': async (n, lane) => {
    const [x, a, b] = [lane.empty(LENGTH), lane.pinned(LENGTH), lane.pinned(LENGTH)];
    a.data[0] = n;
    lane.stream.copy(x, a);
    lane.stream.launch(plusOne, LENGTH, { x });
    await lane.stream.copy(b, x).done;
    return b.data[0]!;
  },
  'upload, launch, download': async (n, lane) => (await frame(n, lane))[0]!,
};

function frame(n: number, lane: Lane): Promise<Float32Array> {
  const steps = of(new Float32Array(LENGTH).fill(n)).pipe(
    upload(lane),
    launch(lane, plusOne, LENGTH, (x) => ({ x })),
    download(lane),
  );
  return new Promise((resolve, reject) => steps.subscribe({ next: resolve, error: reject }));
}

function countCalls(): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [, name] of readFileSync(log, 'utf8').matchAll(/thread=\d+ (\w+)/g)) counts[name!] = (counts[name!] ?? 0) + 1;
  return counts;
}

test('S950 an item of a pipeline makes few calls of the driver and turns of the event loop', { timeout: 60_000 }, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  await using device = await openDevice('cuda:0');
  await device.compile(plusOne);
  for (const [name, stage] of Object.entries(STAGES)) {
    const run = async (): Promise<void> => {
      let count = 0;
      for await (const value of overlap(device, Array(ITEMS).keys(), { depth: DEPTH }, stage)) expect(value).toBe(++count);
      expect(count).toBe(ITEMS);
    };
    await run();
    const [before, turnsBefore] = [countCalls(), performance.nodeTiming.uvMetricsInfo.loopCount];
    await run();
    const turns = performance.nodeTiming.uvMetricsInfo.loopCount - turnsBefore;
    const after = countCalls();
    const calls = (call: string): number => (after[call] ?? 0) - (before[call] ?? 0);
    // An item is a copy up, a launch and a copy down, each with its event.
    expect([calls('cuMemcpyAsync'), calls('cuLaunchKernel')], name).toEqual([2 * ITEMS, ITEMS]);
    expect(calls('cuEventRecord'), `${name}: events`).toBeLessThanOrEqual(3 * ITEMS + 4 * DEPTH);
    expect(calls('cuStreamWaitEvent'), `${name}: waits`).toBe(0);
    expect(calls('cuStreamWriteValue64'), `${name}: stream writes`).toBeLessThanOrEqual(2 * ITEMS);
    expect([calls('cuMemAllocAsync'), calls('cuMemFreeAsync')], `${name}: allocations`).toEqual([DEPTH, DEPTH]);
    expect(calls('cuMemHostRegister'), `${name}: page-locks`).toBeLessThanOrEqual(1);
    expect(turns, `${name}: turns`).toBeLessThanOrEqual(3 * ITEMS);
  }
});

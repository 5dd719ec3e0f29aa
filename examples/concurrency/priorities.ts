// A priority is a hint to the device about work that has not begun: 0 is the default, -1 is high. It does not stop what runs,
// and does not matter to copies. Compares the time that two competing streams take, with three pairs of priorities.
import assert from 'node:assert/strict';
import { elapsed, type Device, type Stream } from 'millrace';
import { spin } from './kernels.js';

export interface Ratios {
  /** Time of the high stream over that of the other. */
  readonly high: number;
  readonly equal: number;
  /** The priorities exchanged: time of the low stream over that of the other. */
  readonly swapped: number;
}

const LAUNCHES = 40;

export async function run([device]: readonly [Device]): Promise<Ratios> {
  const clamped = device.createStream({ priority: -99 });
  assert.equal(clamped.priority, Math.max(-1, device.info.priorityRange[1]));
  await clamped.close();
  await device.compile(spin);

  const ratios = {
    high: await compare(device, -1, 0),
    equal: await compare(device, 0, 0),
    swapped: await compare(device, 0, -1),
  };
  // Which of two kernels goes first is the device's affair where there are no priorities.
  if (device.info.backend === 'cuda' && device.info.priorityRange[1] < 0) {
    assert.ok(ratios.high < ratios.swapped, JSON.stringify(ratios));
  }
  return ratios;
}

async function compare(device: Device, first: number, second: number): Promise<number> {
  const streams = [first, second].map((priority) => device.createStream({ priority }));
  // Blocks enough to fill the device, so that there is something to choose from.
  const threads = device.info.backend === 'cuda' ? device.info.multiprocessors * 2048 * 4 : 64;
  const steps = device.info.backend === 'cuda' ? 2000 : 10_000;
  const arrays = streams.map((stream) => stream.zeros(threads));
  const times = streams.map((stream) => ({ start: stream.record({ timing: true }), stream }));
  for (let n = 0; n < LAUNCHES; n++) {
    for (const [at, stream] of streams.entries()) stream.launch(spin, { threads, block: 256 }, { x: arrays[at]!, steps });
  }
  const taken = await Promise.all(times.map(({ start, stream }) => measure(start, stream)));
  for (const array of arrays) array[Symbol.dispose]();
  await Promise.all(streams.map((stream) => stream.close()));
  return taken[0]! / taken[1]!;
}

async function measure(start: ReturnType<Stream['record']>, stream: Stream): Promise<number> {
  const end = stream.record({ timing: true });
  const time = await elapsed(start, end);
  start[Symbol.dispose]();
  end[Symbol.dispose]();
  return Math.max(time, 1e-6);
}

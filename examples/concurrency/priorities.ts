// A priority is a hint to the device about work that has not begun: 0 is the default, -1 is high. It does not stop what runs,
// and does not matter to copies between host and device; those inside of a GPU are kernels like others. Compares the time that
// two competing streams take, with three pairs of priorities.
import assert from 'node:assert/strict';
import { elapsed, type Device, type DeviceEvent, type Stream } from 'millrace';

export interface Ratios {
  /** Time of the high stream over that of the other. */
  readonly high: number;
  readonly equal: number;
  /** The priorities exchanged: time of the low stream over that of the other. */
  readonly swapped: number;
}

export async function run([device]: readonly [Device]): Promise<Ratios> {
  const clamped = device.createStream({ priority: -99 });
  assert.equal(clamped.priority, Math.max(-1, device.info.priorityRange[1]));
  await clamped.close();

  // The first copies of all wake the device up.
  await compare(device, 0, 0);
  const ratios = {
    high: await compare(device, -1, 0),
    equal: await compare(device, 0, 0),
    swapped: await compare(device, 0, -1),
  };
  // Which of two copies goes first is the device's affair where there are no priorities.
  if (device.info.backend === 'cuda' && device.info.priorityRange[1] < 0) {
    assert.ok(ratios.high < ratios.swapped, JSON.stringify(ratios));
  }
  return ratios;
}

/** Two copies on each of two streams, begun together: the time of the first stream over that of the second. */
async function compare(device: Device, first: number, second: number): Promise<number> {
  // A gibibyte each on a GPU: it takes about as long as the work of a training step.
  const length = device.info.backend === 'cuda' ? 256 * 2 ** 20 : 2 ** 20;
  const runs = [first, second].map((priority) => {
    const stream = device.createStream({ priority });
    return { stream, src: stream.zeros(length), dst: stream.empty(length) };
  });
  await device.synchronize();
  // The one that is submitted first gains nothing by it: the second's start is recorded before the first's copies.
  const starts = runs.map(({ stream }) => stream.record({ timing: true }));
  for (const { stream, src, dst } of runs) {
    const half = length / 2;
    stream.copy(dst, src, { count: half });
    stream.copy(dst, src, { srcOffset: half, dstOffset: half, count: half });
  }
  const taken = await Promise.all(runs.map(({ stream }, at) => measure(starts[at]!, stream)));
  for (const { stream, src, dst } of runs) {
    src[Symbol.dispose]();
    dst[Symbol.dispose]();
    await stream.close();
  }
  return taken[0]! / taken[1]!;
}

async function measure(start: DeviceEvent, stream: Stream): Promise<number> {
  const end = stream.record({ timing: true });
  const time = await elapsed(start, end);
  start[Symbol.dispose]();
  end[Symbol.dispose]();
  return Math.max(time, 1e-6);
}

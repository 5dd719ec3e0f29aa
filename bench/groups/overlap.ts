// How busy the slowest part of a pipeline is: parts on the event loop that take one frame at a time, and the three parts of the device.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Device, download, i32, inout, kernel, type Lane, launch, overlap, upload } from 'millrace';
import { lastValueFrom, of } from 'rxjs';
import { ONE, spin } from '../suite/kernels.js';
import type { Run } from '../suite/run.js';

const FRAMES = 1000;
const PART_MS = 4;
const LENGTH = 2 ** 14;

const plusOne = kernel('plus_one', { x: inout(i32) }, ({ x }, { i }) => {
  x[i] = x[i]! + 1;
});

/** A part takes one frame at a time, in the order in which they come. */
class Part {
  readonly name: string;
  #last = Promise.resolve();

  constructor(name: string) {
    this.name = name;
  }

  async pass(lane: Lane): Promise<void> {
    const before = this.#last;
    let leave = (): void => undefined;
    this.#last = new Promise((resolve) => (leave = resolve));
    await before;
    await lane.time(this.name, sleep(PART_MS));
    leave();
  }
}

export async function pipelines(run: Run): Promise<void> {
  await run.device.compile(plusOne, spin);
  for (const lanes of [4, 3]) {
    const shares: number[] = [];
    for (let round = 0; round < run.times(2); round++) shares.push(await busyShare(run.device, run.times(FRAMES), lanes));
    run.add(`overlap.${lanes}`, shares);
  }
  if (run.isGpu) run.add('overlap.device', await deviceShares(run));
}

async function busyShare(device: Device, frames: number, lanes: number): Promise<number> {
  const parts = ['decode', 'infer', 'encode'].map((name) => new Part(name));
  function* source(): Generator<Int32Array> {
    for (let n = 0; n < frames; n++) yield new Int32Array(LENGTH).fill(n);
  }
  const results = overlap(device, source(), { depth: lanes }, async (frame, lane) => {
    for (const part of parts) await part.pass(lane);
    return lastValueFrom(
      of(frame).pipe(
        upload(lane),
        launch(lane, plusOne, LENGTH, (x) => ({ x })),
        download(lane),
      ),
    );
  });
  let count = 0;
  for await (const frame of results) {
    if (frame[0] !== ++count) throw new Error(`Frame ${count - 1} is ${frame[0]}.`);
  }
  const { bottleneckBusy } = results.report();
  if (bottleneckBusy === undefined) throw new Error('The report has no busiest stage.');
  return bottleneckBusy;
}

/** Uploads, kernels and downloads that take the same time, on three streams: the longest of them alone, divided by all together. */
async function deviceShares(run: Run): Promise<number[]> {
  const { device } = run;
  const length = 4 * 2 ** 20;
  const streams = Array.from({ length: 3 }, () => device.createStream({ ordering: 'explicit' }));
  const lanes = streams.map((stream) => ({
    stream,
    source: device.pinned(length),
    target: device.pinned(length),
    x: stream.zeros(length),
    y: stream.zeros(1),
  }));
  type Step = (lane: (typeof lanes)[number]) => void;
  const timed = async (count: number, steps: readonly Step[]): Promise<number> => {
    await device.synchronize();
    const start = performance.now();
    for (let n = 0; n < count; n++) for (const step of steps) step(lanes[n % lanes.length]!);
    await device.synchronize();
    return (performance.now() - start) / count;
  };
  const up: Step = ({ stream, x, source }) => void stream.copy(x, source);
  const down: Step = ({ stream, x, target }) => void stream.copy(target, x);
  // A kernel of one thread: kernels of several streams run side by side, so their time is that of one after another, on one stream.
  let steps = 10_000;
  const work: Step = ({ stream, y }) => void stream.launch(spin, ONE, { x: y, steps });
  await timed(6, [up, work, down]);
  const copyMs = await timed(60, [up]);
  const [first] = lanes;
  const alone = async (): Promise<number> => {
    await device.synchronize();
    const start = performance.now();
    for (let n = 0; n < 20; n++) work(first!);
    await device.synchronize();
    return (performance.now() - start) / 20;
  };
  for (let round = 0; round < 4; round++) steps = Math.max(1, Math.round((steps * copyMs) / (await alone())));
  const shares: number[] = [];
  for (let round = -1; round < run.times(7); round++) {
    const longest = Math.max(await timed(120, [up]), await timed(120, [down]));
    const all = await timed(120, [up, work, down]);
    if (round >= 0) shares.push(longest / all);
  }
  for (const { stream, source, target, x, y } of lanes) {
    for (const array of [source, target, x, y]) array[Symbol.dispose]();
    await stream.close();
  }
  return shares;
}

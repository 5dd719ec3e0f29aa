// How busy the slowest part of a pipeline is whose parts on the event loop take one frame at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Device, download, i32, inout, kernel, type Lane, launch, overlap, upload } from 'millrace';
import { lastValueFrom, of } from 'rxjs';
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
  await run.device.compile(plusOne);
  for (const lanes of [4, 3]) {
    const shares: number[] = [];
    for (let round = 0; round < run.times(2); round++) shares.push(await busyShare(run.device, run.times(FRAMES), lanes));
    run.add(`overlap.${lanes}`, shares);
  }
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

// Sends frames through three parts of 4 ms each, of which each takes one frame at a time, and through the device. Prints as JSON how
// busy the busiest part was, how far memory grew between an early and the last frame, and the delay of the event loop.
//   node steady-frames.mjs <device> <frames> <depth>
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { download, i32, inout, kernel, launch, openDevice, overlap, upload } from 'millrace';
import { lastValueFrom, of } from 'rxjs';

const [spec, frames, depth] = process.argv.slice(2);
const PART_MS = 4;
const LENGTH = 2 ** 14;
const RESOLUTION_MS = 1;

const plusOne = kernel('plus_one', { x: inout(i32) }, ({ x }, { i }) => {
  x[i] = x[i] + 1;
});

/** A part takes one frame at a time, in the order in which they come. */
class Part {
  #last = Promise.resolve();
  constructor(name) {
    this.name = name;
  }
  async pass(lane) {
    const before = this.#last;
    let leave;
    this.#last = new Promise((resolve) => (leave = resolve));
    await before;
    await lane.time(this.name, sleep(PART_MS));
    leave();
  }
}

const device = await openDevice(spec);
await device.compile(plusOne);
const parts = ['decode', 'infer', 'encode'].map((name) => new Part(name));

function* source() {
  for (let n = 0; n < Number(frames); n++) yield new Int32Array(LENGTH).fill(n);
}

function memory() {
  for (let n = 0; n < 3; n++) globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const run = overlap(device, source(), { depth: Number(depth) }, async (frame, lane) => {
  for (const part of parts) await part.pass(lane);
  return lastValueFrom(
    of(frame).pipe(
      upload(lane),
      launch(lane, plusOne, LENGTH, (x) => ({ x })),
      download(lane),
    ),
  );
});

/** The 99th percentile. The histogram has the time between two ticks, of which the resolution is no delay. */
async function delayDuring(work) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  await work();
  delay.disable();
  return delay.percentile(99) / 1e6 - RESOLUTION_MS;
}

let count = 0;
async function consume(until) {
  for (let next; count < until && !(next = await results.next()).done; ) {
    const frame = next.value;
    if (frame[0] !== count + 1 || frame[LENGTH - 1] !== count + 1) throw new Error(`Frame ${count} is ${frame[0]}.`);
    count++;
  }
}

// What other processes do to the event loop of an idle one.
const idleMs = [await delayDuring(() => sleep(500))];
const results = run[Symbol.asyncIterator]();
await consume(100);
const early = memory();
const delayP99Ms = await delayDuring(() => consume(Infinity));
const { bottleneck, bottleneckBusy, items } = run.report();
const grownMiB = (memory() - early) / 2 ** 20;
idleMs.push(await delayDuring(() => sleep(500)));
console.log(JSON.stringify({ items, bottleneck, bottleneckBusy, grownMiB, delayP99Ms, idleP99Ms: Math.max(...idleMs) }));
await device.close();

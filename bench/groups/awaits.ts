// From a launch to the continuation of its `await`, events awaited by the thousand, and what the device costs a loop that does other things.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Device } from 'millrace';
import { empty, ONE, saxpyOne } from '../suite/kernels.js';
import { LoopDelay } from '../suite/loop-delay.js';
import { onGpu, type Run, secondsOf, us } from '../suite/run.js';

const ROUNDS = 5;
const HOT = 2000;
/** Before the hot ones of each round, because other sides ran meanwhile. */
const WARM = 200;
const IDLE = 60;
const EVENTS = 10_000;
const LOAD_MS = 2000;

export async function awaits(run: Run): Promise<void> {
  const { device } = run;
  await device.compile(empty, saxpyOne);
  const stream = device.createStream({ ordering: 'explicit' });
  const roundTrip = () => stream.launch(empty, ONE, {}).done;
  const peers = (count: number, idleMs: number) =>
    onGpu(run, {
      'C++ driver, spinning': { of: 'C++ driver', request: `round_trip ${count} ${idleMs}` },
      'C++ driver': `blocking ${count} ${idleMs}`,
      CuPy: `blocking ${count} ${idleMs}`,
      'CuPy, asyncio': { of: 'CuPy', request: `awaited ${count} ${idleMs}` },
      PyTorch: `blocking ${count} ${idleMs}`,
      'cuda.core': `blocking ${count} ${idleMs}`,
    });
  const [hot, idle] = [run.times(HOT), run.times(IDLE)];
  const ofHot = async (): Promise<number[]> => {
    await secondsOf(WARM, roundTrip);
    return secondsOf(hot, roundTrip);
  };
  await run.compare('await.hot', { rounds: ROUNDS, unit: us, ours: ofHot, peers: peers(hot, 0) });
  const ours = (): Promise<number[]> => secondsOf(idle, roundTrip, () => sleep(2));
  await run.compare('await.idle', { rounds: ROUNDS, unit: us, ours, peers: peers(idle, 2) });

  await run.compare('await.many', {
    rounds: 20,
    unit: us,
    ours: async () => {
      const start = performance.now();
      const all: Promise<void>[] = [];
      for (let n = 0; n < EVENTS; n++) all.push(stream.record().done);
      await Promise.all(all);
      return [(performance.now() - start) / 1e3 / EVENTS];
    },
    peers: onGpu(run, { 'C++ driver': `events ${EVENTS}`, CuPy: `events ${EVENTS}` }),
  });
  await stream.close();

  const rest = await delays(() => sleep(run.times(LOAD_MS)));
  run.add('loop.delay', await delays(() => load(device, run.times(LOAD_MS))), { 'no load': rest });
  run.add('idle.cpu', await idleShares(run.times(5)));
}

async function delays(work: () => Promise<unknown>): Promise<readonly number[]> {
  const delay = new LoopDelay();
  await delay.during(work);
  return delay.milliseconds;
}

/** Three streams that always have an upload, launches and a download in flight. */
async function load(device: Device, forMs: number): Promise<void> {
  const end = performance.now() + forMs;
  const length = 2 ** 20;
  const one = async (): Promise<void> => {
    const stream = device.createStream();
    using source = device.pinned(length);
    using target = device.pinned(length);
    using x = stream.empty(length);
    using y = stream.zeros(length);
    while (performance.now() < end) {
      stream.copy(x, source);
      for (let n = 0; n < 200; n++) stream.launch(saxpyOne, ONE, { a: 1, x, y });
      await stream.copy(target, y).done;
    }
    await stream.close();
  };
  await Promise.all([one(), one(), one()]);
}

/** Processor time of the whole process while it does nothing, in percent of one core. */
async function idleShares(rounds: number): Promise<number[]> {
  // After a pause and over long windows, so that what the earlier rows left to do counts little: over 10 s in a process of its own, an idle
  // CPU device takes 0.01 to 0.03 %.
  await sleep(1500);
  const shares: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const [before, start] = [process.cpuUsage(), performance.now()];
    await sleep(2000);
    const { user, system } = process.cpuUsage(before);
    shares.push((user + system) / 10 / (performance.now() - start));
  }
  return shares;
}

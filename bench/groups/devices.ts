// Two GPUs of one host: the same work on one and on both, and copies between them.
import { cudaKernel, type Device, f32, i32, inout, listDevices, openDevice } from 'millrace';
import { closeLanes, frameCount, increment, lengthOf, openLanes } from '../suite/lanes.js';
import { gigabytesPerSecond, type Run, secondsOf } from '../suite/run.js';
import { secondsByHand, submitFrame } from './frames.js';

const PEER_MIB = [16, 256] as const;
const LENGTH = 2 ** 20;
const LAUNCHES = 200;
const FRAME_SIZE = '16';
const FRAMES_MIB = 3072;

/** Long enough that a launch is a small part of it. */
const LAUNCH_MS = 1;

/** Arithmetic of every thread, which keeps a whole GPU busy. */
const busy = cudaKernel(
  'busy',
  { x: inout(f32), steps: i32 },
  `extern "C" __global__ void busy(float* x, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int n = 0; n < steps; n++) value = value * 0.999f + 0.001f;
    x[i] = value;
  }`,
);

export async function devices(run: Run): Promise<void> {
  const other = (await listDevices()).find(({ id }) => id.startsWith('cuda:') && id !== run.device.info.id);
  if (other === undefined) {
    for (const id of ['devices.frames', 'devices.two', ...PEER_MIB.map((mib) => `devices.peer.${mib}`)])
      run.add(id, { absent: 'this machine has one GPU' });
    return;
  }
  await using second = await openDevice(other.id);
  await framesOfTwo(run, [run.device, second]);
  await two(run, [run.device, second]);
  await peerCopies(run, second);
}

/** Each GPU has lanes and a loop of its own. */
async function framesOfTwo(run: Run, pair: readonly [Device, Device]): Promise<void> {
  await Promise.all(pair.map((device) => device.compile(increment)));
  const lanes = pair.map((device) => openLanes(device, lengthOf(FRAME_SIZE), 'tracked'));
  const count = frameCount(run, FRAME_SIZE, FRAMES_MIB, 1000);
  const loop = (at: number): Promise<number[]> => secondsByHand(lanes[at]!, count, submitFrame);
  const both = async (): Promise<number> => {
    const start = performance.now();
    await Promise.all([loop(0), loop(1)]);
    return (performance.now() - start) / 1e3 / (2 * count);
  };
  const gain = async (): Promise<number[]> => {
    const alone = ((await loop(0))[0]! + (await loop(1))[0]!) / 2;
    return [alone / (await both())];
  };
  await run.compare('devices.frames', {
    rounds: 5,
    unit: (ratio) => ratio,
    ours: gain,
    peers: { 'C++ driver': `two ${Number(FRAME_SIZE) * 1024} ${count}` },
  });
  for (const own of lanes) await closeLanes(own);
}

async function two(run: Run, pair: readonly [Device, Device]): Promise<void> {
  const lanes = pair.map((device) => ({ device, stream: device.createStream({ ordering: 'explicit' }), x: device.ones(LENGTH) }));
  await Promise.all(pair.map((device) => device.compile(busy)));
  await Promise.all(pair.map((device) => device.synchronize()));
  let steps = 100;
  const timed = async (used: typeof lanes, launches: number): Promise<number> => {
    const start = performance.now();
    for (let n = 0; n < launches; n++) for (const { stream, x } of used) stream.launch(busy, { threads: LENGTH, block: 256 }, { x, steps });
    await Promise.all(used.map(({ stream }) => stream.synchronize()));
    return performance.now() - start;
  };
  for (let round = 0; round < 4; round++) {
    const launchMs = (await timed(lanes.slice(0, 1), 10)) / 10;
    steps = Math.max(1, Math.round((steps * LAUNCH_MS) / launchMs));
  }
  const launches = run.times(LAUNCHES);
  const speedUps: number[] = [];
  for (let round = -1; round < run.times(7); round++) {
    const alone = (await timed(lanes.slice(0, 1), launches)) + (await timed(lanes.slice(1), launches));
    const both = await timed(lanes, launches);
    if (round >= 0) speedUps.push(alone / both);
  }
  run.add('devices.two', speedUps);
  for (const { stream, x } of lanes) {
    x[Symbol.dispose]();
    await stream.close();
  }
}

async function peerCopies(run: Run, second: Device): Promise<void> {
  const { device } = run;
  for (const what of ['memory', 'pool'] as const) {
    if (await second.peers.canGrant(device, what)) await second.peers.grant(device, what);
    if (await device.peers.canGrant(second, what)) await device.peers.grant(second, what);
  }
  const stream = device.createStream({ ordering: 'explicit' });
  for (const mib of PEER_MIB) {
    const bytes = mib * 2 ** 20;
    using dst = device.zeros(bytes / 4);
    using src = second.zeros(bytes / 4);
    await Promise.all([device.synchronize(), second.synchronize()]);
    await run.compare(`devices.peer.${mib}`, {
      rounds: 7,
      unit: gigabytesPerSecond(bytes),
      ours: () => secondsOf(5, () => stream.copy(dst, src).done),
      peers: { 'C++ driver': `peer ${mib} 5` },
    });
  }
  await stream.close();
}

// Work that takes a while, for programs that end in the middle of it.
import { cudaKernel, i32, inout, u32 } from 'millrace';

/** A chain of dependent multiplications: about a millisecond for half a million turns. */
export const spin = cudaKernel(
  'spin',
  { x: inout(u32), turns: i32 },
  `extern "C" __global__ void spin(unsigned* x, int turns) {
  unsigned value = x[0];
  for (int n = 0; n < turns; ++n) value = value * 1664525u + 1013904223u;
  x[0] = value + 1u;
}`,
);

export const TURNS = 500_000;
export const ONE = { grid: 1, block: 1 };

/** Two streams, `launches` launches on each, a download at the end into a pinned array. Nothing is awaited but the build and the first launch. */
export async function startWork(device, launches = 400, turns = TURNS) {
  await device.compile(spin);
  const lanes = [0, 1].map((index) => {
    const stream = device.createStream({ label: `lane ${index}` });
    const x = stream.zeros(1, 'u32');
    const out = device.pinned(1, 'u32');
    const first = stream.launch(spin, ONE, { x, turns });
    let last = first;
    for (let n = 1; n < launches; n++) last = stream.launch(spin, ONE, { x, turns });
    const copied = stream.copy(out, x);
    return { stream, x, out, first, last, copied };
  });
  await Promise.all(lanes.map((lane) => lane.first.done));
  if (lanes.some((lane) => lane.copied.isComplete)) throw new Error('The work was over before the test began.');
  return lanes;
}

/** One launch, checked: the device works. */
export async function checkDevice(device) {
  const stream = device.createStream({ label: 'check' });
  const x = stream.zeros(1, 'u32');
  for (let n = 0; n < 3; n++) stream.launch(spin, ONE, { x, turns: 0 });
  const [value] = await x.read();
  x[Symbol.dispose]();
  await stream.close();
  if (value !== 3) throw new Error(`Three launches left ${value}.`);
}

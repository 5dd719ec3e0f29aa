// A thread that shares a device: it derives arrays from those that another thread's failed kernels wrote, and fails kernels itself.
import { parentPort, workerData } from 'node:worker_threads';
import { f32, i32, input, kernel, openShared, output } from 'millrace';

const LENGTH = 1024;
const pick = kernel('pick', { x: input(f32), at: i32, y: output(f32) }, ({ x, at, y }, { i }) => {
  y[i] = x[at];
});
const plus = kernel('plus', { y: input(f32), z: output(f32) }, ({ y, z }, { i }) => {
  z[i] = y[i] + 1;
});

const device = await openShared(workerData.data.device);
device.errors$.subscribe(() => undefined);
await device.compile(pick, plus);
const stream = device.createStream();
/** Ends the hold of `fails`. */
let held;

/** What each promise settles with, as text. */
const ends = async (promises) => {
  const settled = await Promise.allSettled(Object.values(promises));
  return Object.keys(promises).map((name, n) => {
    const { status, reason } = settled[n];
    return `${name} ${status === 'fulfilled' ? 'fulfilled' : `${reason.name} of ${reason.cause?.name}`}`;
  });
};

const parts = {
  /** Launches a kernel that reads an array of the other thread, while that thread's stream is held. */
  derives({ y }) {
    const mine = device.adopt(y);
    const z = stream.zeros(LENGTH);
    const launched = stream.launch(plus, LENGTH, { y: mine, z });
    const settled = ends({
      launched: launched.done,
      read: z.read(),
      own: mine.read(),
      copied: stream.copy(new Float32Array(LENGTH), z).done,
    });
    parentPort.postMessage({ z: z.share() });
    return settled.then(() => settled).finally(() => void [mine, z].map((array) => array[Symbol.dispose]()));
  },
  /** Fails a kernel behind a hold, and shares its array before the hold ends. */
  fails({ at }) {
    const x = stream.zeros(LENGTH);
    const y = stream.zeros(LENGTH);
    const released = new Promise((resolve) => (held = resolve));
    stream.hold(() => released, { timeoutMs: 20_000 });
    const failed = stream.launch(pick, LENGTH, { x, at, y });
    const settled = ends({ failed: failed.done, read: y.read() });
    parentPort.postMessage({ y: y.share() });
    return settled.finally(() => void [x, y].map((array) => array[Symbol.dispose]()));
  },
  release() {
    held();
  },
};

parentPort.postMessage('ready');
async function take(message) {
  if (message === 'end') {
    parentPort.unref();
    await device.close();
    return;
  }
  const told = await parts[message.part](message);
  if (told !== undefined) parentPort.postMessage(told);
}
parentPort.on('message', (message) => void take(message));

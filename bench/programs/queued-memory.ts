// A process of its own: how many bytes the process grows for each launch that waits behind a held stream. Prints the number.
//
//   node --expose-gc queued-memory.js DEVICE COUNT
import { openDevice } from 'millrace';
import { empty, ONE } from '../suite/kernels.js';

const [spec = 'cpu', count = '1000000'] = process.argv.slice(2);
const device = await openDevice(spec as 'cpu');
await device.compile(empty);
const stream = device.createStream({ ordering: 'explicit' });

async function whileHeld(launches: number): Promise<number> {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  stream.hold(() => released, { timeoutMs: 60_000 });
  for (let n = 0; n < launches; n++) stream.launch(empty, ONE, {});
  globalThis.gc?.();
  const resident = process.memoryUsage.rss();
  release();
  await stream.synchronize();
  return resident;
}

// The launches of the first call compile the functions of a launch.
const few = await whileHeld(10_000);
const many = await whileHeld(Number(count));
console.log((many - few) / (Number(count) - 10_000));
await device.close();

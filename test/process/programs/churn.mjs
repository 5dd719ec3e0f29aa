// Opens, uses and closes the device many times; prints what the process holds after some of them, and at the end.
import { openDevice } from 'millrace';
import { counts, held } from './held.mjs';
import { checkDevice } from './work.mjs';

const [spec, rounds, warmUp] = process.argv.slice(2);

/** Threads of a worker end just after its exit event: the count is the lowest of a few turns. */
async function settled() {
  const { rssMiB, heapMiB, ...first } = held();
  let least = first;
  for (let n = 0; n < 50; n++) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    const { descriptors, threads } = counts();
    least = { descriptors: Math.min(least.descriptors, descriptors), threads: Math.min(least.threads, threads) };
  }
  return { ...least, rssMiB, heapMiB };
}

let before;
for (let round = 0; round < Number(rounds); round++) {
  if (round === Number(warmUp)) before = await settled();
  const device = await openDevice(spec);
  const stream = device.createStream();
  const pinned = device.pinned(65_536);
  const array = stream.empty(65_536);
  stream.copy(array, pinned);
  await checkDevice(device);
  array[Symbol.dispose]();
  pinned[Symbol.dispose]();
  await device.close();
}
console.log(JSON.stringify({ before, after: await settled() }));

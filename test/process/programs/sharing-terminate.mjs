// Threads that share a device are terminated, each at a moment of its own, while others go on: `sharing-terminate.mjs <spec> <victims>`.
// A victim is terminated a number of its messages after it began, so that it is hit wherever it is by then.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { openDevice } from 'millrace';
import { untilGivenBack } from './given-back.mjs';

/** Victims that live at the same time. */
const ABREAST = 4;
/** Messages after which a victim is terminated, at the most. */
const LONGEST_LIFE = 40;

const start = (part, device) =>
  new Worker(new URL('./sharing-terminate-worker.mjs', import.meta.url), { workerData: { part, token: device.share() } });

const [spec, victims] = process.argv.slice(2);
const device = await openDevice(spec);
const survivors = ['survivor', 'survivor'].map((part) => start(part, device));
const results = survivors.map((survivor) => once(survivor, 'message'));
const exits = survivors.map((survivor) => once(survivor, 'exit'));
let left = Number(victims);
const endOne = async (n) => {
  const victim = start('victim', device);
  let failed;
  victim.on('error', (error) => (failed = error));
  const ended = once(victim, 'exit');
  const life = (n * 7) % LONGEST_LIFE;
  let heard = 0;
  await new Promise((resolve) => {
    // Life 0: wherever it is in its start.
    if (life === 0) victim.once('online', resolve);
    else victim.on('message', () => ++heard === life && resolve());
    void ended.then(resolve);
  });
  await victim.terminate();
  await ended;
  if (failed !== undefined) console.log(`a victim failed: ${failed.stack}`);
};
const lane = async () => {
  while (left > 0) await endOne(left--);
};
await Promise.all(Array.from({ length: ABREAST }, lane));
console.log('all terminated');
for (const survivor of survivors) survivor.postMessage('end');
for (const result of results) console.log((await result)[0]);
await Promise.all(exits);
await untilGivenBack(device);
await device.close();

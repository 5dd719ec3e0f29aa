// Owners in workers, terminated at random moments: while they load, open, work and close. Afterwards nothing of them is left:
// no descriptor, no thread, no child process. Prints what there was before and what there is after.
//   terminate-anywhere.mjs <spec> <workers> <seed> [load]     load: workers that only load the addon
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

/** The longest that a worker lives, about what it needs to come to its end. */
const LIFE_MS = { load: 60, open: 700 };
const addon = fileURLToPath(new URL('../../../build/Release/millrace.node', import.meta.url));

const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function live({ spec, mode }) {
  if (mode === 'load') {
    createRequire(import.meta.url)(addon);
    return;
  }
  const { openDevice } = await import('millrace');
  const { checkDevice, startWork } = await import('./work.mjs');
  for (;;) {
    const device = await openDevice(spec);
    await checkDevice(device);
    await startWork(device, 400, spec.startsWith('cuda') ? 500_000 : 50_000);
    if (Math.random() < 0.5) await device.close();
    else await device.destroy();
  }
}

const listed = (folder) => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/** What the process holds. */
function held() {
  const descriptors = listed('/proc/self/fd').filter((descriptor) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${descriptor}`);
      // The one that lists them is among them. A module that a worker reads when it is terminated Node leaves open: those of
      // the owner's own program are not ours to count, those of the device's worker, which alone builds, are.
      const isOfWorker = file.endsWith('/device-worker.js') || file.includes('/dist/toolchain/');
      return !file.endsWith('/fd') && (isOfWorker || !/\.m?js$/.test(file));
    } catch {
      return false;
    }
  });
  const tasks = listed('/proc/self/task');
  const children = tasks.flatMap((task) => {
    try {
      // One that has ended and waits for nobody's look holds nothing but its number.
      const isRunning = (child) => !/\) Z /.test(readFileSync(`/proc/${child}/stat`, 'utf8'));
      return readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' ').filter(Boolean).filter(isRunning);
    } catch {
      return [];
    }
  });
  return { descriptors: descriptors.length, threads: tasks.length, children: children.length };
}

/** Threads and compilers end a moment after their worker. */
async function settled(before) {
  let now = held();
  for (const start = performance.now(); performance.now() - start < 20_000; now = held()) {
    if (now.descriptors <= before.descriptors && now.threads <= before.threads && now.children <= before.children) break;
    await after(50);
  }
  return now;
}

/** Numbers below 1 that a seed decides. */
function dice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

if (isMainThread) {
  const [spec, workers, seed, mode = 'open'] = process.argv.slice(2);
  const random = dice(Number(seed));
  // What a process has once, whoever asks first: the addon, the pool of Node, the kernels in the cache.
  createRequire(import.meta.url)(addon);
  if (mode === 'open') {
    const { openDevice } = await import('millrace');
    const { checkDevice } = await import('./work.mjs');
    const device = await openDevice(spec);
    await checkDevice(device);
    await device.close();
  }
  const terminated = async () => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { spec, mode } });
    worker.on('error', (error) => console.log(String(error)));
    await after(random() * LIFE_MS[mode]);
    await worker.terminate();
  };
  await terminated();
  await after(500);
  const before = held();
  let left = Number(workers);
  const lane = async () => {
    while (left-- > 0) await terminated();
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, lane));
  console.log(JSON.stringify({ before, after: await settled(before) }));
} else {
  await live(workerData);
}

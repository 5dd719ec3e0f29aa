// Terminates workers while they load, open a device, build a kernel, work and close. Afterwards nothing of them is left: no descriptor, no
// thread, no child process, not even a zombie, and no temporary folder. Prints how many workers were terminated in each phase, and what the
// process held before and after, and which descriptors are new.
//   terminate-anywhere.mjs <spec> <workers> <seed> [phases]     phases: some of `phases` below, separated by commas
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

/**
 * How long each phase takes, about, when nothing else runs. A worker is terminated at a random moment from the beginning of its phase until
 * this time later. `addon` is a worker that only loads the addon.
 */
const phases = { addon: 60, loading: 120, opening: 150, building: 300, working: 40, closing: 100 };
const names = Object.keys(phases);
/** A worker that has not reached its phase by then is terminated where it is. */
const LIMIT_MS = 20_000;
const addon = fileURLToPath(new URL('../../../build/Release/millrace.node', import.meta.url));

const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const listed = (folder) => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/** What its descriptors are of. */
function open() {
  return listed('/proc/self/fd').flatMap((descriptor) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${descriptor}`);
      // The descriptor that lists the folder does not count. When a worker is terminated while it reads an ES module, Node leaves the file
      // open. This worker imports ES modules, and the device's worker imports none.
      return file.endsWith('/fd') || /\.m?js$/.test(file) ? [] : [file];
    } catch {
      return [];
    }
  });
}

/** What the process holds. */
function held(temporary) {
  const tasks = listed('/proc/self/task');
  const children = tasks.flatMap((task) => {
    try {
      return readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' ').filter(Boolean);
    } catch {
      return [];
    }
  });
  // Compilers run in the temporary folder of their thread or write to it, also when they are children of no process that lives.
  return { descriptors: open().length, threads: tasks.length, children: children.length, folders: listed(temporary).length };
}

/** Threads and compilers end a moment after their worker. */
async function settled(before, temporary) {
  let now = held(temporary);
  for (const start = performance.now(); performance.now() - start < 20_000; now = held(temporary)) {
    if (Object.entries(now).every(([what, count]) => count <= before[what])) break;
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

/** Waits until the worker is in the phase or past it. */
async function reached(phase, shared) {
  const limit = performance.now() + LIMIT_MS;
  for (let now = Atomics.load(shared, 0); now < names.indexOf(phase); now = Atomics.load(shared, 0)) {
    const changed = Atomics.waitAsync(shared, 0, now, limit - performance.now());
    if (changed.async ? (await changed.value) === 'timed-out' : changed.value === 'timed-out') return;
  }
}

const [spec, workers, seed, chosen = names.join()] = process.argv.slice(2);
const mixture = chosen.split(',');
const [temporary, cache] = ['temporary', 'cache'].map((name) => mkdtempSync(join(tmpdir(), `terminate-anywhere-${name}-`)));
// The workers inherit both. A cache of its own: a kernel that an earlier run built would not be built again.
process.env.TMPDIR = temporary;
process.env.MILLRACE_CACHE_DIR = cache;
const random = dice(Number(seed));
// What a process has once: the addon, Node's thread pool, the kernels in the cache.
createRequire(import.meta.url)(addon);
const { openDevice } = await import('millrace');
const { checkDevice } = await import('./work.mjs');
const device = await openDevice(spec);
await checkDevice(device);
await device.close();

const ended = Object.fromEntries(names.map((name) => [name, 0]));
const terminated = async (nth) => {
  const only = mixture[Math.floor(random() * mixture.length)];
  const delayMs = random() * phases[only];
  const shared = new Int32Array(new SharedArrayBuffer(4)).fill(-1);
  const worker = new Worker(new URL('./terminate-anywhere-worker.mjs', import.meta.url), {
    workerData: { spec, only, nth, shared, names, workingMs: phases.working, addon },
  });
  worker.on('error', (error) => console.log(String(error)));
  // A worker that loads is terminated as early as may be.
  if (only !== 'addon' && only !== 'loading') await reached(only, shared);
  await after(delayMs);
  // A worker that has not said anything yet loads Node's own modules.
  const phase = names[Atomics.load(shared, 0)] ?? (only === 'addon' ? 'addon' : 'loading');
  await worker.terminate();
  ended[phase]++;
};
await terminated(0);
const before = { ...(await settled(held(temporary), temporary)), children: 0, folders: 0 };
const files = new Set(open());
const total = Number(workers);
let nth = 0;
const lane = async () => {
  while (nth < total) await terminated(++nth);
};
await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, lane));
const now = await settled(before, temporary);
console.log(JSON.stringify({ ended, before, after: now, open: open().filter((file) => !files.has(file)) }));
for (const folder of [temporary, cache]) rmSync(folder, { recursive: true, force: true });

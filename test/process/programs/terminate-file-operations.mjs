// Terminates workers while they read and write files and start compilers as the worker of a device does. Afterwards nothing of them is open.
// Prints how many workers were terminated, and what the descriptors are of that are open.
//   terminate-file-operations.mjs <workers> [operations]     operations: some of `operations` below, separated by commas
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const addon = join(root, 'build/Release/millrace.node');
/** Loops of each operation in a worker. Each loop has one call in flight at any time. */
const LOOPS = 4;
/** Workers at once. */
const LANES = 3;
/**
 * A worker is terminated after as many to twice as many finished calls for each operation: all have run, and each loop has a call in flight. The
 * numbers differ from worker to worker, so that each operation is met at some of its steps.
 */
const CALLS = 6;

/** Runs the toolchain's functions that open files, until it is terminated. */
async function live({ folder, nth, only, counted }) {
  const from = (path) => import(new URL(`../../../dist/toolchain/${path}.js`, import.meta.url).href);
  const { endBuildsWith } = await from('system/exit-cleanup');
  const { KernelCache } = await from('images/cache');
  const { identityOf } = await from('base/package-and-cpu-identity');
  const { outputOf } = await from('compilers/compile-with');
  const { runCompiler } = await from('compilers/run-compiler');
  const { findCxx } = await from('compilers/toolchain');
  const { locate } = await from('base/source-locations');
  const { largeFrames } = await from('compilers/stack-usage');
  endBuildsWith(createRequire(import.meta.url)(addon));
  const env = { ...process.env, MILLRACE_CACHE_DIR: join(folder, 'cache') };
  const image = join(folder, 'image.so');
  const content = readFileSync(image);
  // The compiler's version is known, so no process is started.
  const facts = { recall: async () => 'g++ (Some) 1.2.3', remember: async () => undefined };
  const source = join(folder, 'user.mjs');
  const operations = {
    add: async (n) => new KernelCache(env).add(`${nth % LANES}-${n % 8}.so`, content),
    find: async (n) => new KernelCache(env).find(`${nth % LANES}-${n % 8}.so`),
    identity: async () => identityOf([join(folder, 'package')]),
    output: async () => outputOf({ label: 'g++' }, { name: 'k', isModule: false }, image),
    compiler: async () => findCxx(env, facts),
    source: async () => locate('last line', { file: source, lines: [1] }),
    stack: async () => largeFrames(folder, 'kernel'),
    start: async () => runCompiler('/bin/true', []),
  };
  const chosen = Object.keys(operations).filter((name) => only === undefined || only.split(',').includes(name));
  const loop = async (operation) => {
    for (let n = 0; ; n++) {
      await operation(n);
      Atomics.add(counted, 0, 1);
      Atomics.notify(counted, 0);
      // The other loops get a turn.
      await new Promise(setImmediate);
    }
  };
  await Promise.all(chosen.flatMap((name) => Array.from({ length: LOOPS }, () => loop(operations[name]))));
}

/** What its descriptors are of, without the numbers of pipes and sockets. */
function open() {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${descriptor}`).replace(/:\[\d+\]$/, '');
      // The descriptor that lists the folder does not count.
      return file.endsWith('/fd') ? [] : [file];
    } catch {
      return [];
    }
  });
}

async function terminated(folder, nth, only) {
  const counted = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL(import.meta.url), { workerData: { folder, nth, only, counted } });
  const failed = new Promise((_resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('The worker has ended.')));
  });
  const least = CALLS * (only?.split(',').length ?? 8);
  const calls = least + ((nth * 17) % least);
  for (let now = 0; now < calls; now = Atomics.load(counted, 0)) {
    const { async: waits, value } = Atomics.waitAsync(counted, 0, now);
    if (waits) await Promise.race([value, failed]);
  }
  worker.removeAllListeners();
  await worker.terminate();
  failed.catch(() => {});
}

if (isMainThread) {
  const [workers, only] = process.argv.slice(2);
  const folder = mkdtempSync(join(tmpdir(), 'terminate-file-operations-'));
  writeFileSync(join(folder, 'image.so'), Buffer.alloc(200_000, 7));
  writeFileSync(join(folder, 'user.mjs'), 'a line\n'.repeat(5000).concat('last line\n'));
  writeFileSync(join(folder, 'kernel.su'), '');
  for (let n = 0; n < 20; n++) writeFileSync(join(folder, `kernel.${n}.su`), 'kernel.cu:1:2:k\t16\tstatic\n'.repeat(50));
  mkdirSync(join(folder, 'package'));
  for (let n = 0; n < 20; n++) writeFileSync(join(folder, 'package', `${n}.h`), Buffer.alloc(20_000, n));
  createRequire(import.meta.url)(addon);
  // What a process opens once, with its first worker.
  await terminated(folder, 0, only);
  const before = open();
  let nth = 0;
  const lane = async () => {
    while (nth < Number(workers)) await terminated(folder, ++nth, only);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  const after = open();
  for (const file of before) if (after.includes(file)) after.splice(after.indexOf(file), 1);
  console.log(JSON.stringify({ terminated: nth, open: after.map((file) => file.replace(folder, '')) }));
  rmSync(folder, { recursive: true, force: true });
} else {
  await live(workerData);
}

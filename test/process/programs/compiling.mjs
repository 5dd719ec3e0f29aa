// Ends in the given way while a compiler runs that never ends. The compiler writes its pid and that of its child to the file PIDS.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import { i32, openDevice, output, cudaKernel } from 'millrace';

const [how] = process.argv.slice(2);
const { PIDS: pids, TMPDIR: temporary } = process.env;

async function compile() {
  const device = await openDevice('cpu');
  const y = device.empty(4, 'i32');
  const k = cudaKernel('k', { y: output(i32) }, 'extern "C" __global__ void k(int* y) { y[threadIdx.x] = 1; }');
  const launched = device.stream.launch(k, 4, { y });
  // The compiler renames the file into place, so it is complete.
  while (!existsSync(pids)) await new Promise((resolve) => setTimeout(resolve, 5));
  return { device, launched };
}

function isGone(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').startsWith('Z');
  } catch {
    return true;
  }
}
/** The running compilers, the children of this process including zombies, and the files of its temporary folder. */
async function left() {
  const compilers = readFileSync(pids, 'utf8').trim().split('\n');
  // A process that was killed still has to be scheduled once to end. The time is only an upper bound.
  for (const end = Date.now() + 10_000; !compilers.every(isGone) && Date.now() < end; )
    await new Promise((resolve) => setTimeout(resolve, 5));
  const running = compilers.filter((pid) => !isGone(pid));
  const children = readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ')[1] === String(process.pid);
    } catch {
      return false;
    }
  });
  return JSON.stringify({ running, children, folders: readdirSync(temporary) });
}

const ways = {
  exit: () => process.exit(7),
  throw() {
    setImmediate(() => {
      throw new Error('on purpose');
    });
  },
  wait: () => setInterval(() => {}, 1000),
};

if (!isMainThread) {
  await compile();
  parentPort.postMessage('compiling');
} else if (how === 'terminate') {
  const worker = new Worker(fileURLToPath(import.meta.url), { argv: [how] });
  await new Promise((resolve) => worker.once('message', resolve));
  await worker.terminate();
  console.log(await left());
} else {
  const { device, launched } = await compile();
  console.log('compiling');
  if (how === 'destroy') {
    launched.done.catch((error) => console.log(error.code));
    await device.destroy();
    console.log(await left());
  } else ways[how]();
}

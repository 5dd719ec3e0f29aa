// All-reduce of two GPUs beside NCCL in a plain loop (bench/native/nccl_loop.cpp), in one run:
//   node scripts/test-native.mjs --benches && node bench/programs/collectives.mjs [largest bytes, default 1 GiB]
// A row is the best of some queues of calls, and the median of calls that are awaited; GB/s as nccl-tests count them ("busbw").
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { openDevice } from 'millrace';
import { openCommunicator } from 'millrace/collectives';

const most = Number(process.argv[2] ?? 2 ** 30);
const PLAIN = fileURLToPath(new URL('../../build/cmake/bench/native/nccl_loop', import.meta.url));
const WARM = 20;
const TURNS = 5;

const devices = [await openDevice('cuda:0'), await openDevice('cuda:1')];
const group = await openCommunicator(devices);
const { libraries, name } = devices[0].info;
console.log(`2 x ${name}, NCCL ${libraries.find((one) => one.name === 'NCCL').version}`);

async function measure(bytes, rounds) {
  const x = devices.map((device) => device.zeros(bytes / 4));
  const call = () => group.allReduce(x, { into: x });
  for (let n = 0; n < WARM; n++) await call().done;
  let [queued, onHost] = [Infinity, Infinity];
  for (let turn = 0; turn < TURNS; turn++) {
    const start = performance.now();
    let last;
    for (let n = 0; n < rounds; n++) last = call();
    onHost = Math.min(onHost, (1000 * (performance.now() - start)) / rounds);
    await last.done;
    queued = Math.min(queued, (1000 * (performance.now() - start)) / rounds);
  }
  const awaited = [];
  for (let n = 0; n < rounds; n++) {
    const start = performance.now();
    await call().done;
    awaited.push(1000 * (performance.now() - start));
  }
  for (const array of x) array[Symbol.dispose]();
  return { queued, onHost, awaited: awaited.toSorted((a, b) => a - b)[rounds >> 1] };
}

const rows = {};
for (let bytes = 2 ** 10; bytes <= most; bytes *= 4) {
  const rounds = bytes <= 2 ** 22 ? 100 : 20;
  const [plainQueued, plainAwaited] = execFileSync(PLAIN, [String(bytes), String(rounds)], { encoding: 'utf8' })
    .split(' ')
    .map(Number);
  const { queued, onHost, awaited } = await measure(bytes, rounds);
  rows[`${bytes} bytes`] = {
    'plain, queued (us)': plainQueued.toFixed(1),
    'millrace, queued (us)': queued.toFixed(1),
    ratio: (queued / plainQueued).toFixed(2),
    'plain, awaited (us)': plainAwaited.toFixed(1),
    'millrace, awaited (us)': awaited.toFixed(1),
    'ratio, awaited': (awaited / plainAwaited).toFixed(2),
    'a call on the host (us)': onHost.toFixed(1),
    'GB/s': (bytes / queued / 1000).toFixed(1),
  };
}
console.table(rows);
await group.close();
for (const device of devices) await device.close();

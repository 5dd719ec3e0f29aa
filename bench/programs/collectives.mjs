// All-reduce of two GPUs beside NCCL in a plain loop (bench/native/nccl_loop.cpp) and, where there is PyTorch, its process group, in one run:
//   node scripts/test-native.mjs --benches && node bench/programs/collectives.mjs [largest bytes, default 1 GiB]
// A row is the best of some queues of calls, the median of calls that are awaited, and a graph of such a queue; GB/s as nccl-tests count them ("busbw").
import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { openDevice } from 'millrace';
import { openCommunicator } from 'millrace/collectives';

const most = Number(process.argv[2] ?? 2 ** 30);
const PLAIN = fileURLToPath(new URL('../../build/cmake/bench/native/nccl_loop', import.meta.url));
const PYTORCH = fileURLToPath(new URL('../peers/collectives_torch.py', import.meta.url));
// V8 and the drivers are at their speed after some thousand calls.
const [WARM, WARM_LARGE] = [3000, 20];
const TURNS = 5;

const sizes = [];
for (let bytes = 2 ** 10; bytes <= most; bytes *= 4) sizes.push({ bytes, rounds: bytes <= 2 ** 22 ? 100 : 20 });
const torch = spawnSync('python3', [PYTORCH, ...sizes.flatMap(({ bytes, rounds }) => [String(bytes), String(rounds)])], {
  encoding: 'utf8',
});
const ofTorch =
  torch.status === 0
    ? torch.stdout
        .trim()
        .split('\n')
        .map((line) => line.split(' ').map(Number))
    : [];

const devices = [await openDevice('cuda:0'), await openDevice('cuda:1')];
const group = await openCommunicator(devices);
const { libraries, name } = devices[0].info;
console.log(`2 x ${name}, NCCL ${libraries.find((one) => one.name === 'NCCL').version}`);

async function measure(bytes, rounds) {
  const x = devices.map((device) => device.zeros(bytes / 4));
  const call = () => group.allReduce(x, { into: x });
  for (let n = 0; n < (rounds > WARM_LARGE ? WARM : WARM_LARGE); n++)
    if (n % 50 === 0) await call().done;
    else call();
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
  const [stream, other] = devices.map((device) => device.stream);
  const graph = stream.capture(() => {
    other.waitStream(stream);
    for (let n = 0; n < rounds; n++) call();
    stream.waitStream(other);
  });
  await graph.launch().done;
  let replayed = Infinity;
  for (let turn = 0; turn < TURNS; turn++) {
    const start = performance.now();
    await graph.launch().done;
    replayed = Math.min(replayed, (1000 * (performance.now() - start)) / rounds);
  }
  await graph.close();
  for (const array of x) array[Symbol.dispose]();
  return { queued, onHost, awaited: awaited.toSorted((a, b) => a - b)[rounds >> 1], replayed };
}

const us = (value) => value?.toFixed(1) ?? '';
const rows = {};
for (const [at, { bytes, rounds }] of sizes.entries()) {
  const plain = execFileSync(PLAIN, [String(bytes), String(rounds)], { encoding: 'utf8' })
    .split(' ')
    .map(Number);
  const { queued, onHost, awaited, replayed } = await measure(bytes, rounds);
  rows[bytes < 2 ** 20 ? `${bytes / 2 ** 10} KiB` : `${bytes / 2 ** 20} MiB`] = {
    'queued: NCCL': us(plain[0]),
    'queued: PyTorch': us(ofTorch[at]?.[0]),
    'queued: Millrace': us(queued),
    'queued: ratio': (queued / plain[0]).toFixed(2),
    'awaited: NCCL': us(plain[1]),
    'awaited: PyTorch': us(ofTorch[at]?.[1]),
    'awaited: Millrace': us(awaited),
    'in a graph: NCCL': us(plain[2]),
    'in a graph: Millrace': us(replayed),
    'in a graph: ratio': (replayed / plain[2]).toFixed(2),
    'on the host': us(onHost),
    'GB/s': (bytes / queued / 1000).toFixed(1),
  };
}
console.log('microseconds of a call');
console.table(rows);
await group.close();
for (const device of devices) await device.close();

// Submits a number of mixed operations on eight streams of two devices, and compares what they computed with a model. Arrays, streams,
// events and graphs come and go, waits are aborted, kernels fail. Prints what the process holds twenty times, and exits with 1 if a value
// differs. From ten million operations on, it first fills what is kept up to a bound, and also exits with 1 if the process holds more at the end
// than it did then.
//   MILLRACE_CPU_DEVICES=2 node --expose-gc endurance.mjs cpu:0 cpu:1 <operations> <seed>
import { i32, inout, kernel, openDevice, u32 } from 'millrace';
import { held } from './held.mjs';
import { randomBelow } from './random.mjs';

const [first, second, operations, seed] = process.argv.slice(2);
const OPERATIONS = Number(operations);
const STREAMS = 4;
/** Of each stream. */
const CELLS = 4;
const LENGTH = 16;
/** Operations between two points at which the program waits. */
const BURST = 4096;
const LOOKS = 20;
/** Each device keeps 4,096 failures (S614): so many fill both. */
const FULL = 10_000;
const isLong = OPERATIONS >= 1e7;

const mix = kernel('mix', { x: inout(u32), k: u32 }, ({ x, k }, { i }) => {
  x[i] = x[i] * 3 + k;
});
const fail = kernel('fail', { x: inout(u32), at: i32 }, ({ x, at }) => {
  x[at] = 1;
});

const below = randomBelow(seed);
const otherThan = (n) => (n + 1 + below(CELLS - 1)) % CELLS;

/** A stream with arrays, and what each element of them is. */
class Side {
  values = new Uint32Array(CELLS);
  constructor(device) {
    this.device = device;
    this.stream = device.createStream();
    this.cells = Array.from({ length: CELLS }, () => this.stream.zeros(LENGTH, 'u32'));
    this.pinned = device.pinned(LENGTH, 'u32');
  }
  /** An array takes the place of another one, which operations may still use. */
  renew(n) {
    this.cells[n][Symbol.dispose]();
    this.cells[n] = this.stream.full(LENGTH, 7, 'u32');
    this.values[n] = 7;
  }
}

const names = first === second ? [first] : [first, second];
const devices = await Promise.all(names.map((name) => openDevice(name)));
for (const device of devices) await device.compile(mix, fail);
const sides = Array.from({ length: 2 * STREAMS }, (_, n) => new Side(devices[n % devices.length]));
let submitted = 0;
let failures = 0;
let aborted = 0;

async function check() {
  for (const side of sides) {
    for (const [n, cell] of side.cells.entries()) {
      const found = await cell.read();
      if (found.some((value) => value !== side.values[n]))
        throw new Error(`after ${submitted} operations: ${found}, not ${side.values[n]}`);
    }
  }
}

/** Of the kinds that are rare because they take long. */
const RARE = [
  async function failing(side) {
    const n = below(CELLS);
    const done = side.stream.launch(fail, 1, { x: side.cells[n], at: LENGTH + 5 }).done.then(
      () => {
        throw new Error('a kernel that writes outside of its array did not fail');
      },
      () => failures++,
    );
    side.renew(n);
    await done;
    return 2;
  },
  async function abortedWait(side) {
    const stop = new AbortController();
    const gate = side.stream.hold(() => new Promise((resolve) => setImmediate(resolve)), { timeoutMs: 60_000 });
    const waiting = side.stream.synchronize({ signal: stop.signal }).then(
      () => {},
      () => aborted++,
    );
    stop.abort();
    await waiting;
    await gate.done;
    return 1;
  },
  async function newStream(side) {
    const old = side.stream;
    side.stream = side.device.createStream();
    await old.close();
    return 0;
  },
  async function graphs(side) {
    const a = below(CELLS);
    const b = otherThan(a);
    const graph = side.stream.capture((s) => {
      s.launch(mix, LENGTH, { x: side.cells[a], k: 5 });
      s.copy(side.cells[b], side.cells[a]);
    });
    for (let n = 0; n < 10; n++) {
      side.stream.launch(graph);
      side.values[a] = side.values[a] * 3 + 5;
      side.values[b] = side.values[a];
    }
    await graph.close();
    return 10;
  },
  async function host(side) {
    let ran = false;
    await side.stream.host(() => (ran = true)).done;
    if (!ran) throw new Error('a function of the host did not run');
    return 1;
  },
  async function overDevices(side) {
    const other = sides[below(sides.length)];
    const a = below(CELLS);
    const b = otherThan(a);
    await side.stream.copy(side.cells[a], other.cells[b]).done;
    side.values[a] = other.values[b];
    return 1;
  },
];

/** One operation or two. */
function submit(side) {
  const n = below(CELLS);
  const { stream, cells, values } = side;
  switch (below(16)) {
    case 0:
      values[n] = submitted;
      stream.fill(cells[n], submitted >>> 0);
      return 1;
    case 1: {
      const m = otherThan(n);
      stream.copy(cells[n], cells[m]);
      values[n] = values[m];
      return 1;
    }
    case 2: {
      const m = below(CELLS);
      stream.copy(side.pinned, cells[n]);
      stream.copy(cells[m], side.pinned);
      values[m] = values[n];
      return 2;
    }
    case 3: {
      const other = sides[below(sides.length)];
      other.stream.waitEvent(stream.record());
      return 2;
    }
    case 4:
      if (below(16) !== 0) return 0;
      side.renew(n);
      return 2;
    default: {
      const k = below(1000);
      stream.launch(mix, LENGTH, { x: cells[n], k });
      values[n] = Math.imul(values[n], 3) + k;
      return 1;
    }
  }
}

const started = performance.now();
const looks = [];
let full;
while (submitted < OPERATIONS) {
  const isFull = !isLong || failures >= FULL;
  const end = Math.min(submitted + (isFull ? BURST : 16), OPERATIONS);
  while (submitted < end) submitted += submit(sides[below(sides.length)]);
  submitted += await RARE[below(RARE.length)](sides[below(sides.length)]);
  for (const device of devices) await device.synchronize();
  if (below(64) === 0) await check();
  if (isLong && isFull) full ??= held();
  if (submitted < (OPERATIONS * (looks.length + 1)) / LOOKS) continue;
  await check();
  const look = { operations: submitted, seconds: (performance.now() - started) / 1000, failures, aborted, ...held() };
  looks.push(look);
  console.log(
    JSON.stringify(look, (_, value) => (Number.isInteger(value) || typeof value !== 'number' ? value : Number(value.toFixed(1)))),
  );
}
const late = looks.at(-1);
for (const [what, most] of Object.entries({ descriptors: 0, threads: 0, rssMiB: 16, heapMiB: 2 })) {
  if (full === undefined || late[what] <= full[what] + most) continue;
  console.log(`${what} grew from ${full[what]} to ${late[what]}`);
  process.exitCode = 1;
}
for (const side of sides) await side.stream.close();
for (const device of devices) await device.close();

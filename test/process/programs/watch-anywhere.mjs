// Streams that are given a random number of operations and end at a random moment, watched in one way from another random moment on.
// Checks that every operation that finished from then on was told once, in order and with its status, before the end was.
//
//   node watch-anywhere.mjs <device> <rounds> <seed>
import { DeviceLostError, kernel, openDevice, operationsOf, output, u32 } from 'millrace';
import { ONE, spin, TURNS } from './work.mjs';

const [spec, rounds, seed] = process.argv.slice(2);

/** Fails, and what reads `x` from then on until something overwrites it. */
const beyond = kernel('beyond', { x: output(u32) }, ({ x }, { i }) => {
  x[i + 9] = 1;
});

let state = Number(seed) >>> 0;
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const below = (count) => Math.floor(random() * count);
const turn = () => new Promise((resolve) => setImmediate(resolve));

class Mine extends Error {}
let thrown = 0;
process.on('uncaughtException', (error) => {
  if (error instanceof Mine) thrown++;
  else throw error;
});

/** Each calls `told(operation, phase)` and `ended(error)`, and returns what stops it. */
const WAYS = {
  'stream.operations$': (stream, watcher) => subscribe(stream.operations$, watcher),
  'device.operations$': (stream, watcher) => subscribe(stream.device.operations$, watcher),
  'stream.activity$': (stream, watcher) => subscribeActivity(stream.activity$, watcher),
  'device.activity$': (stream, watcher) => subscribeActivity(stream.device.activity$, watcher),
  'for await': (stream, watcher) => read(stream, watcher),
  operationsOf: (stream, watcher) => read(operationsOf(stream, below(2) === 0 ? { every: 999 } : { batches: 999 }), watcher),
};

function subscribe(operations$, { told, ended }) {
  const others = [];
  if (below(8) === 0) {
    others.push(
      operations$.subscribe({
        next: () => {
          throw new Mine();
        },
        error: () => undefined,
      }),
    );
  }
  if (below(8) === 0) {
    const leaving = operations$.subscribe({ next: () => leaving.unsubscribe(), error: () => undefined });
    others.push(leaving);
  }
  others.push(
    operations$.subscribe({ next: (operation) => told(operation, operation.status), error: ended, complete: () => ended(undefined) }),
  );
  return () => {
    for (const each of others) each.unsubscribe();
  };
}

function subscribeActivity(activity$, { told, ended }) {
  const one = activity$.subscribe({
    next: ({ operation, phase, error }) => {
      // Told with the end of the device: the others emit only what ended before.
      if (phase === 'failed' && isLoss(error)) return;
      told(operation, phase);
    },
    error: ended,
    complete: () => ended(undefined),
  });
  return () => one.unsubscribe();
}

function read(operations, { told, ended }) {
  const iterator = operations[Symbol.asyncIterator]();
  void (async () => {
    try {
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
        for (const operation of [next.value].flat()) told(operation, operation.status);
      ended(undefined);
    } catch (error) {
      ended(error);
    }
  })();
  return () => void iterator.return();
}

function isLoss(error) {
  return error instanceof DeviceLostError;
}

function submit(stream, other, x) {
  switch (below(10)) {
    case 8:
      return stream.launch(beyond, 1, { x });
    case 0:
      return stream.launch(spin, ONE, { x, turns: below(2) * below(TURNS >> 3) });
    case 1:
      return stream.copy(x, Uint32Array.of(below(99)));
    case 2:
      return stream.copy(new Uint32Array(1), x);
    case 3:
      return stream.host(() => {
        if (below(4) === 0) throw new Mine();
      });
    case 4:
      return stream.waitStream(other);
    case 5:
      return stream.waitEvent(stream.record());
    case 6:
      return stream.hold(() => (below(2) === 0 ? undefined : turn()), { timeoutMs: 5000 });
    case 7:
      other.fill(x, below(99));
      return stream.waitEvent(other.record());
    default:
      return stream.fill(x, below(99));
  }
}

let device;
async function opened() {
  if (device?.state === 'open') return device;
  device = await openDevice(spec);
  device.errors$.subscribe();
  await device.compile(spin, beyond);
  return device;
}

let total = 0;
async function round(number) {
  const open = await opened();
  const stream = open.createStream({ timing: below(6) === 0 });
  const other = open.createStream();
  const x = other.zeros(1, 'u32');
  const ways = Object.keys(WAYS);
  const way = ways[number % ways.length];
  const count = below(24);
  const watchAt = below(count + 1);
  const issued = [];
  const settled = new Set();
  const told = [];
  let submitted = 0;
  let ending;
  let stop;
  let pending = [];
  let known = -1;
  const watch = () => {
    known = issued.findLastIndex((operation) => settled.has(operation));
    const watcher = {
      told(operation, phase) {
        if (operation.stream !== stream.label) return;
        if (phase === 'submitted') submitted++;
        else {
          if (ending !== undefined) throw new Error('An operation was told after the end.');
          told.push({ operation, phase, error: operation.error });
        }
      },
      ended: (error) => (ending = { error }),
    };
    stop = WAYS[way](stream, watcher);
    pending = issued.filter(({ status }) => status === 'pending');
  };
  for (let n = 0; n < count; n++) {
    if (n === watchAt) watch();
    const operation = submit(stream, other, x);
    issued.push(operation);
    if (below(3) === 0) {
      // A failure is heard at once, also while an earlier host function is pending, and told in the order of the stream.
      operation.done.then(
        () => settled.add(operation),
        () => undefined,
      );
    }
    if (below(4) === 0) await turn();
    if (below(12) === 0) await operation.done.catch(() => undefined);
  }
  if (watchAt === count) watch();
  for (let n = below(3); n > 0; n--) await turn();
  const end = below(8);
  if (end === 0) await open.close();
  else if (end === 1) await open.destroy();
  else await stream.close();
  const isDestroyed = end === 1;
  const isEnded = end < 2 || !way.startsWith('device');
  // Iterators are read in microtasks.
  for (let n = 0; n < 3; n++) await turn();
  stop();

  const check = (isTrue, what) => {
    if (isTrue) return;
    const ids = (all) => all.map(({ id, kind, status }) => `${id} ${kind} ${status}`).join(', ');
    throw new Error(
      `${what}: round ${number}, seed ${seed}, ${way}, end ${end}, watched from ${watchAt}\nissued ${ids(issued)}\n` +
        `told ${ids(told.map(({ operation }) => operation))}\npending then ${ids(pending)}`,
    );
  };
  const byId = new Map(issued.map((operation, at) => [operation.id, at]));
  const places = told.flatMap(({ operation: { id } }) => byId.get(id) ?? []);
  for (let n = 1; n < told.length; n++) check(told[n - 1].operation.id < told[n].operation.id, 'Out of order or told twice');
  // A function that was not called any more is lost with the device, operations behind it may have finished.
  const finished = issued.flatMap((operation, at) => (isLoss(operation.error) ? [] : [at]));
  check(isDestroyed || finished.length === issued.length, 'One is lost');
  const expected = finished.slice(finished.length - places.length);
  check(expected.length === places.length && places.every((at, n) => at === expected[n]), 'Not all are told');
  const first = places[0] ?? issued.length;
  for (const at of finished) check(at >= first || (at < watchAt && !pending.includes(issued[at])), 'One is not told');
  check(first > known, 'One that had finished before is told');
  for (const { operation, phase, error } of told) {
    check(phase === operation.status && phase !== 'pending' && (error !== undefined) === (phase === 'failed'), 'A status is wrong');
    const at = byId.get(operation.id);
    if (at !== undefined) check(issued[at].status === phase, 'The status differs from that of the operation');
  }
  if (way.endsWith('activity$')) check(submitted >= issued.length - watchAt, 'A submission is not told');
  check((ending !== undefined) === isEnded || way === 'for await' || way === 'operationsOf', 'The end is wrong');
  if (isEnded) check(ending !== undefined && isLoss(ending.error) === isDestroyed, 'The end is wrong');
  total += told.length;
  x[Symbol.dispose]();
  if (open.state === 'open') await other.close();
}

for (let n = 0; n < Number(rounds); n++) await round(n);
if (device?.state === 'open') await device.close();
console.log(`${rounds} rounds`);
if (total < Number(rounds) || (Number(rounds) > 99 && thrown === 0)) console.log(`only ${total} told, ${thrown} thrown`);

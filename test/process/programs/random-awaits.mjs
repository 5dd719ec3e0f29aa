// Awaits points of two streams in random order, many at a time, and ends with code 1 when one of them is not settled
// within a limit: its wake was lost. Prints how many were awaited.
//   node random-awaits.mjs <device> <count> [seed]
import { openDevice } from 'millrace';
import { randomBelow } from './random.mjs';

const [spec, count, seed = '1'] = process.argv.slice(2);
const LIMIT_MS = 20_000;
/** Awaits that are pending at once. */
const TOGETHER = 24;
/** Operations of each stream that may still be picked. */
const RECENT = 32;

const below = randomBelow(seed);

const device = await openDevice(spec);
const lanes = ['a', 'b'].map((label) => {
  const stream = device.createStream({ label });
  // Fills of about 1, 10 and 100 us: below, at and above what the loop polls for.
  return { stream, arrays: [1, 2 ** 15, 2 ** 18].map((length) => stream.zeros(length)), operations: [], events: [] };
});

/** What is pending, and since when; a Map keeps the order, so the first is the oldest. */
const pending = new Map();
let awaited = 0;
let complete = 0;
const watchdog = setInterval(() => {
  const [oldest] = pending.values();
  if (oldest === undefined || performance.now() - oldest.sinceMs < LIMIT_MS) return;
  console.log(`lost: ${oldest.what}, isComplete ${oldest.isComplete()}, after ${awaited} awaits`);
  process.exit(1);
}, 1000);

function keep(list, item) {
  list.push(item);
  if (list.length > RECENT) list.shift();
}

function submit(lane) {
  const operation = lane.stream.fill(lane.arrays[[0, 0, 0, 1, 1, 2][below(6)]], below(100));
  keep(lane.operations, operation);
  if (below(4) === 0) keep(lane.events, lane.stream.record());
}

const any = (list) => list[below(list.length)];
const isAbort = (error) => {
  if (error.name !== 'AbortError') throw error;
};

/** One wait of a random kind: what it is for, its promise, and whether it should have been settled by now. */
function wait(lane) {
  const operation = any(lane.operations);
  switch (below(8)) {
    case 0:
      return ['stream.synchronize', lane.stream.synchronize(), () => lane.stream.isComplete];
    case 1:
    case 2: {
      const event = any(lane.events);
      return ['event.done', event.done, () => event.isComplete];
    }
    case 3: {
      // Withdrawn at once, or on a later turn, when it may have settled already.
      const aborter = new AbortController();
      const promise = operation.synchronize({ signal: aborter.signal }).catch(isAbort);
      if (below(2) === 0) aborter.abort();
      else setImmediate(() => aborter.abort());
      return ['an aborted operation.synchronize', promise, () => operation.isComplete];
    }
    case 4:
      if (operation.isComplete && any(lane.operations).isComplete) complete++;
      return ['operation.done', operation.done, () => operation.isComplete];
    default:
      return ['operation.done', operation.done, () => operation.isComplete];
  }
}

for (const lane of lanes) {
  submit(lane);
  keep(lane.events, lane.stream.record());
}
while (awaited < Number(count)) {
  const lane = any(lanes);
  for (let n = below(3); n > 0; n--) submit(any(lanes));
  const [what, promise, isComplete] = wait(lane);
  const id = awaited++;
  const settled = promise.then(() => pending.delete(id));
  pending.set(id, { what: `${what} of stream ${lane.stream.label}`, sinceMs: performance.now(), isComplete, settled });
  while (pending.size >= TOGETHER) await any([...pending.values()]).settled;
  // Sometimes one alone, so that nothing else wakes the loop.
  if (below(64) === 0) await Promise.all([...pending.values()].map((each) => each.settled));
}
await Promise.all([...pending.values()].map((each) => each.settled));
clearInterval(watchdog);
await device.close();
// Of what was looked at before it was awaited, some was complete: the mixture is not of one kind only.
console.log(`settled ${awaited}${complete > 0 ? '' : ', and nothing was complete before it was awaited'}`);

// How many calls of the driver an item costs in a pipeline that is running: counted in the log of the fake driver, which needs neither a GPU
// nor a quiet machine. The bounds are what the library needs now; a change that needs fewer calls lowers them.
import { readFileSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { ordinaryFrame, pinnedFrame, plusOne } from '../support/frame-stages.js';
import { afterAll, describe, expect, test } from 'vitest';
import { type Device, openDevice, overlap } from 'millrace';
import { openCommunicator } from 'millrace/collectives';

const log = path.join(os.tmpdir(), `millrace-calls-${process.pid}.log`);
process.env['MILLRACE_FAKE_CUDA_LOG'] = log;
process.env['MILLRACE_FAKE_CUDA_DEVICES'] = '2';
afterAll(() => rmSync(log, { force: true }));

const LANES = 3;
/** Before the count begins: afterwards every lane has its memory. */
const FIRST_ITEMS = 4 * LANES;
/** After so many queues of collectives, as many calls have been in flight as ever will be. */
const MOST_QUEUES = 10;
const ITEMS = 150;

/** Elements of an item. The stream writes no words beside large copies. */
const SIZES = { '4 KiB': 2 ** 10, '256 KiB': 2 ** 16 } as const;

const CALLS = {
  words: /^cuStream(?:WriteValue|BatchMemOp)/,
  newEvents: /^cuEventCreate/,
  recordedEvents: /^cuEventRecord/,
  waits: /^cuStreamWaitEvent/,
  questions: /^cu(?:Event|Stream)Query/,
  memory: /^cuMem(?:Alloc|Free)/,
  pages: /^cuMemHost/,
  work: /^cu(?:Memcpy|Memset|Launch)/,
} as const;
type Counts = Readonly<Record<keyof typeof CALLS, number>>;

/** An item. The count begins and ends while items are in flight, so it has a few calls more or less. */
const MOST: Omit<Counts, 'words' | 'questions'> = { newEvents: 0.1, recordedEvents: 3.1, waits: 0, memory: 0.1, pages: 0.1, work: 3.1 };

interface Pipeline {
  /** For small and for large items. It depends on which thread is faster, up to 3. With busy cores 1.5, 1.6 and 2.2 were seen for small ones. */
  readonly mostWords: Readonly<Record<keyof typeof SIZES, number>>;
  /** Passes items 0, 1, ... through; gives the result of each when the loop takes it. */
  readonly results: (device: Device, length: number) => AsyncIterable<number>;
}

function* numbers(): Generator<number> {
  for (let n = 0; n < FIRST_ITEMS + ITEMS + LANES; n++) yield n;
}

async function* byHand(device: Device, length: number): AsyncGenerator<number> {
  const lanes = Array.from({ length: LANES }, () => ({
    stream: device.createStream(),
    x: device.empty(length),
    source: device.pinned(length),
    target: device.pinned(length),
    last: undefined as Promise<unknown> | undefined,
  }));
  for (const n of numbers()) {
    const lane = lanes[n % LANES]!;
    await lane.last;
    if (n >= LANES) yield lane.target.data[0]!;
    lane.source.data[0] = n;
    lane.stream.copy(lane.x, lane.source);
    lane.stream.launch(plusOne, length, { x: lane.x });
    lane.last = lane.stream.copy(lane.target, lane.x).done;
  }
  await device.synchronize();
}

const PIPELINES: Readonly<Record<string, Pipeline>> = {
  'a loop by hand': { mostWords: { '4 KiB': 2, '256 KiB': 1.7 }, results: byHand },
  '`overlap` with pinned arrays of the lane': {
    mostWords: { '4 KiB': 2, '256 KiB': 1.3 },
    results: (device, length) => overlap(device, numbers(), pinnedFrame(length)),
  },
  '`overlap` with ordinary arrays': {
    mostWords: { '4 KiB': 2.6, '256 KiB': 1.7 },
    results: async function* (device, length) {
      for await (const result of overlap(device, numbers(), ordinaryFrame(length))) yield result[0]!;
    },
  },
};

function callsOf(bytes: Buffer): Counts {
  const names = Array.from(bytes.toString().matchAll(/thread=\d+ (\w+)/g), ([, name]) => name!);
  return Object.fromEntries(
    Object.entries(CALLS).map(([what, some]) => [what, names.filter((name) => some.test(name)).length / ITEMS]),
  ) as unknown as Counts;
}

describe.each(Object.keys(SIZES) as (keyof typeof SIZES)[])('items of %s', (size) => {
  test.for(Object.entries(PIPELINES))('%s calls the driver no more often than it must', async ([, { mostWords, results }], context) => {
    if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
    await using device = await openDevice('cuda:0');
    await device.compile(plusOne);
    let n = 0;
    let from = 0;
    let counts: Counts | undefined;
    for await (const result of results(device, SIZES[size])) {
      expect(result).toBe(++n);
      if (n === FIRST_ITEMS) from = statSync(log).size;
      if (n === FIRST_ITEMS + ITEMS) counts = callsOf(readFileSync(log).subarray(from));
    }
    const over = Object.entries({ ...MOST, words: mostWords[size] }).filter(([what, most]) => counts![what as keyof Counts] > most);
    expect(over.map(([what, most]) => `${what}: ${counts![what as keyof Counts]} an item, more than ${most}`)).toEqual([]);
    expect(counts!.work).toBeGreaterThan(2.9);
  });
});

test('a batch of copies is one call of the driver', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  await using device = await openDevice('cuda:0');
  const pairs = Array.from({ length: 50 }, () => [device.zeros(64), new Float32Array(64)] as const);
  await device.synchronize();
  const from = statSync(log).size;
  for (let n = 0; n < ITEMS; n++) await device.stream.copyBatch(pairs).done;
  const { work, recordedEvents, newEvents, pages } = callsOf(readFileSync(log).subarray(from));
  expect([work, recordedEvents]).toEqual([1, 1]);
  expect(Math.max(newEvents, pages)).toBeLessThan(0.1);
});

describe('an all-reduce of two GPUs', () => {
  /** Of both devices, for a call in a queue of them. A stream whose rank has nothing else to do does not wait for the first rank's to have nothing. */
  const most = { recordedEvents: 4.1, waits: 2.1, questions: 8, newEvents: 0.4, memory: 0, work: 0 } as const;

  test('calls the driver no more often than it must', async (context) => {
    if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
    const devices = [await openDevice('cuda:0'), await openDevice('cuda:1')];
    const group = await openCommunicator(devices);
    const x = devices.map((device) => device.ones(256));
    const queue = async (): Promise<void> => {
      for (let n = 1; n < ITEMS; n++) group.allReduce(x, { op: 'max', into: x });
      await group.allReduce(x, { op: 'max', into: x }).done;
    };
    const countQueue = async (): Promise<Counts> => {
      const from = statSync(log).size;
      await queue();
      return callsOf(readFileSync(log).subarray(from));
    };
    // Each call in flight has events of its own, which are used again: how many are in flight at most depends on the machine.
    let counts = await countQueue();
    for (let n = 0; n < MOST_QUEUES && counts.newEvents > most.newEvents; n++) counts = await countQueue();
    const over = Object.entries(most).filter(([what, limit]) => counts[what as keyof Counts] > limit);
    expect(over.map(([what, limit]) => `${what}: ${counts[what as keyof Counts]} a call, more than ${limit}`)).toEqual([]);
    // Each rank's part is followed by an event, and so is the call.
    expect(counts.recordedEvents).toBeGreaterThan(2.9);
    await group.close();
    for (const device of devices) await device.close();
  });
});

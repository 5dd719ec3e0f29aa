// Random chains of RxJS operators behind `overlap` on a device. Every typed array that is seen anywhere in a chain must show one
// item's own number in all its elements, when it is seen and 50 ms later. After some chains the device's memory and streams must be
// what they were before. Prints the seed of a chain that fails, and ends with code 1.
//   node ownership.mjs <device> <count> [first seed]
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { download, i32, inout, kernel, launch, openDevice, overlap, overlapMap, upload } from 'millrace';
import * as rx from 'rxjs';
import { COMBINATIONS, isErrorOfChain, OPERATORS } from './rxjs-chains.mjs';

const [spec, count, firstSeed = '1'] = process.argv.slice(2);
/** Chains that run at the same time. */
const TOGETHER = 10;
const LENGTH = 48;
const ADDED = 1000;
const CHAIN_LIMIT_MS = 20_000;
const LATER_MS = 50;

const plusThousand = kernel('plus_thousand', { x: inout(i32) }, ({ x }, { i }) => {
  x[i] = x[i] + 1000;
});

/** The same numbers from the same seed. */
function randomFrom(seed) {
  let state = Math.imul(seed + 1, 0x9e37_79b1) >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const mixed = Math.imul(state ^ (state >>> 15), 0x85eb_ca6b);
    return ((mixed ^ (mixed >>> 13)) >>> 0) % below;
  };
}

/** The typed arrays in a value of a chain: in arrays, pairs, notifications, `{ value }`. */
function* arraysIn(value) {
  if (ArrayBuffer.isView(value)) yield value;
  else if (value !== null && typeof value === 'object') for (const part of Object.values(value)) yield* arraysIn(part);
}
const keyOf = (value) => arraysIn(value).next().value?.[0] ?? 0;

const device = await openDevice(spec);
await device.compile(plusThousand);
const operatorsUsed = new Set();
let arraysSeen = 0;

/** One chain: what it is made of, all decided by its seed, and what it has shown. */
class Chain {
  #seed;
  #random;
  #failure;
  /** Arrays and the number that each showed first. */
  #kept = new Map();
  /** Iterations of `for await` and Node streams, which end after the unsubscription. */
  #iterations = [];
  #names;
  #items;
  #plan;

  constructor(seed) {
    this.#seed = seed;
    const random = (this.#random = randomFrom(seed));
    const names = [];
    for (let n = 1 + random(4); n > 0; n--) {
      const isWide = random(6) === 0 && !names.some((name) => name in COMBINATIONS);
      names.push(Object.keys(isWide ? COMBINATIONS : OPERATORS).at(random(1000) % Object.keys(isWide ? COMBINATIONS : OPERATORS).length));
    }
    this.#names = names;
    this.#items = Array.from({ length: 1 + random(9) }, (_, at) => seed * 32 + at);
    this.#plan = {
      depth: [1, 2, 3, 4, 5, 6, 'auto'][random(7)],
      ordered: random(3) > 0,
      source: ['array', 'generator', 'async generator', 'Node stream', 'web stream', 'Observable', 'overlapMap'][random(7)],
      overflow: ['buffer', 'buffer', 'latest', 'drop'][random(4)],
      stage: ['operators', 'operators', 'several values', 'pinned', 'arrays of the lane', 'download to pinned'][random(6)],
      onError: [undefined, 'skip', { retry: 2, then: 'skip' }, { retry: 9 }][random(4)],
      consumer: ['subscribe', 'subscribe', 'for await', 'Readable.from', 'ReadableStream.from', 'pipeline'][random(6)],
      end: ['wait', 'wait', 'wait', 'unsubscribe after values', 'unsubscribe after a time', 'abort'][random(6)],
      endAfter: random(12),
    };
    if (this.#plan.source === 'overlapMap') this.#plan.consumer = 'subscribe';
    for (const name of names) operatorsUsed.add(name);
  }

  async run() {
    const aborter = new AbortController();
    const { end, endAfter } = this.#plan;
    let seen = this.#watched(this.#consumed(this.#results(aborter.signal)));
    for (const name of this.#names) seen = this.#watched((OPERATORS[name] ?? COMBINATIONS[name])(seen, this.#random, keyOf));
    const limit = new AbortController();
    await Promise.race([
      new Promise((resolve) => {
        let values = 0;
        const subscription = new rx.Subscription();
        const leave = () => {
          subscription.unsubscribe();
          resolve();
        };
        if (end === 'unsubscribe after a time') setTimeout(leave, endAfter);
        if (end === 'abort') setTimeout(() => aborter.abort(), endAfter);
        subscription.add(
          seen.subscribe({
            next: () => void (end === 'unsubscribe after values' && ++values > endAfter / 3 && leave()),
            error: (error) => {
              if (!isErrorOfChain(error) && !(end === 'abort' && error?.name === 'AbortError'))
                this.#fail(`it ended with ${inspect(error)}`);
              resolve();
            },
            complete: resolve,
          }),
        );
      }).then(() => Promise.all(this.#iterations)),
      sleep(CHAIN_LIMIT_MS, undefined, { signal: limit.signal }).then(
        () => this.#fail(`it had not ended after ${CHAIN_LIMIT_MS} ms`),
        () => undefined,
      ),
    ]);
    limit.abort();
  }

  /** Looks at every array again, and says what is wrong, if anything. */
  check() {
    for (const [array, number] of this.#kept) {
      if (array.some((value) => value !== number)) this.#fail(`an array that showed ${number} shows ${inspect(array)} later`);
    }
    return this.#failure;
  }

  toString() {
    return `seed ${this.#seed}: ${inspect({ ...this.#plan, items: this.#items.length, operators: this.#names }, { breakLength: Infinity })}`;
  }

  #fail(why) {
    this.#failure ??= why;
  }

  #watched(source) {
    return source.pipe(
      rx.tap((value) => {
        for (const array of arraysIn(value)) {
          const number = array[0];
          if (array.length !== LENGTH || !this.#items.includes(number - ADDED) || array.some((other) => other !== number)) {
            this.#fail(`an array is ${inspect(array)}`);
          }
          if (!this.#kept.has(array)) arraysSeen++;
          this.#kept.set(array, number);
        }
      }),
    );
  }

  #results(signal) {
    const { depth, ordered, onError, overflow, source } = this.#plan;
    const options = { depth, ordered, signal, ...(onError === undefined ? {} : { onError }) };
    const whenFull = overflow === 'buffer' ? { overflow, maxQueue: Infinity } : { overflow };
    const stage = (item, lane) => this.#stage(item, lane);
    const items = this.#items;
    const pushed = rx
      .from(items)
      .pipe(rx.concatMap((item) => (item % 3 === 0 ? rx.timer(item % 4).pipe(rx.map(() => item)) : rx.of(item))));
    switch (source) {
      case 'overlapMap':
        return pushed.pipe(overlapMap(device, { ...options, ...whenFull }, stage));
      case 'Observable':
        return overlap(device, pushed, { ...options, ...whenFull }, stage);
      case 'array':
        return overlap(device, items, options, stage);
      case 'generator':
        return overlap(device, () => items.values(), options, stage);
      case 'async generator':
        return overlap(device, () => slowly(items), options, stage);
      case 'Node stream':
        return overlap(device, () => Readable.from(slowly(items)), options, stage);
      default:
        return overlap(device, () => ReadableStream.from(slowly(items)), options, stage);
    }
  }

  #stage(item, lane) {
    // By the item, so that the order in which items come to their lanes changes nothing.
    const random = randomFrom(item * 4 + lane.attempt);
    const wait = [undefined, undefined, 0, 1, 2, 4][random(6)];
    const isFaulty = this.#plan.onError !== undefined && random(4) === 0;
    const data = () => new Int32Array(LENGTH).fill(item);
    const chain = (values, opts) =>
      values.pipe(
        upload(lane),
        launch(lane, plusThousand, LENGTH, (x) => ({ x })),
        download(lane, opts),
      );
    const paused = wait === undefined ? rx.of(0) : rx.timer(wait);
    const ending = isFaulty ? rx.throwError(() => new Error('thrown by the stage')) : rx.EMPTY;
    switch (this.#plan.stage) {
      case 'operators':
        return rx.concat(chain(paused.pipe(rx.map(data))), ending);
      case 'several values':
        return rx.concat(chain(rx.range(0, random(4)).pipe(rx.map(data), rx.delay(wait ?? 0))), ending);
      case 'download to pinned':
        return rx.concat(
          chain(paused.pipe(rx.map(data)), { pinned: true }).pipe(rx.map(({ data: pinned }) => Int32Array.from(pinned))),
          ending,
        );
      default:
        return this.#asyncStage(item, lane, wait, isFaulty);
    }
  }

  async #asyncStage(item, lane, wait, isFaulty) {
    const x = lane.empty(LENGTH, i32);
    if (this.#plan.stage === 'pinned') {
      const pinned = lane.pinned(LENGTH, i32);
      if (wait !== undefined) await sleep(wait);
      pinned.data.fill(item);
      lane.stream.copy(x, pinned);
    } else lane.stream.copy(x, lane.from(new Int32Array(LENGTH).fill(item)));
    lane.stream.launch(plusThousand, LENGTH, { x });
    if (isFaulty) throw new Error('thrown by the stage');
    const read = x.read();
    if (wait !== undefined) await sleep(wait);
    return read;
  }

  /** The results as an Observable, through the consumer that the plan names. */
  #consumed(results) {
    const { consumer } = this.#plan;
    if (consumer === 'subscribe') return results;
    return new rx.Observable((sink) => {
      const push = async (values) => {
        for await (const value of values) {
          if (sink.closed) break;
          sink.next(value);
        }
      };
      const write = new Writable({
        objectMode: true,
        highWaterMark: 2,
        write: (value, _, done) => {
          sink.next(value);
          setImmediate(done, sink.closed ? new Error('left') : undefined);
        },
      });
      const ways = {
        'for await': () => push(results),
        'Readable.from': () => push(Readable.from(results)),
        'ReadableStream.from': () => push(ReadableStream.from(results)),
        pipeline: () => pipeline(results, write),
      };
      this.#iterations.push(
        ways[consumer]().then(
          () => sink.complete(),
          // After its unsubscription nobody hears how an iteration ends.
          (error) => sink.closed || sink.error(error),
        ),
      );
    });
  }
}

async function* slowly(items) {
  for (const item of items) {
    if (item % 5 === 0) await sleep(item % 3);
    yield item;
  }
}

async function footprint() {
  await device.synchronize();
  const { usedBytes, pinnedBytes, stagingBytes } = await device.pool.stats();
  return inspect({ usedBytes, pinnedBytes, stagingBytes, streams: device.inspect().streams.length });
}

/** Runs chains side by side; throws an Error that names what failed. */
async function runGroup(chains, before) {
  await Promise.all(chains.map((chain) => chain.run()));
  await sleep(LATER_MS);
  for (const chain of chains) {
    const failure = chain.check();
    if (failure !== undefined) throw new Error(`${chain}: ${failure}`);
  }
  const end = performance.now() + 10_000;
  for (let after = await footprint(); after !== before; after = await footprint()) {
    if (performance.now() > end) throw new Error(`${chains.join('\n')}: before ${before}, after ${after}`);
    await sleep(2);
  }
}

let group = [];
process.on('unhandledRejection', (error) => {
  console.log(`failed: ${group.join('\n')}: nobody handled ${inspect(error)}`);
  process.exit(1);
});
// What a device keeps from its first work is there before the first look.
await Promise.all(Array.from({ length: TOGETHER }, (_, n) => new Chain(n).run()));
await sleep(LATER_MS);
const before = await footprint();
for (let done = 0; done < Number(count); done += group.length) {
  const size = Math.min(TOGETHER, Number(count) - done);
  group = Array.from({ length: size }, (_, n) => new Chain(Number(firstSeed) + done + n));
  try {
    await runGroup(group, before);
  } catch (error) {
    console.log(`failed: ${error.message}`);
    process.exit(1);
  }
}
await device.close();
console.log(`checked ${count} chains, ${operatorsUsed.size} operators, ${arraysSeen} arrays`);

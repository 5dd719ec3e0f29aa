// A communicator of GPUs of one process: NCCL's calls, as launches (nccl-plans.ts).
//
// A call is one launch for all ranks, on the stream of one of them, the first unless two ranks send. The streams of the others wait for it, and it
// waits for what was submitted to them. So all ranks issue in one order, a failed operand leaves none behind, and results are poisoned on every rank.
// On each device, collectives of this thread run in the order of their calls, whatever their communicators and streams are: kernels of NCCL
// that wait for each other in different orders would wait for ever.
// Thread: owner.
import { refuseSurplus } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import type { Device } from '../core/api/device.js';
import type { DeviceEvent } from '../core/api/event.js';
import { onLeave } from '../core/api/open-devices.js';
import type { Stream } from '../core/api/stream.js';
import { clearTimeout, setTimeout } from '../core/base/timers.js';
import type { CommunicatorCalls } from '../core/channel/channel.js';
import type { DType } from '../core/elements/dtype.js';
import type { Kernel } from '../core/kernels/kernel.js';
import type { Operation } from '../core/operations/operation.js';
import { collective, order } from './collective.js';
import { closedError, faultError } from './errors.js';
import { type Facts, fromOf, type Kind, ncclKernel, type Part, toOf, UNREDUCED } from './nccl-plans.js';
import { type Call, Ranks, type Results } from './ranks.js';
import type { Collective, CollectiveOptions, Communicator, Reduction, RootOptions } from './types.js';

/** The latest collective that each device has a part of: its stream, and an event behind it. */
const latest: WeakMap<object, { readonly stream: Stream; readonly event: DeviceEvent }> = new WeakMap();
/** The event of each stream on which collectives are launched. */
const events: WeakMap<Stream, DeviceEvent> = new WeakMap();
/** What is in flight may take so long when a communicator is closed. */
const CLOSING_MS = 10_000;

/** What one call gives and gets, by rank; undefined for a rank that does not. */
interface Parts {
  readonly kind: Kind;
  readonly op?: Reduction;
  readonly root?: number;
  readonly peer?: number;
  /** Elements that one rank gives another. */
  readonly count: number;
  readonly from: readonly (DeviceArray | undefined)[];
  /** The ranks that get something. */
  readonly getting: readonly boolean[];
  /** The library takes results that are the operands. */
  readonly mayBeSame: boolean;
}

export class NcclCommunicator implements Communicator {
  readonly #ranks: Ranks;
  readonly #calls: CommunicatorCalls;
  readonly #number: number;
  readonly #kernels: Map<string, Kernel> = new Map();
  /** Behind the latest launch on each stream. */
  readonly #ends: Set<DeviceEvent> = new Set();
  #closing: Promise<void> | undefined = undefined;
  readonly #leave = (device: Device): void => {
    if (!this.devices.includes(device)) return;
    // What is in flight would wait for its part.
    if (device.core.lostError !== undefined) this.abort();
    void this.close().catch(() => undefined);
  };

  constructor(devices: readonly Device[], calls: CommunicatorCalls, number: number) {
    this.#ranks = new Ranks(devices, UNREDUCED);
    this.#calls = calls;
    this.#number = number;
    onLeave.add(this.#leave);
  }

  get devices(): readonly Device[] {
    return this.#ranks.devices;
  }

  get size(): number {
    return this.#ranks.size;
  }

  allReduce<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & { readonly op?: Reduction } = {},
  ): Collective<D> {
    if (arguments.length > 2) refuseSurplus('allReduce', arguments, 2);
    const call = this.#ranks.check(arrays, opts, ['op'], (own) => own);
    return this.#collect(call, { ...this.#all('allReduce', arrays, call), mayBeSame: true });
  }

  reduce<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & RootOptions & { readonly op?: Reduction } = {},
  ): Collective<D> {
    if (arguments.length > 2) refuseSurplus('reduce', arguments, 2);
    const root = this.#ranks.root(opts.root);
    const call = this.#ranks.check(arrays, opts, ['op', 'root'], (own) => own, root);
    const getting = this.devices.map((_, rank) => rank === root);
    return this.#collect(call, { ...this.#all('reduce', arrays, call), root, getting, mayBeSame: true });
  }

  broadcast<D extends DType>(array: DeviceArray<D>, opts: CollectiveOptions<D> & RootOptions = {}): Collective<D> {
    if (arguments.length > 2) refuseSurplus('broadcast', arguments, 2);
    const root = this.#ranks.root(opts.root);
    this.#ranks.checkArray(array, root);
    const results = this.#ranks.checkOptions(opts, ['root'], array.shape, array.dtype);
    return this.#collect(results, {
      kind: 'broadcast',
      root,
      count: array.length,
      from: this.devices.map((_, rank) => (rank === root ? array : undefined)),
      getting: this.devices.map(() => true),
      mayBeSame: true,
    });
  }

  allGather<D extends DType>(arrays: readonly DeviceArray<D>[], opts: CollectiveOptions<D> = {}): Collective<D> {
    if (arguments.length > 2) refuseSurplus('allGather', arguments, 2);
    const call = this.#ranks.check(arrays, opts, [], (own) => [this.size, ...own]);
    return this.#collect(call, this.#all('allGather', arrays, call));
  }

  reduceScatter<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & { readonly op?: Reduction } = {},
  ): Collective<D> {
    if (arguments.length > 2) refuseSurplus('reduceScatter', arguments, 2);
    const call = this.#ranks.check(arrays, opts, ['op'], (own) => this.#ranks.row(own));
    return this.#collect(call, { ...this.#all('reduceScatter', arrays, call), count: arrays[0]!.length / this.size });
  }

  allToAll<D extends DType>(arrays: readonly DeviceArray<D>[], opts: CollectiveOptions<D> = {}): Collective<D> {
    if (arguments.length > 2) refuseSurplus('allToAll', arguments, 2);
    const call = this.#ranks.check(arrays, opts, [], (own) => [this.size, ...this.#ranks.row(own)]);
    return this.#collect(call, { ...this.#all('allToAll', arrays, call), count: arrays[0]!.length / this.size });
  }

  send<D extends DType>(
    array: DeviceArray<D>,
    into: DeviceArray<NoInfer<D>>,
    opts: Pick<CollectiveOptions, 'streams' | 'label'> = {},
  ): Operation {
    if (arguments.length > 3) refuseSurplus('send', arguments, 3);
    const { from, to, streams, named } = this.#ranks.checkSend(array, into, opts);
    if (from === to) return streams[to]!.copy(into, array, named);
    const results = { dtype: array.dtype, result: array.shape, root: to, streams, into: [into], named };
    const { operations } = this.#collect(results, {
      kind: 'send',
      root: from,
      peer: to,
      count: array.length,
      from: this.devices.map((_, rank) => (rank === from ? array : undefined)),
      getting: this.devices.map((_, rank) => rank === to),
      mayBeSame: false,
    });
    return operations[0]!;
  }

  barrier(opts: Pick<CollectiveOptions, 'streams'> = {}): Collective {
    if (arguments.length > 1) refuseSurplus('barrier', arguments, 1);
    const streams = this.#ranks.checkBarrier(opts);
    this.#checkWorks();
    return collective(
      [],
      order(streams).map((operation) => [operation]),
    );
  }

  abort(): void {
    if (arguments.length > 0) refuseSurplus('abort', arguments, 0);
    this.#calls.abort(this.#number);
  }

  close(): Promise<void> {
    if (arguments.length > 0) refuseSurplus('close', arguments, 0);
    return (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    onLeave.delete(this.#leave);
    // Of a lost device nothing ends any more.
    const ended = Promise.all(Array.from(this.#ends, (event) => event.done.catch(() => undefined)));
    if (this.devices.every(({ core }) => core.lostError === undefined) && !(await endsWithin(ended, CLOSING_MS))) this.abort();
    await this.#calls.close(this.#number);
  }

  /** Every rank gives and gets. */
  #all<D extends DType>(kind: Kind, from: readonly DeviceArray<D>[], { op }: Call<D>): Parts {
    return { kind, op, count: from[0]!.length, from, getting: from.map(() => true), mayBeSame: false };
  }

  #checkWorks(): void {
    if (this.#closing !== undefined) throw closedError();
    const fault = this.#calls.state(this.#number);
    if (fault !== 0) throw faultError(fault);
  }

  #checkCall(streams: readonly Stream[]): void {
    this.#checkWorks();
    for (const { timeline } of streams) {
      if (timeline.recording === undefined) continue;
      throw timeline.recording.refusal(timeline, 'unsupported-node', 'a graph cannot contain a call of NCCL');
    }
  }

  /** Submits the launch to the stream of the one result, or of the first rank. */
  #collect<D extends DType>({ dtype, result, root, streams, into, named }: Results<D>, parts: Parts): Collective<D> {
    this.#checkCall(streams);
    const { kind, op = 'sum', count, getting, mayBeSame } = parts;
    const home = root ?? 0;
    const temporary: DeviceArray[] = [];
    const dense = (rank: number): DeviceArray<D> => {
      const made = streams[rank]!.empty(result, dtype);
      temporary.push(made);
      return made;
    };
    const from = parts.from.map((array, rank) => array && this.#contiguous(array, streams[rank]!, temporary));
    // Where each result goes, and where the library writes it.
    const results = getting.map((gets, rank) =>
      gets ? (into?.[root === undefined ? rank : 0] ?? streams[rank]!.empty(result, dtype)) : undefined,
    );
    const to = results.map((array, rank) => {
      if (array === undefined) return undefined;
      const operand = parts.from[rank];
      const isApart = operand === undefined || !mayShare(array, operand);
      const isSame = mayBeSame && array === from[rank];
      return array.isContiguous && (isApart || isSame) ? array : dense(rank);
    });
    const given = results.filter((array) => array !== undefined);
    if (count === 0)
      return collective(
        given,
        order(streams)
          .slice(0, given.length)
          .map((operation) => [operation]),
      );
    const taking = streams.filter((_, rank) => from[rank] !== undefined || to[rank] !== undefined);
    const others = taking.filter((stream) => stream !== streams[home]);
    const main = streams[home]!;
    for (const stream of others) main.waitStream(stream);
    this.#waitForLatest(main, taking);
    const facts: Facts = {
      kind,
      dtype,
      op,
      root: parts.root ?? 0,
      peer: parts.peer ?? 0,
      parts: from.map((_, rank) => partOf(from[rank], to[rank])),
    };
    const args: Record<string, unknown> = { count };
    facts.parts.forEach((part, rank) => {
      if (from[rank] !== undefined) args[fromOf(rank)] = from[rank];
      if (to[rank] !== undefined && part !== 'same') args[toOf(rank)] = to[rank];
    });
    const launched = main.launch(this.#kernel(facts), { grid: 1, block: 1, ...named }, args as never);
    this.#noteLatest(main, taking);
    const waits = new Map(others.map((stream) => [stream, stream.waitStream(main)]));
    const operations: Operation[][] = [];
    results.forEach((array, rank) => {
      if (array === undefined) return;
      const stream = streams[rank]!;
      const ofRank = [waits.get(stream) ?? launched];
      if (array !== to[rank]) ofRank.push(stream.copy(array, to[rank]!, named));
      operations.push(ofRank);
    });
    for (const array of temporary) array[Symbol.dispose]();
    return collective(given, operations);
  }

  #contiguous(array: DeviceArray, stream: Stream, temporary: DeviceArray[]): DeviceArray {
    if (array.isContiguous) return array;
    const made = stream.empty(array.shape, array.dtype);
    temporary.push(made);
    // Its failure is that of the result, which is told there.
    stream.copy(made, array).done.catch(() => undefined);
    return made;
  }

  #kernel(facts: Facts): Kernel {
    const key = `${facts.kind} ${facts.dtype} ${facts.op} ${facts.root} ${facts.peer} ${facts.parts.join()}`;
    let kernel = this.#kernels.get(key);
    if (kernel === undefined) this.#kernels.set(key, (kernel = ncclKernel(this.#number, facts)));
    return kernel;
  }

  #waitForLatest(main: Stream, taking: readonly Stream[]): void {
    for (const { device } of taking) {
      const last = latest.get(device.core);
      if (last !== undefined && last.stream !== main) main.waitEvent(last.event);
    }
  }

  #noteLatest(main: Stream, taking: readonly Stream[]): void {
    let event = events.get(main);
    if (event === undefined) events.set(main, (event = main.record()));
    else main.record(event);
    this.#ends.add(event);
    for (const { device } of taking) if (latest.get(device.core)?.stream !== main) latest.set(device.core, { stream: main, event });
  }
}

async function endsWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const ended = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return ended;
}

function partOf(from: DeviceArray | undefined, to: DeviceArray | undefined): Part {
  if (from === undefined) return to === undefined ? 'none' : 'to';
  if (to === undefined) return 'from';
  return from === to ? 'same' : 'both';
}

/** Whether they may have bytes in common. */
function mayShare(one: DeviceArray, other: DeviceArray): boolean {
  const [range, others] = [one.byteRange, other.byteRange];
  return one.storage === other.storage && range[0] < others[1] && others[0] < range[1];
}

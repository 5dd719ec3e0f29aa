// Submits calls of NCCL for the ranks of one communicator in this process: each is one launch (nccl-plans.ts).
//
// The launch is on the stream of one rank. The streams of the others wait for it, and it waits for what was submitted to them. So all ranks issue
// in one order, a failed operand leaves none behind, and results are poisoned on every rank. On each device, collectives of this thread run in the
// order of their calls, whatever their communicators and streams are: kernels of NCCL that wait for each other in different orders would wait for
// ever.
// Thread: owner.
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
import { order } from './collective.js';
import { closedError, faultError } from './errors.js';
import { type Facts, fromOf, type Kind, ncclKernel, type Part, toOf } from './nccl-plans.js';
import type { Results } from './ranks.js';
import type { Reduction } from './types.js';

/** The latest collective that each device has a part of: its stream, and an event behind it. */
const latest: WeakMap<object, { readonly stream: Stream; readonly event: DeviceEvent }> = new WeakMap();
/** The event of each stream on which collectives are launched. */
const events: WeakMap<Stream, DeviceEvent> = new WeakMap();
/** What is in flight may take so long when a communicator is closed. */
const CLOSING_MS = 10_000;

/** The results, the operations of each rank that has one, and the launch. */
export interface Submitted<D extends DType> {
  readonly given: readonly DeviceArray<D>[];
  readonly operations: readonly (readonly Operation[])[];
  readonly launched: Operation;
}

/** What one call gives and gets, by rank; undefined for a rank that does not. */
export interface Parts {
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

export class NcclCalls {
  readonly #devices: readonly Device[];
  readonly #calls: CommunicatorCalls;
  readonly #number: number;
  readonly #kernels: Map<string, Kernel> = new Map();
  /** Behind the latest launch on each stream. */
  readonly #ends: Set<DeviceEvent> = new Set();
  #closing: Promise<void> | undefined = undefined;
  readonly #leave = (device: Device): void => {
    if (!this.#devices.includes(device)) return;
    // What is in flight would wait for its part.
    if (device.core.lostError !== undefined) this.abort();
    void this.close().catch(() => undefined);
  };

  /** `devices`: of the ranks in this process, in the order in which they joined. `number`: of the communicator. */
  constructor(devices: readonly Device[], calls: CommunicatorCalls, number: number) {
    this.#devices = devices;
    this.#calls = calls;
    this.#number = number;
    onLeave.add(this.#leave);
  }

  abort(): void {
    this.#calls.abort(this.#number);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    onLeave.delete(this.#leave);
    // Of a lost device nothing ends any more, and who asks for the ends counts as told of the loss.
    const isLost = this.#devices.some(({ core }) => core.lostError !== undefined);
    if (!isLost && !(await endsWithin(Promise.all(Array.from(this.#ends, (event) => event.done.catch(() => undefined))), CLOSING_MS)))
      this.abort();
    await this.#calls.close(this.#number);
  }

  /** Throws CollectiveError if the communicator does not work any more. */
  checkWorks(): void {
    if (this.#closing !== undefined) throw closedError();
    const fault = this.#calls.state(this.#number);
    if (fault !== 0) throw faultError(fault);
  }

  #checkCall(streams: readonly Stream[]): void {
    this.checkWorks();
    for (const { timeline } of streams) {
      if (timeline.recording === undefined) continue;
      throw timeline.recording.refusal(timeline, 'unsupported-node', 'a graph cannot contain a call of NCCL');
    }
  }

  /** Submits the launch to the stream of the one result, or of the first rank of this process. */
  collect<D extends DType>({ dtype, result, root, streams, into, named }: Results<D>, parts: Parts): Submitted<D> {
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
    if (count === 0) {
      const waits = order(streams);
      return { given, operations: waits.slice(0, given.length).map((wait) => [wait]), launched: waits[0]! };
    }
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
    return { given, operations, launched };
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
      if (last === undefined || last.stream === main) continue;
      // Its communicator is aborted, and a wait for a lost device would poison the stream.
      if (last.stream.device.core.isGone) latest.delete(device.core);
      else main.waitEvent(last.event);
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

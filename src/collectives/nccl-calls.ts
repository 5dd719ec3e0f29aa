// Submits calls of NCCL for the ranks of one communicator in this process: each is one launch (nccl-plans.ts).
//
// The launch is on the stream of one rank. The streams of the others wait for it, and it waits for what was submitted to them. So all ranks issue
// in one order, a failed operand leaves none behind, and results are poisoned on every rank. On each device, collectives of this thread run in the
// order of their calls, whatever their communicators and streams are: kernels of NCCL that wait for each other in different orders would wait for
// ever.
// Thread: owner.
import type { DeviceArray } from '../core/api/array.js';
import type { Device } from '../core/api/device.js';
import { onLeave } from '../core/api/open-devices.js';
import type { Stream } from '../core/api/stream.js';
import { clearTimeout, setTimeout } from '../core/base/timers.js';
import { badArgument } from '../core/base/arguments.js';
import type { CollectiveReason } from '../core/base/errors.js';
import type { CommunicatorCalls } from '../core/channel/channel.js';
import type { DeviceCore } from '../core/device/device-core.js';
import type { StreamContext } from '../core/device/stream-context.js';
import type { DType } from '../core/elements/dtype.js';
import { checkShape } from '../core/elements/shape.js';
import { CaptureSession } from '../core/graphs/capture-session.js';
import type { Launched, LaunchParty } from '../core/graphs/captured-node.js';
import type { Kernel } from '../core/kernels/kernel.js';
import type { Operation } from '../core/operations/operation.js';
import type { Point, Timeline } from '../core/timeline/timeline.js';
import { MAX_LAUNCH_ARGS } from '../protocol/protocol.gen.js';
import { order } from './collective.js';
import { closedError, faultError, faultOf } from './errors.js';
import { mayShare } from './group.js';
import { countOf, countsOf, type Facts, fromOf, keyOf, type Kind, ncclKernel, type Part, toOf } from './nccl-plans.js';
import type { Results } from './ranks.js';
import type { Reduction } from './types.js';

/** Behind a collective. `core`: of its stream. */
interface End {
  readonly core: DeviceCore;
  readonly point: Point;
}

/** The latest collective that each device has a part of; and, by capture, the latest among its nodes. */
const latest: WeakMap<DeviceCore, End> = new WeakMap();
const captured: WeakMap<object, WeakMap<DeviceCore, End>> = new WeakMap();
/** The last record of a stream that waits for a collective of another one: while it is the last, that one need not wait for the stream. */
const behind: WeakMap<Stream, { readonly main: Stream; readonly timeline: object; readonly ticket: number }> = new WeakMap();
/** What is in flight may take so long when a communicator is closed. */
const CLOSING_MS = 10_000;
/** Streams may come and go while the communicator is open: with so many ends, those that are reached are dropped. */
const MOST_ENDS = 64;

/** The results of one call, and the operations of each rank that has one; without results, what the call waits for. */
export interface Submitted<D extends DType> {
  readonly given: readonly DeviceArray<D>[];
  readonly operations: readonly (readonly Operation[])[];
  readonly launched: Operation;
}

/** Where the library is called, or a graph is launched that has calls of it. `before`: what its stream does first. */
export interface LibraryCall {
  readonly operation: Launched;
  readonly stream: StreamContext;
  readonly before: number;
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
  /** It is a copy from a rank to itself, for which the library is not called. */
  readonly isOwn?: boolean;
  /** The library takes results that are the operands. */
  readonly mayBeSame: boolean;
}

export interface NcclCall<D extends DType> {
  readonly results: Results<D>;
  readonly parts: Parts;
}

/** The same with its arrays, by rank: what is read, what the caller gets, and what is written. */
interface Prepared<D extends DType> {
  readonly call: NcclCall<D>;
  readonly from: readonly (DeviceArray | undefined)[];
  readonly given: readonly (DeviceArray<D> | undefined)[];
  readonly to: readonly (DeviceArray<D> | undefined)[];
  readonly facts: Facts;
}

export class NcclCalls implements LaunchParty {
  readonly #devices: readonly Device[];
  readonly #calls: CommunicatorCalls;
  readonly #number: number;
  readonly #kernels: Map<string, Kernel> = new Map();
  /** Behind the latest launch on each stream, of those that may not have ended. */
  readonly #ends: Map<Timeline, End> = new Map();
  /** Is told of each launch outside of captures. */
  readonly #launched: (call: LibraryCall) => void;
  #closing: Promise<void> | undefined = undefined;
  readonly #leave = (device: Device): void => {
    if (!this.#devices.includes(device)) return;
    // What is in flight would wait for its part.
    if (device.core.lostError !== undefined) this.abort();
    void this.close().catch(() => undefined);
  };

  /** `devices`: of the ranks in this process, in the order in which they joined. `number`: of the communicator. */
  constructor(
    devices: readonly Device[],
    calls: CommunicatorCalls,
    number: number,
    launched: (call: LibraryCall) => void = () => undefined,
  ) {
    this.#launched = launched;
    this.#devices = devices;
    this.#calls = calls;
    this.#number = number;
    onLeave.add(this.#leave);
  }

  abort(reason: CollectiveReason = 'aborted'): void {
    this.#calls.abort(this.#number, faultOf(reason));
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    onLeave.delete(this.#leave);
    // Of a lost device nothing ends any more, and who asks for the ends counts as told of the loss.
    const isLost = this.#devices.some(({ core }) => core.lostError !== undefined);
    const ends = Array.from(this.#ends.values(), ({ core, point }) =>
      core.waits.until(point.timeline, point.ticket).catch(() => undefined),
    );
    if (!isLost && !(await endsWithin(Promise.all(ends), CLOSING_MS))) this.abort();
    await this.#calls.close(this.#number);
  }

  /** Throws CollectiveError if the communicator does not work any more. */
  checkWorks(): void {
    if (this.#closing !== undefined) throw closedError();
    const fault = this.#calls.state(this.#number);
    if (fault !== 0) throw faultError(fault);
  }

  before(site: StreamContext): void {
    this.checkWorks();
    waitForLatest(
      site,
      this.#devices.map(({ core }) => core),
    );
  }

  after(site: StreamContext, ticket: number, operation: Launched): void {
    this.#note(
      { operation, stream: site, before: ticket - 1 },
      this.#devices.map(({ core }) => core),
    );
  }

  #note(call: LibraryCall, cores: readonly DeviceCore[]): void {
    const { core, timeline } = call.stream;
    const end = { core, point: timeline.here() };
    const ends = latestOf(call.stream);
    for (const each of cores) ends.set(each, end);
    // Not before: the graph of a call that was refused has nothing of the communicator.
    if (timeline.recording instanceof CaptureSession) timeline.recording.addParty(this);
    if (timeline.recording !== undefined) return;
    if (this.#ends.size >= MOST_ENDS && !this.#ends.has(timeline)) this.#forgetReached();
    this.#ends.set(timeline, end);
    this.#launched(call);
  }

  #forgetReached(): void {
    for (const [timeline, { point }] of this.#ends) if (timeline.hasReached(point.ticket)) this.#ends.delete(timeline);
  }

  /** The capture that the calls are part of. */
  #checkCall(calls: readonly NcclCall<DType>[]): CaptureSession | undefined {
    this.checkWorks();
    const streams = calls.flatMap(({ results, parts }) => results.streams.filter((_, rank) => takesPart(parts, rank)));
    const inside = streams.find(({ timeline }) => timeline.recording !== undefined)?.timeline;
    if (inside?.recording === undefined) return undefined;
    const outside = streams.find(({ timeline }) => timeline.recording !== inside.recording);
    if (outside !== undefined) {
      const message = `stream ${outside.label} of another rank is not part of the capture; to join it, let it wait for a captured one first (other.waitStream(stream)), and let that wait for it at the end`;
      throw inside.recording.refusal(inside, 'isolation', message);
    }
    if (!(inside.recording instanceof CaptureSession)) return undefined;
    inside.recording.checkParty(inside);
    return inside.recording;
  }

  /** Submits calls as one launch, to the stream of the one result of the first call, or of the first rank of this process. */
  collect<D extends DType>(calls: readonly NcclCall<D>[]): readonly Submitted<D>[] {
    const busy = calls.filter(({ parts }) => isForLibrary(parts));
    checkLaunch(busy);
    const capture = this.#checkCall(calls);
    const temporary: DeviceArray[] = [];
    const prepared = calls.map((call) => this.#prepare(call, temporary));
    const launch = busy.length === 0 ? undefined : this.#launch(prepared.filter(({ call }) => isForLibrary(call.parts)));
    const submitted = prepared.map(({ call: { results, parts }, from, given, to }) => {
      const { streams, named, root = 0 } = results;
      const present = given.filter((array) => array !== undefined);
      if (parts.isOwn === true) {
        const copied = streams[root]!.copy(present[0]!, from[root] as DeviceArray<D>, named);
        return { given: present, operations: [[copied]], launched: copied };
      }
      if (parts.count === 0) {
        const waits = order(streams);
        return { given: present, operations: present.map((_, rank) => [waits[rank]!]), launched: waits[0]! };
      }
      const operations: Operation[][] = [];
      given.forEach((array, rank) => {
        if (array === undefined) return;
        const stream = streams[rank]!;
        const ofRank = [launch!.ends.get(stream)!];
        if (array !== to[rank]) ofRank.push(stream.copy(array, to[rank]!, named));
        operations.push(ofRank);
      });
      return { given: present, operations, launched: launch!.operation };
    });
    for (const array of temporary) array[Symbol.dispose]();
    // Also without a launch.
    capture?.addParty(this);
    return submitted;
  }

  /** Contiguous arrays of each rank. */
  #prepare<D extends DType>(call: NcclCall<D>, temporary: DeviceArray[]): Prepared<D> {
    const { dtype, result, root, streams, into } = call.results;
    const { kind, op = 'sum', count, getting, mayBeSame } = call.parts;
    const dense = (rank: number): DeviceArray<D> => {
      const made = streams[rank]!.allocate(checkShape(result), dtype);
      temporary.push(made);
      return made;
    };
    const from = call.parts.from.map((array, rank) => array && this.#contiguous(array, streams[rank]!, temporary));
    // Where each result goes, and where the library writes it.
    const given = getting.map((gets, rank) =>
      gets ? (into?.[root === undefined ? rank : 0] ?? streams[rank]!.empty(result, dtype)) : undefined,
    );
    const to = given.map((array, rank) => {
      if (array === undefined) return undefined;
      const operand = call.parts.from[rank];
      const isApart = operand === undefined || !mayShare(array, operand);
      const isSame = mayBeSame && array === from[rank];
      return array.isContiguous && (isApart || isSame) ? array : dense(rank);
    });
    const parts = from.map((_, rank) => partOf(from[rank], to[rank]));
    const facts = { kind, dtype, op, root: call.parts.root ?? 0, peer: call.parts.peer ?? 0, count, parts };
    return { call, from, given, to, facts };
  }

  #launch(prepared: readonly Prepared<DType>[]): { readonly operation: Operation; readonly ends: ReadonlyMap<Stream, Operation> } {
    const [{ call: first }] = prepared as [Prepared<DType>];
    const main = first.results.streams[first.results.root ?? 0]!;
    const taking = new Set(
      prepared.flatMap(({ call: { results }, facts }) => results.streams.filter((_, rank) => facts.parts[rank] !== 'none')),
    );
    const others = [...taking].filter((stream) => stream !== main);
    for (const stream of others) if (!isBehind(stream, main)) main.waitStream(stream);
    const cores = Array.from(taking, ({ core }) => core);
    waitForLatest(main, cores);
    const facts = prepared.map((each) => each.facts);
    const args: Record<string, unknown> = {};
    countsOf(facts).forEach((count, at) => (args[countOf(at)] = count));
    prepared.forEach(({ from, to, facts: { parts } }, call) =>
      parts.forEach((part, rank) => {
        if (from[rank] !== undefined) args[fromOf(call, rank)] = from[rank];
        if (to[rank] !== undefined && part !== 'same') args[toOf(call, rank)] = to[rank];
      }),
    );
    const before = main.timeline.last;
    const operation = main.launch(this.#kernel(facts), { grid: 1, block: 1, ...first.results.named }, args as never);
    this.#note({ operation, stream: main, before }, cores);
    return {
      operation,
      ends: new Map([[main, operation], ...others.map((stream) => [stream, follow(stream, main)] as const)]),
    };
  }

  #contiguous(array: DeviceArray, stream: Stream, temporary: DeviceArray[]): DeviceArray {
    if (array.isContiguous) return array;
    const made = stream.allocate(array.shape, array.dtype);
    temporary.push(made);
    // Its failure is that of the result, which is told there.
    stream.copy(made, array).done.catch(() => undefined);
    return made;
  }

  #kernel(calls: readonly Facts[]): Kernel {
    const key = keyOf(calls);
    let kernel = this.#kernels.get(key);
    if (kernel === undefined) this.#kernels.set(key, (kernel = ncclKernel(this.#number, calls)));
    return kernel;
  }
}

function latestOf({ timeline: { recording } }: StreamContext): WeakMap<DeviceCore, End> {
  if (recording === undefined) return latest;
  let ends = captured.get(recording);
  if (ends === undefined) captured.set(recording, (ends = new WeakMap()));
  return ends;
}

function waitForLatest(site: StreamContext, cores: readonly DeviceCore[]): void {
  const ends = latestOf(site);
  for (const each of cores) {
    const end = ends.get(each);
    if (end === undefined || end.point.timeline === site.timeline) continue;
    // Its communicator is aborted, and a wait for a lost device would poison the stream.
    if (end.core.isGone) ends.delete(each);
    else site.core.tracker.waitFor(site.core, site.timeline, end.point, 'event');
  }
}

/** Whether the stream did nothing since it waited for a collective of `main`. */
function isBehind(stream: Stream, main: Stream): boolean {
  const last = behind.get(stream);
  return last?.main === main && last.timeline === stream.timeline && last.ticket === stream.timeline.last;
}

function follow(stream: Stream, main: Stream): Operation {
  const wait = stream.waitStream(main);
  behind.set(stream, { main, timeline: stream.timeline, ticket: stream.timeline.last });
  return wait;
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

const takesPart = ({ from, getting }: Parts, rank: number): boolean => from[rank] !== undefined || getting[rank] === true;
const isForLibrary = ({ count, isOwn }: Parts): boolean => count > 0 && isOwn !== true;

/** Of a group: ArgumentError for more arrays than a launch takes. */
function checkLaunch(calls: readonly NcclCall<DType>[]): void {
  const arrays = calls.flatMap(({ parts: { from, getting } }) => [...from.filter((one) => one !== undefined), ...getting.filter(Boolean)]);
  const counts = new Set(calls.map(({ parts }) => parts.count)).size;
  // A fault slot and the word of its device.
  const most = MAX_LAUNCH_ARGS - 2 - counts;
  if (calls.length < 2 || arrays.length <= most) return;
  const message = `The calls of the group have ${arrays.length} arrays, and a group of GPUs has at most ${most}: make several groups.`;
  throw badArgument('fn', arrays.length, message, most);
}

function partOf(from: DeviceArray | undefined, to: DeviceArray | undefined): Part {
  if (from === undefined) return to === undefined ? 'none' : 'to';
  if (to === undefined) return 'from';
  return from === to ? 'same' : 'both';
}

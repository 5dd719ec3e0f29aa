// A lane: one of the N slots of a run, with a stream. One item at a time uses it.
//
// Arrays that a stage makes with its lane belong to the item: they are disposed when the item's turn ends. A reference that
// survives the turn throws a StateError when it is used, so no item can see another item's bytes. Their memory serves the next
// item (lane-memory.ts).
//
// Thread: owner.
import { ArgumentError, StateError } from '../core/base/errors.js';
import { isTraced, type StageMessage, stageTrace, tracePromise } from '../core/base/trace.js';
import { Operation } from '../core/operations/operation.js';
import { type DType, type DTypeLike } from '../core/elements/dtype.js';
import { checkDType } from '../core/elements/dtype-names.js';
import { checkShape, type Shape } from '../core/elements/shape.js';
import { DeviceArray } from '../core/api/array.js';
import { ArrayFactory, type ArrayTarget } from '../core/api/array-factory.js';
import type { Device } from '../core/api/device.js';
import { PinnedArray } from '../core/api/pinned.js';
import type { Stream } from '../core/api/stream.js';
import type { KernelPlan } from '../core/kernels/kernel-plan.js';
import type { LaneAbort } from './lane-abort.js';
import type { LaneMemory } from './lane-memory.js';
import type { Meter } from './meter.js';

/**
 * The lane of `overlap`, `createLanes` or `createBatcher` on which an item runs. `empty`, `zeros`, `ones`, `full`, `from` and `pinned` make
 * arrays that belong to the item: they are disposed when its stage ends, and later uses throw a StateError. A stage whose result is such an
 * array, or an object, array, Map or Set that contains one, fails with an ArgumentError: return the result of `read`, or `detach` the
 * array. The methods can be used without the lane: `(n, { full, stream }) => ...`.
 */
export interface Lane extends Pick<ArrayFactory, 'empty' | 'zeros' | 'ones' | 'full' | 'from'> {
  /** From 0 to one less than the number of lanes, over all devices of the run. */
  readonly index: number;
  /** The lane's device. */
  readonly device: Device;
  /** The lane's stream: the work of one item goes here, in order. Two lanes share one if `streams` has fewer than `depth`. */
  readonly stream: Stream;
  /** Aborts when the result of the item is no longer needed: the run ended, the request was aborted, or the stage timed out. */
  readonly signal: AbortSignal;
  /** 1 for the first attempt, 2 for the first retry. */
  readonly attempt: number;
  /** Page-locked memory for this item, f32 unless `dtype` is given; contents unspecified. Throws as `device.pinned` does. */
  pinned(shape: Shape): PinnedArray<'f32'>;
  pinned<D extends DType>(shape: Shape, dtype: DTypeLike<D>): PinnedArray<D>;
  /**
   * Removes an array of this lane from the item, so that the stage can return the array; the receiver disposes it. The library disposes it
   * if no code receives the result, because the run ended, the request was aborted or the attempt failed. Returns the array. Throws
   * ArgumentError for an array that this lane did not make for this item, for a view, and for an array that was disposed or detached.
   */
  detach<A extends DeviceArray | PinnedArray>(array: A): A;
  /** Counts the time until `work` settles as the stage `name` in `report()`, and returns `work`. */
  time<P extends PromiseLike<unknown>>(name: string, work: P): P;
}

/** The stream and device of a lane. */
export interface Slot {
  readonly index: number;
  readonly device: Device;
  readonly stream: Stream;
  readonly memory: LaneMemory;
}

/** The search of a result for the lane's memory stops after this many values, so that large results stay cheap. */
const MOST_MEMBERS = 1000;

/** The direct members of a plain object, an array, a Map or a Set. */
function membersOf(value: unknown): Iterable<unknown> {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value) || value instanceof Set) return value as Iterable<unknown>;
  if (value instanceof Map) return value.values();
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null ? Object.values(value) : [];
}

/** The first value that passes the test: the result itself or one of its members, at any depth. */
function findWithin(result: unknown, test: (value: unknown) => boolean): unknown {
  const seen: Set<unknown> = new Set([result]);
  // Iterating a Set also visits the values that the loop adds.
  for (const value of seen) {
    if (test(value)) return value;
    for (const member of membersOf(value)) {
      if (seen.size >= MOST_MEMBERS) return undefined;
      seen.add(member);
    }
  }
  return undefined;
}

function overlaps(one: ArrayBufferView, other: ArrayBufferView): boolean {
  if (one.buffer !== other.buffer) return false;
  return one.byteOffset < other.byteOffset + other.byteLength && other.byteOffset < one.byteOffset + one.byteLength;
}

/** One attempt of one item on a slot. */
export class LaneTurn extends ArrayFactory implements Lane {
  readonly index: number;
  readonly device: Device;
  readonly stream: Stream;
  readonly attempt: number;
  readonly #abort: Pick<LaneAbort, 'signal'>;
  readonly #meter: Meter;
  readonly #memory: LaneMemory;
  /** The failures of the device that were known before. */
  readonly #failures: number;
  readonly #arrays: Set<DeviceArray | PinnedArray> = new Set();
  /** Those that no result contains yet. */
  readonly #detached: Set<DeviceArray | PinnedArray> = new Set();
  /** Those of results that the stage gave. */
  readonly #given: Set<unknown> = new Set();
  /** The tasks of pools, and what aborts each. */
  readonly #tasks: Map<Promise<unknown>, () => void> = new Map();
  #hasEnded = false;
  /** Settles when the operations that operators have submitted so far have finished. */
  #submitted: Promise<unknown> | undefined = undefined;

  constructor(slot: Slot, abort: Pick<LaneAbort, 'signal'>, attempt: number, meter: Meter) {
    super();
    this.index = slot.index;
    this.device = slot.device;
    this.stream = slot.stream;
    this.#abort = abort;
    this.attempt = attempt;
    this.#meter = meter;
    this.#memory = slot.memory;
    this.#failures = slot.stream.core.failures.count;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** @internal Creates arrays on the stream, and registers them with the turn. */
  protected readonly target: ArrayTarget = {
    allocate: (shape, dtype) => {
      this.#checkTurn();
      return this.#keep(this.#memory.array(this.stream, shape, dtype) ?? this.stream.allocate(shape, dtype));
    },
    fill: (array, value) => this.stream.fill(array, value),
    copy: (array, data, opts) => this.stream.copy(array, data, opts),
  };

  /** @internal Its arrays belong to the item, and to no scope. */
  protected override own<A extends DeviceArray>(array: A): A {
    return array;
  }

  pinned(shape: Shape): PinnedArray<'f32'>;
  pinned<D extends DType>(shape: Shape, dtype: DTypeLike<D>): PinnedArray<D>;
  pinned<D extends DType>(shape: Shape, dtype?: DTypeLike<D>): PinnedArray<D> {
    this.#checkTurn();
    const [dimensions, type] = [checkShape(shape), checkDType(dtype)];
    return this.#keep(this.#memory.pinned(this.device, dimensions, type) ?? this.device.makePinned(dimensions, type));
  }

  detach<A extends DeviceArray | PinnedArray>(array: A): A {
    this.#checkTurn();
    if (!array.isDisposed && this.#arrays.delete(array)) {
      this.#detached.add(array);
      array.watch();
      return array;
    }
    const reason = array.isDisposed
      ? 'was disposed'
      : this.#isOwn(array)
        ? 'is a view of an array of this lane: detach that array'
        : 'was not made by this lane for this item, or was detached before';
    const message = `The array given to lane.detach ${reason}.`;
    throw new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'array', value: array });
  }

  time<P extends PromiseLike<unknown>>(name: string, work: P): P {
    this.#meter.begin(name);
    const end = (): void => this.#meter.end(name);
    if (isTraced(stageTrace)) {
      const message: StageMessage = { device: this.device.core.name, lane: this.index, name };
      tracePromise(stageTrace, message, () => Promise.resolve(work)).catch(() => undefined);
    }
    work.then(end, end);
    return work;
  }

  /**
   * Adds an operation that an operator submitted to the lane's stream. The stage `name` counts as busy from the end of the operations
   * before it, and the item does not end before the operation. A launch whose kernel is still being built has its `plan`: the rest of the
   * build counts as a stage of its own.
   */
  addOperation(name: string, done: Promise<unknown>, plan?: KernelPlan): void {
    const before = this.#submitted ?? Promise.resolve();
    this.#submitted = before.then(async () => {
      // The launch reports a failure of the build. It may finish before the message that tells of the build arrives, and nothing but the
      // launch keeps the process alive.
      if (plan?.isBuilding === true) await this.time(`build ${plan.name}`, Promise.race([plan.built, done])).catch(() => undefined);
      return this.time(name, done);
    });
    // `finished` reports the failure; without this, an item that never reads it would cause an unhandled rejection.
    for (const promise of [done, this.#submitted]) promise.catch(() => undefined);
  }

  /** Adds a task of a pool, which may use the turn's memory until it has settled. */
  addTask(done: Promise<unknown>, abort: () => void): void {
    this.#tasks.set(done, abort);
    const remove = (): void => void this.#tasks.delete(done);
    done.then(remove, remove);
  }

  get hasTasks(): boolean {
    return this.#tasks.size > 0;
  }

  /** Resolves when no task of a pool uses the turn's memory. `hasFailed`: nobody needs their results. */
  async tasksEnded(hasFailed: boolean): Promise<void> {
    if (hasFailed) for (const abort of this.#tasks.values()) abort();
    while (this.#tasks.size > 0) await Promise.allSettled(this.#tasks.keys());
  }

  /** Settles when all operations that operators submitted have finished; rejects with the first failure. Undefined if there are none. */
  get finished(): Promise<unknown> | undefined {
    return this.#submitted;
  }

  /** Throws ArgumentError for an operation, and for a result that is memory of this turn or contains some. */
  checkResult(result: unknown): void {
    if (result instanceof Operation) {
      const message = `The result of the stage is an operation (${result.kind}) that nothing has awaited: await its \`done\`, and return what the stage computed.`;
      throw new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'stage', value: result });
    }
    if (this.#arrays.size === 0) return;
    const part = findWithin(result, (value) => this.#isOwn(value));
    if (part === undefined) return;
    const message = `The result of the stage is memory of lane ${this.index}, which is disposed when the stage ends: return what read() gives, or lane.detach(array).`;
    throw new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'stage', value: part });
  }

  /** Notes a result that goes to a receiver, together with the detached arrays in it. */
  give(result: unknown): void {
    if (this.#detached.size === 0) return;
    findWithin(result, (value) => {
      if (this.#detached.delete(value as DeviceArray)) this.#given.add(value);
      return false;
    });
  }

  /** Disposes the detached arrays in a result that has no receiver. */
  discard(result: unknown): void {
    this.give(result);
    if (this.#given.size === 0) return;
    findWithin(result, (value) => {
      if (this.#given.has(value)) (value as Disposable)[Symbol.dispose]();
      return false;
    });
  }

  /**
   * Disposes the turn's arrays, whose memory the lane's next item may get; after a failure also those that were detached, and that no result
   * contains. The device frees them after the operations that still use them.
   */
  end(hasFailed: boolean = false): void {
    this.#hasEnded = true;
    if (hasFailed) for (const array of [...this.#arrays, ...this.#detached]) array[Symbol.dispose]();
    else this.#memory.keep(this.stream, this.#arrays, this.#failures);
    this.#arrays.clear();
  }

  #checkTurn(): void {
    if (this.#hasEnded) throw new StateError('ERR_MILLRACE_STATE', `Lane ${this.index} was used after the stage had ended for this item.`);
  }

  #keep<A extends DeviceArray | PinnedArray>(array: A): A {
    this.#arrays.add(array);
    return array;
  }

  #isOwn(value: unknown): boolean {
    const own = [...this.#arrays].filter(({ isDisposed }) => !isDisposed);
    if (value instanceof DeviceArray || value instanceof PinnedArray) return own.some(({ storage }) => storage === value.storage);
    return ArrayBuffer.isView(value) && own.some((array) => array instanceof PinnedArray && overlaps(array.data, value));
  }
}

/** The methods of a lane that a stage may take off it. */
const FREE_METHODS = ['empty', 'zeros', 'ones', 'full', 'from', 'pinned', 'detach', 'time'] as const;

// They are bound when they are read, and not for each item.
for (const name of FREE_METHODS) {
  const method = LaneTurn.prototype[name] as (this: LaneTurn, ...args: never[]) => unknown;
  Object.defineProperty(LaneTurn.prototype, name, {
    configurable: true,
    get(this: LaneTurn) {
      return method.bind(this);
    },
  });
}

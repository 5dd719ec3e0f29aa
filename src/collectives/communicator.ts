// A communicator of CPU devices of one process: a reference for tests and laptops, and not for speed.
//
// A collective is copies between the devices and operations of `millrace/ops` on the first one, each a record of a stream. So it is ordered, fails,
// poisons and is recorded as they are. Each stream of the group waits for all others before and after: no rank sees a part of a collective.
// Thread: owner.
import { badArgument, checkInteger, refuseSurplus, show, wrongDevice } from '../core/base/arguments.js';
import { UnsupportedError } from '../core/base/errors.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { DeviceArray } from '../core/api/array.js';
import type { Device } from '../core/api/device.js';
import { checkOpenDevice, type DeviceLike } from '../core/api/open-devices.js';
import { Stream } from '../core/api/stream.js';
import { type DType, is16BitFloat } from '../core/elements/dtype.js';
import type { Operation } from '../core/operations/operation.js';
import { add, divide, maximum, minimum, multiply } from '../ops/arithmetic.js';
import { astype } from '../ops/selection.js';
import type { Collective, CollectiveOptions, Communicator, Reduction, RootOptions } from './types.js';

const REDUCTIONS: readonly Reduction[] = ['sum', 'prod', 'min', 'max', 'mean'];
const FOLDS = { sum: add, prod: multiply, min: minimum, max: maximum, mean: add } as const;
const FLOATS: readonly DType[] = ['f16', 'bf16', 'f32', 'f64'];

/**
 * Joins the open devices, one for each rank, to a communicator: `ncclCommInitAll`. Throws ArgumentError for less than two devices and for one that is
 * there twice, StateError for a closed one, and UnsupportedError for GPUs, whose collectives are NCCL's.
 * @example
 * const group = openCommunicator(['cpu:0', 'cpu:1']);
 * const { arrays } = group.allReduce([x, y]); // of x + y, on both devices
 */
export function openCommunicator(devices: readonly DeviceLike[]): Communicator {
  if (arguments.length > 1) refuseSurplus('openCommunicator', arguments, 1);
  if (!Array.isArray(devices) || devices.length < 2)
    throw badArgument('devices', devices, `The devices (${show(devices)}) are not a list of at least two.`, 2);
  const list = (devices as readonly unknown[]).map((device) => checkOpenDevice('devices', device));
  const twice = list.find((device, at) => list.findIndex(({ core }) => core === device.core) < at);
  if (twice !== undefined)
    throw badArgument('devices', devices, `The device ${twice.info.id} is in the list twice: each rank has its own.`);
  const gpu = list.find(({ info }) => info.backend !== 'cpu');
  if (gpu !== undefined) {
    const message = `Collectives of GPUs are not there yet: ${gpu.info.id} is no CPU device. Copies between devices and kernels that use memory of others work.`;
    throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'collectives', { device: gpu.info.id });
  }
  return new LocalCommunicator(list);
}

class LocalCommunicator implements Communicator {
  readonly devices: readonly Device[];

  constructor(devices: readonly Device[]) {
    this.devices = devices;
  }

  get size(): number {
    return this.devices.length;
  }

  allReduce<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & { readonly op?: Reduction } = {},
  ): Collective<D> {
    const { op, dtype, shape, streams, into } = this.#check(arrays, opts, ['op'], (own) => own);
    const named = labelled(opts.label);
    return this.#collect(
      streams,
      into,
      named,
      dtype,
      this.devices.map(() => shape),
      (parts) => {
        using sum = this.#reduced(0, arrays, op, streams);
        order(streams);
        return parts.map((part, rank) => [streams[rank]!.copy(part, sum, named)]);
      },
    );
  }

  reduce<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & RootOptions & { readonly op?: Reduction } = {},
  ): Collective<D> {
    const root = this.#root(opts.root);
    const { op, dtype, shape, streams, into } = this.#check(arrays, opts, ['op', 'root'], (own) => own, root);
    const named = labelled(opts.label);
    return this.#collect(
      streams,
      into,
      named,
      dtype,
      [shape],
      ([part]) => {
        using sum = this.#reduced(root, arrays, op, streams);
        return [[streams[root]!.copy(part!, sum, named)]];
      },
      root,
    );
  }

  broadcast<D extends DType>(array: DeviceArray<D>, opts: CollectiveOptions<D> & RootOptions = {}): Collective<D> {
    const root = this.#root(opts.root);
    this.#checkArray(array, root);
    const { streams, into } = this.#checkOptions(opts, ['root'], array.shape, array.dtype);
    const named = labelled(opts.label);
    return this.#collect(
      streams,
      into,
      named,
      array.dtype,
      this.devices.map(() => array.shape),
      (parts) => parts.map((part, rank) => [streams[rank]!.copy(part, array, named)]),
    );
  }

  allGather<D extends DType>(arrays: readonly DeviceArray<D>[], opts: CollectiveOptions<D> = {}): Collective<D> {
    const { dtype, shape, streams, into } = this.#check(arrays, opts, [], (own) => [this.size, ...own]);
    const named = labelled(opts.label);
    return this.#collect(
      streams,
      into,
      named,
      dtype,
      this.devices.map(() => [this.size, ...shape]),
      (parts) => parts.map((part, rank) => arrays.map((array, from) => streams[rank]!.copy(part.view(from), array, named))),
    );
  }

  reduceScatter<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & { readonly op?: Reduction } = {},
  ): Collective<D> {
    const { op, dtype, shape, streams, into } = this.#check(arrays, opts, ['op'], (own) => this.#row(own));
    const named = labelled(opts.label);
    return this.#collect(
      streams,
      into,
      named,
      dtype,
      this.devices.map(() => this.#row(shape)),
      (parts) =>
        parts.map((part, rank) => {
          using sum = this.#reduced(
            rank,
            arrays.map((array) => array.view(rank)),
            op,
            streams,
          );
          return [streams[rank]!.copy(part, sum, named)];
        }),
    );
  }

  allToAll<D extends DType>(arrays: readonly DeviceArray<D>[], opts: CollectiveOptions<D> = {}): Collective<D> {
    const { dtype, shape, streams, into } = this.#check(arrays, opts, [], (own) => [this.size, ...this.#row(own)]);
    const named = labelled(opts.label);
    return this.#collect(
      streams,
      into,
      named,
      dtype,
      this.devices.map(() => shape),
      (parts) => parts.map((part, rank) => arrays.map((array, from) => streams[rank]!.copy(part.view(from), array.view(rank), named))),
    );
  }

  send<D extends DType>(
    array: DeviceArray<D>,
    into: DeviceArray<NoInfer<D>>,
    opts: Pick<CollectiveOptions, 'streams' | 'label'> = {},
  ): Operation {
    const [from, to] = [this.#rankOf('array', array), this.#rankOf('into', into)];
    checkOptionNames(opts, ['streams', 'label']);
    if (into.dtype !== array.dtype || !isSame(into.shape, array.shape)) throw misfit('into', into, array.shape, array.dtype);
    const streams = this.#streams(opts.streams);
    const [sender, receiver] = [streams[from]!, streams[to]!];
    if (sender !== receiver) receiver.waitStream(sender);
    const received = receiver.copy(into, array, labelled(opts.label));
    if (sender !== receiver) sender.waitStream(receiver);
    return received;
  }

  barrier(opts: Pick<CollectiveOptions, 'streams'> = {}): Collective {
    checkOptionNames(opts, ['streams']);
    return collective(
      [],
      order(this.#streams(opts.streams)).map((operation) => [operation]),
    );
  }

  /** Orders the streams, has `fill` write new arrays of these shapes, and copies them to `into`, which may be the operands. */
  #collect<D extends DType>(
    streams: readonly Stream[],
    into: readonly DeviceArray<D>[] | undefined,
    named: { readonly label?: string },
    dtype: D,
    shapes: readonly (readonly number[])[],
    fill: (parts: readonly DeviceArray<D>[]) => readonly (readonly Operation[])[],
    root?: number,
  ): Collective<D> {
    const receivers = root === undefined ? streams : [streams[root]!];
    order(streams);
    const parts = shapes.map((shape, at) => receivers[at]!.empty(shape, dtype));
    const filled = fill(parts);
    order(streams);
    if (into === undefined) return collective(parts, filled);
    const operations = into.map((array, at) => [receivers[at]!.copy(array, parts[at]!, named)]);
    for (const part of parts) part[Symbol.dispose]();
    order(streams);
    return collective(into, operations);
  }

  /** The reduction of the arrays, by rank, in a new array of the root's device. */
  #reduced<D extends DType>(root: number, arrays: readonly DeviceArray<D>[], op: Reduction, streams: readonly Stream[]): DeviceArray<D> {
    const stream = streams[root]!;
    const [{ shape, dtype }] = arrays as [DeviceArray<D>];
    const wide: DType = is16BitFloat(dtype) ? 'f32' : dtype;
    // Copies on the root's device, of the type that is added in.
    const nearby = (array: DeviceArray): DeviceArray => {
      const near: DeviceArray = stream.empty(shape, dtype);
      // Its failure is that of the result, which is told there.
      stream.copy(near, array).done.catch(() => undefined);
      if (wide === dtype) return near;
      using narrow = near;
      return astype(narrow, wide, { stream });
    };
    const sum = nearby(arrays[0]!);
    for (const array of arrays.slice(1)) {
      using near = nearby(array);
      FOLDS[op](sum, near, { stream, out: sum });
    }
    if (op === 'mean') divide(sum, arrays.length, { stream, out: sum });
    if (wide === dtype) return sum as DeviceArray<D>;
    using all = sum;
    return astype(all, dtype, { stream });
  }

  #check<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & { readonly op?: Reduction },
    names: readonly string[],
    shapeOf: (shape: readonly number[]) => readonly number[],
    root?: number,
  ): { op: Reduction; dtype: D; shape: readonly number[]; streams: readonly Stream[]; into: readonly DeviceArray<D>[] | undefined } {
    if (!Array.isArray(arrays) || arrays.length !== this.size)
      throw badArgument(
        'arrays',
        arrays,
        `The arrays (${show(arrays)}) are not a list of one for each of the ${this.size} ranks.`,
        this.size,
      );
    arrays.forEach((array, rank) => this.#checkArray(array, rank));
    const [{ shape, dtype }] = arrays as unknown as [DeviceArray<D>];
    for (const array of arrays) if (array.dtype !== dtype || !isSame(array.shape, shape)) throw misfit('arrays', array, shape, dtype);
    const { op = 'sum' } = opts;
    if (!REDUCTIONS.includes(op)) throw badArgument('op', op, `The op (${show(op)}) is none of ${REDUCTIONS.join(', ')}.`);
    if (names.includes('op') && (dtype === 'bool' || (op === 'mean' && !FLOATS.includes(dtype))))
      throw badArgument('op', op, `The op ${op} is not there for arrays of ${dtype}.`);
    return { op, dtype, shape, ...this.#checkOptions(opts, names, shapeOf(shape), dtype, root) };
  }

  #checkOptions<D extends DType>(
    opts: CollectiveOptions<D>,
    names: readonly string[],
    shape: readonly number[],
    dtype: D,
    root?: number,
  ): { streams: readonly Stream[]; into: readonly DeviceArray<D>[] | undefined } {
    checkOptionNames(opts, ['streams', 'into', 'label', ...names]);
    const { into } = opts;
    const count = root === undefined ? this.size : 1;
    if (into !== undefined) {
      if (!Array.isArray(into) || into.length !== count)
        throw badArgument('into', into, `The option into (${show(into)}) is not a list of ${count} arrays.`, count);
      into.forEach((array: DeviceArray<D>, at) => {
        if (this.#rankOf('into', array) !== (root ?? at)) throw this.#stray('into', array, root ?? at);
        if (array.dtype !== dtype || !isSame(array.shape, shape)) throw misfit('into', array, shape, dtype);
      });
    }
    return { streams: this.#streams(opts.streams), into };
  }

  #streams(given: readonly Stream[] | undefined): readonly Stream[] {
    if (given === undefined) return this.devices.map(({ stream }) => stream);
    const isWrong = !Array.isArray(given) || given.length !== this.size || given.some((one) => !((one as unknown) instanceof Stream));
    if (isWrong) throw badArgument('streams', given, `The streams (${show(given)}) are not a list of one for each rank.`, this.size);
    given.forEach((stream, rank) => {
      if (stream.device.core === this.devices[rank]!.core) return;
      throw wrongDevice('streams', stream, `Stream ${stream.label} is not of the device of rank ${rank} (${this.devices[rank]!.info.id}).`);
    });
    return given;
  }

  #checkArray(array: DeviceArray, rank: number): void {
    if (this.#rankOf('arrays', array) !== rank) throw this.#stray('arrays', array, rank);
  }

  #stray(argument: string, array: DeviceArray, rank: number): Error {
    return wrongDevice(argument, array, `The array ${array.label} is not on the device of rank ${rank} (${this.devices[rank]!.info.id}).`);
  }

  #rankOf(argument: string, array: unknown): number {
    if (!(array instanceof DeviceArray))
      throw badArgument(argument, array, `What is given as ${argument} (${show(array)}) is not an array of a device.`);
    const rank = this.devices.findIndex(({ core }) => core === array.device.core);
    if (rank >= 0) return rank;
    throw wrongDevice(argument, array, `The array ${array.label} is on ${array.device.info.id}, which is not in the communicator.`);
  }

  #root(root: number = 0): number {
    return checkInteger('root', root, 0, this.size - 1);
  }

  /** The shape of a row of an array that has one for each rank. */
  #row(shape: readonly number[]): readonly number[] {
    if (shape[0] === this.size) return shape.slice(1);
    throw badArgument(
      'arrays',
      shape,
      `The first dimension of the arrays (${show([...shape])}) has not a row for each of the ${this.size} ranks.`,
      this.size,
    );
  }
}

/** Work of each stream after it waits for what was submitted to all of them before. Returns the last operation of each. */
function order(streams: readonly Stream[]): readonly Operation[] {
  const [first, ...others] = streams as [Stream, ...Stream[]];
  let last: Operation | undefined;
  for (const other of others) last = first.waitStream(other);
  return [last!, ...others.map((other) => other.waitStream(first))];
}

/** `operations`: those of each rank. A wait does not fail, so the copies tell how the collective ended. */
function collective<D extends DType>(arrays: readonly DeviceArray<D>[], operations: readonly (readonly Operation[])[]): Collective<D> {
  return {
    arrays,
    operations: operations.map((ofRank) => ofRank.at(-1)!),
    get done() {
      return Promise.all(operations.flat().map((operation) => operation.done)).then(() => undefined);
    },
  };
}

const labelled = (label: string | undefined): { readonly label?: string } => (label === undefined ? {} : { label });
const isSame = (one: readonly number[], other: readonly number[]): boolean =>
  one.length === other.length && one.every((extent, axis) => extent === other[axis]);

function misfit(argument: string, array: DeviceArray, shape: readonly number[], dtype: DType): Error {
  const message = `The array ${array.label} of ${argument} (${array.dtype} ${show([...array.shape])}) is not ${dtype} ${show([...shape])}.`;
  return badArgument(argument, array, message);
}

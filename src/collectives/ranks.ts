// The ranks of a communicator in this process, and the checks of what its methods get.
// Thread: owner.
import { badArgument, checkInteger, show, wrongDevice } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { DeviceArray } from '../core/api/array.js';
import type { Device } from '../core/api/device.js';
import { Stream } from '../core/api/stream.js';
import type { DType } from '../core/elements/dtype.js';
import type { CollectiveOptions, Reduction } from './types.js';

const REDUCTIONS: readonly Reduction[] = ['sum', 'prod', 'min', 'max', 'mean'];
const FLOATS: readonly DType[] = ['f16', 'bf16', 'f32', 'f64'];

/** The results of a collective, as its options say. */
export interface Results<D extends DType> {
  readonly dtype: D;
  /** The shape of each. */
  readonly result: readonly number[];
  /** The one rank that has a result; undefined if all have. */
  readonly root: number | undefined;
  /** By rank. */
  readonly streams: readonly Stream[];
  readonly into: readonly DeviceArray<D>[] | undefined;
  readonly named: { readonly label?: string };
}

/** The same with its operands. */
export interface Call<D extends DType> extends Results<D> {
  readonly op: Reduction;
  /** The shape of each operand. */
  readonly shape: readonly number[];
}

export class Ranks {
  readonly devices: readonly Device[];
  /** Types that are not reduced. */
  readonly #unreduced: readonly DType[];

  constructor(devices: readonly Device[], unreduced: readonly DType[]) {
    this.devices = devices;
    this.#unreduced = unreduced;
  }

  get size(): number {
    return this.devices.length;
  }

  /**
   * Of arrays of every rank. `names`: further options; `shapeOf`: the shape of the results; `root`: the one rank that has a result.
   */
  check<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & { readonly op?: Reduction },
    names: readonly string[],
    shapeOf: (shape: readonly number[]) => readonly number[],
    root?: number,
  ): Call<D> {
    if (!Array.isArray(arrays) || arrays.length !== this.size)
      throw badArgument(
        'arrays',
        arrays,
        `The arrays (${show(arrays)}) are not a list of one for each of the ${this.size} ranks.`,
        this.size,
      );
    arrays.forEach((array, rank) => this.checkArray(array, rank));
    const [{ shape, dtype }] = arrays as unknown as [DeviceArray<D>];
    for (const array of arrays) if (array.dtype !== dtype || !isSame(array.shape, shape)) throw misfit('arrays', array, shape, dtype);
    const { op = 'sum' } = opts;
    if (!REDUCTIONS.includes(op)) throw badArgument('op', op, `The op (${show(op)}) is none of ${REDUCTIONS.join(', ')}.`);
    if (names.includes('op') && (this.#unreduced.includes(dtype) || (op === 'mean' && !FLOATS.includes(dtype))))
      throw badArgument('op', op, `The op ${op} is not there for arrays of ${dtype}.`);
    return { op, shape, ...this.checkOptions(opts, names, shapeOf(shape), dtype, root) };
  }

  /** Of the options alone; `shape`: that of a result. */
  checkOptions<D extends DType>(
    opts: CollectiveOptions<D>,
    names: readonly string[],
    shape: readonly number[],
    dtype: D,
    root?: number,
  ): Results<D> {
    checkOptionNames(opts, ['streams', 'into', 'label', ...names]);
    const { into } = opts;
    const count = root === undefined ? this.size : 1;
    if (into !== undefined) {
      if (!Array.isArray(into) || into.length !== count)
        throw badArgument('into', into, `The option into (${show(into)}) is not a list of ${count} arrays.`, count);
      into.forEach((array: DeviceArray<D>, at) => {
        if (this.rankOf('into', array) !== (root ?? at)) throw this.#stray('into', array, root ?? at);
        if (array.dtype !== dtype || !isSame(array.shape, shape)) throw misfit('into', array, shape, dtype);
      });
    }
    const { label } = opts;
    return { dtype, result: shape, root, streams: this.streams(opts.streams), into, named: label === undefined ? {} : { label } };
  }

  streams(given: readonly Stream[] | undefined): readonly Stream[] {
    if (given === undefined) return this.devices.map(({ stream }) => stream);
    const isWrong = !Array.isArray(given) || given.length !== this.size || given.some((one) => !((one as unknown) instanceof Stream));
    if (isWrong) throw badArgument('streams', given, `The streams (${show(given)}) are not a list of one for each rank.`, this.size);
    given.forEach((stream, rank) => {
      if (stream.device.core === this.devices[rank]!.core) return;
      throw wrongDevice('streams', stream, `Stream ${stream.label} is not of the device of rank ${rank} (${this.devices[rank]!.info.id}).`);
    });
    return given;
  }

  checkArray(array: DeviceArray, rank: number): void {
    if (this.rankOf('arrays', array) !== rank) throw this.#stray('arrays', array, rank);
  }

  #stray(argument: string, array: DeviceArray, rank: number): Error {
    return wrongDevice(argument, array, `The array ${array.label} is not on the device of rank ${rank} (${this.devices[rank]!.info.id}).`);
  }

  rankOf(argument: string, array: unknown): number {
    if (!(array instanceof DeviceArray))
      throw badArgument(argument, array, `What is given as ${argument} (${show(array)}) is not an array of a device.`);
    const rank = this.devices.findIndex(({ core }) => core === array.device.core);
    if (rank >= 0) return rank;
    throw wrongDevice(argument, array, `The array ${array.label} is on ${array.device.info.id}, which is not in the communicator.`);
  }

  root(root: number = 0): number {
    return checkInteger('root', root, 0, this.size - 1);
  }

  /** The shape of a row of an array that has one for each rank. */
  row(shape: readonly number[]): readonly number[] {
    if (shape[0] === this.size) return shape.slice(1);
    throw badArgument(
      'arrays',
      shape,
      `The first dimension of the arrays (${show([...shape])}) has not a row for each of the ${this.size} ranks.`,
      this.size,
    );
  }

  /** Of a copy from one rank to another. */
  checkSend<D extends DType>(array: DeviceArray<D>, into: DeviceArray<D>, opts: Pick<CollectiveOptions, 'streams' | 'label'>): Sent {
    const [from, to] = [this.rankOf('array', array), this.rankOf('into', into)];
    checkOptionNames(opts, ['streams', 'label']);
    if (into.dtype !== array.dtype || !isSame(into.shape, array.shape)) throw misfit('into', into, array.shape, array.dtype);
    const { label } = opts;
    return { from, to, streams: this.streams(opts.streams), named: label === undefined ? {} : { label } };
  }

  /** Of a barrier. */
  checkBarrier(opts: Pick<CollectiveOptions, 'streams'>): readonly Stream[] {
    checkOptionNames(opts, ['streams']);
    return this.streams(opts.streams);
  }
}

export interface Sent {
  readonly from: number;
  readonly to: number;
  readonly streams: readonly Stream[];
  readonly named: { readonly label?: string };
}

const isSame = (one: readonly number[], other: readonly number[]): boolean =>
  one.length === other.length && one.every((extent, axis) => extent === other[axis]);

function misfit(argument: string, array: DeviceArray, shape: readonly number[], dtype: DType): Error {
  const message = `The array ${array.label} of ${argument} (${array.dtype} ${show([...array.shape])}) is not ${dtype} ${show([...shape])}.`;
  return badArgument(argument, array, message);
}

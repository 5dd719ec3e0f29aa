// The checks of a rank's calls, and what is the same for CPU devices and GPUs.
// Thread: owner.
import { badArgument, checkInteger, refuseSurplus, show, wrongDevice } from '../../core/base/arguments.js';
import { checkOptionNames } from '../../core/base/option-names.js';
import { DeviceArray } from '../../core/api/array.js';
import type { Device } from '../../core/api/device.js';
import { Stream } from '../../core/api/stream.js';
import type { DType } from '../../core/elements/dtype.js';
import type { Operation } from '../../core/operations/operation.js';
import { isGrouping, keep, runGroup } from '../group.js';
import type { Kind } from '../nccl-plans.js';
import type { Reduction } from '../types.js';
import type { Member } from './member.js';
import type { JoinedCollective, JoinedCommunicator, JoinedOptions } from './types.js';

const REDUCTIONS: readonly Reduction[] = ['sum', 'prod', 'min', 'max', 'mean'];
const FLOATS: readonly DType[] = ['f16', 'bf16', 'f32', 'f64'];

/** One call, checked. */
export interface Joint {
  readonly kind: Kind | 'barrier';
  readonly dtype: DType;
  readonly op: Reduction;
  readonly root: number;
  /** Of a send, the receiver. */
  readonly peer: number;
  /** What this rank gives. */
  readonly from: DeviceArray | undefined;
  /** The shape of what one rank gives one other. */
  readonly block: readonly number[];
  /** The shape of this rank's result; undefined if it has none. */
  readonly result: readonly number[] | undefined;
  readonly into: DeviceArray | undefined;
  readonly stream: Stream;
  readonly named: { readonly label?: string };
}

interface Asked {
  readonly stream?: Stream;
  readonly into?: DeviceArray;
  readonly label?: string;
  readonly op?: Reduction;
  readonly root?: number;
}

/** The operations, of which the last one writes the result. */
export interface Ended {
  readonly array: DeviceArray | undefined;
  readonly operations: readonly Operation[];
}

function ended(array: DeviceArray | undefined, operations: () => readonly Operation[]): JoinedCollective<DeviceArray | undefined> {
  return {
    array,
    get operation() {
      return operations().at(-1)!;
    },
    get done() {
      return Promise.all(operations().map((operation) => operation.done)).then(() => undefined);
    },
  };
}

export abstract class Joined implements JoinedCommunicator {
  readonly device: Device;
  protected readonly member: Member;
  readonly #unreduced: readonly DType[];

  constructor(device: Device, member: Member, unreduced: readonly DType[]) {
    this.device = device;
    this.member = member;
    this.#unreduced = unreduced;
  }

  get rank(): number {
    return this.member.rank;
  }

  get size(): number {
    return this.member.size;
  }

  allReduce<D extends DType>(
    array: DeviceArray<D>,
    opts: JoinedOptions<D> & { readonly op?: Reduction } = {},
  ): JoinedCollective<DeviceArray<D>> {
    if (arguments.length > 2) refuseSurplus('allReduce', arguments, 2);
    return this.#submit('allReduce', array, opts, ['op'], array.shape, array.shape) as never;
  }

  reduce<D extends DType>(
    array: DeviceArray<D>,
    opts: JoinedOptions<D> & { readonly op?: Reduction; readonly root?: number } = {},
  ): JoinedCollective<DeviceArray<D> | undefined> {
    if (arguments.length > 2) refuseSurplus('reduce', arguments, 2);
    const isRoot = this.#rankIn('root', opts.root ?? 0) === this.rank;
    return this.#submit('reduce', array, opts, ['op', 'root'], array.shape, isRoot ? array.shape : undefined) as never;
  }

  broadcast<D extends DType>(
    array: DeviceArray<D>,
    opts: JoinedOptions<D> & { readonly root?: number } = {},
  ): JoinedCollective<DeviceArray<D>> {
    if (arguments.length > 2) refuseSurplus('broadcast', arguments, 2);
    const isRoot = this.#rankIn('root', opts.root ?? 0) === this.rank;
    return this.#submit('broadcast', array, opts, ['root'], array.shape, array.shape, isRoot) as never;
  }

  allGather<D extends DType>(array: DeviceArray<D>, opts: JoinedOptions<D> = {}): JoinedCollective<DeviceArray<D>> {
    if (arguments.length > 2) refuseSurplus('allGather', arguments, 2);
    return this.#submit('allGather', array, opts, [], array.shape, [this.size, ...array.shape]) as never;
  }

  reduceScatter<D extends DType>(
    array: DeviceArray<D>,
    opts: JoinedOptions<D> & { readonly op?: Reduction } = {},
  ): JoinedCollective<DeviceArray<D>> {
    if (arguments.length > 2) refuseSurplus('reduceScatter', arguments, 2);
    const row = this.#row(array);
    return this.#submit('reduceScatter', array, opts, ['op'], row, row) as never;
  }

  allToAll<D extends DType>(array: DeviceArray<D>, opts: JoinedOptions<D> = {}): JoinedCollective<DeviceArray<D>> {
    if (arguments.length > 2) refuseSurplus('allToAll', arguments, 2);
    return this.#submit('allToAll', array, opts, [], this.#row(array), array.shape) as never;
  }

  send(array: DeviceArray, opts: Omit<JoinedOptions, 'into'> & { readonly to: number }): JoinedCollective<undefined> {
    if (arguments.length > 2) refuseSurplus('send', arguments, 2);
    const { to, ...rest } = opts;
    return this.#between(array, this.rank, this.#other('to', to), rest) as never;
  }

  receive<D extends DType>(
    array: DeviceArray<D>,
    opts: Omit<JoinedOptions<D>, 'into'> & { readonly from: number },
  ): JoinedCollective<DeviceArray<D>> {
    if (arguments.length > 2) refuseSurplus('receive', arguments, 2);
    const { from, ...rest } = opts;
    return this.#between(array, this.#other('from', from), this.rank, rest) as never;
  }

  barrier(opts: Omit<JoinedOptions, 'into'> = {}): JoinedCollective<undefined> {
    if (arguments.length > 1) refuseSurplus('barrier', arguments, 1);
    checkOptionNames(opts, ['stream', 'label']);
    const common = { dtype: 'u8', op: 'sum', root: 0, peer: 0, from: undefined, block: [0], result: undefined, into: undefined } as const;
    const joint = { kind: 'barrier', ...common, ...this.#place(opts) } as const;
    isGrouping(this, 'barrier');
    return this.#end(joint) as never;
  }

  group<R>(fn: () => R): R {
    if (arguments.length > 1) refuseSurplus('group', arguments, 1);
    if (this.member.error !== undefined) throw this.member.error;
    return runGroup(this, fn, (joints: readonly Joint[]) => {
      if (this.member.error !== undefined) throw this.member.error;
      return this.submit(joints).map(({ operations }) => operations);
    });
  }

  abstract abort(): void;
  abstract close(): Promise<void>;
  abstract shrink(): Promise<JoinedCommunicator>;

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Submits calls together. */
  protected abstract submit(joints: readonly Joint[]): readonly Ended[];

  #submit(
    kind: Kind,
    array: DeviceArray,
    opts: Asked,
    names: readonly string[],
    block: readonly number[],
    result: readonly number[] | undefined,
    gives = true,
  ): unknown {
    this.#checkArray('array', array);
    checkOptionNames(opts, ['stream', 'into', 'label', ...names]);
    const { op = 'sum', into, root = 0 } = opts;
    const { dtype } = array;
    if (!REDUCTIONS.includes(op)) throw badArgument('op', op, `The op (${show(op)}) is none of ${REDUCTIONS.join(', ')}.`);
    if (names.includes('op') && (this.#unreduced.includes(dtype) || (op === 'mean' && !FLOATS.includes(dtype))))
      throw badArgument('op', op, `The op ${op} is not there for arrays of ${dtype}.`);
    if (into !== undefined) {
      this.#checkArray('into', into);
      if (result === undefined) throw badArgument('into', into, `Rank ${this.rank} is not the root, and has no result.`);
      if (into.dtype !== dtype || into.shape.join() !== result.join())
        throw badArgument('into', into, `The array ${into.label} of into is not ${dtype} ${show([...result])}.`);
    }
    const joint = { kind, dtype, op, root, peer: 0, from: gives ? array : undefined, block, result, into, ...this.#place(opts) };
    return this.#end(joint);
  }

  #between(array: DeviceArray, from: number, to: number, opts: Omit<JoinedOptions, 'into'>): unknown {
    this.#checkArray('array', array);
    checkOptionNames(opts, ['stream', 'label']);
    const gives = from === this.rank;
    const facts = { kind: 'send', dtype: array.dtype, op: 'sum', root: from, peer: to, block: array.shape } as const;
    const own = { from: gives ? array : undefined, result: gives ? undefined : array.shape, into: gives ? undefined : array };
    return this.#end({ ...facts, ...own, ...this.#place(opts) });
  }

  #end(joint: Joint): JoinedCollective<DeviceArray | undefined> {
    if (!isGrouping(this)) {
      const [{ array, operations }] = this.submit([joint]) as [Ended];
      return ended(joint.into ?? array, () => operations);
    }
    const { kind, result, dtype, stream, from } = joint;
    const into = joint.into ?? (result && stream.empty(result, dtype));
    const list = into === undefined ? [] : [into];
    const uses = { name: kind, reads: from === undefined ? [] : [from], writes: list, streams: [stream] };
    const later = keep<Joint, readonly Operation[]>({ ...joint, into }, uses, into === joint.into ? [] : list);
    return ended(into, () => later.value);
  }

  #place({ stream = this.device.stream, label }: Asked): Pick<Joint, 'stream' | 'named'> {
    if (!((stream as unknown) instanceof Stream)) throw badArgument('stream', stream, `The stream (${show(stream)}) is no Stream.`);
    if (stream.device.core !== this.device.core)
      throw wrongDevice('stream', stream, `Stream ${stream.label} is not of the device of rank ${this.rank} (${this.device.info.id}).`);
    if (this.member.error !== undefined) throw this.member.error;
    return { stream, named: label === undefined ? {} : { label } };
  }

  #checkArray(argument: string, array: unknown): void {
    if (!(array instanceof DeviceArray))
      throw badArgument(argument, array, `What is given as ${argument} (${show(array)}) is not an array of a device.`);
    if (array.device.core !== this.device.core)
      throw wrongDevice(argument, array, `The array ${array.label} is not on the device of rank ${this.rank} (${this.device.info.id}).`);
  }

  #rankIn(argument: string, rank: number): number {
    return checkInteger(argument, rank, 0, this.size - 1);
  }

  #other(argument: string, rank: number): number {
    if (this.#rankIn(argument, rank) === this.rank) throw badArgument(argument, rank, `Rank ${rank} is this one.`);
    return rank;
  }

  #row(array: DeviceArray): readonly number[] {
    this.#checkArray('array', array);
    if (array.shape[0] === this.size) return array.shape.slice(1);
    const message = `The first dimension of the array (${show([...array.shape])}) has not a row for each of the ${this.size} ranks.`;
    throw badArgument('array', array, message, this.size);
  }
}

// A communicator of GPUs of one process, by NCCL.
// Thread: owner.
import { refuseSurplus } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import type { Device } from '../core/api/device.js';
import type { CommunicatorCalls } from '../core/channel/channel.js';
import type { DType } from '../core/elements/dtype.js';
import { collective, order } from './collective.js';
import { isGrouping, keep, resultsOf, runGroup } from './group.js';
import { type NcclCall, NcclCalls, type Parts, type Submitted } from './nccl-calls.js';
import { type Kind, UNREDUCED } from './nccl-plans.js';
import { type Call, Ranks, type Results } from './ranks.js';
import type { Collective, CollectiveOptions, Communicator, Reduction, RootOptions } from './types.js';

export class NcclCommunicator implements Communicator {
  readonly #ranks: Ranks;
  readonly #calls: NcclCalls;

  constructor(devices: readonly Device[], calls: CommunicatorCalls, number: number) {
    this.#ranks = new Ranks(devices, UNREDUCED);
    this.#calls = new NcclCalls(devices, calls, number);
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
  ): Collective<D> {
    if (arguments.length > 3) refuseSurplus('send', arguments, 3);
    const { from, to, streams, named } = this.#ranks.checkSend(array, into, opts);
    const results = { dtype: array.dtype, result: array.shape, root: to, streams, into: [into], named };
    return this.#collect(results, {
      kind: 'send',
      root: from,
      peer: to,
      count: array.length,
      from: this.devices.map((_, rank) => (rank === from ? array : undefined)),
      getting: this.devices.map((_, rank) => rank === to),
      mayBeSame: false,
      isOwn: from === to,
    });
  }

  barrier(opts: Pick<CollectiveOptions, 'streams'> = {}): Collective {
    if (arguments.length > 1) refuseSurplus('barrier', arguments, 1);
    const streams = this.#ranks.checkBarrier(opts);
    isGrouping(this, 'barrier');
    this.#calls.checkWorks();
    return collective(
      [],
      order(streams).map((operation) => [operation]),
    );
  }

  group<R>(fn: () => R): R {
    if (arguments.length > 1) refuseSurplus('group', arguments, 1);
    this.#calls.checkWorks();
    return runGroup(this, fn, (calls: readonly NcclCall<DType>[]) => this.#calls.collect(calls).map(({ operations }) => operations));
  }

  abort(): void {
    if (arguments.length > 0) refuseSurplus('abort', arguments, 0);
    this.#calls.abort();
  }

  close(): Promise<void> {
    if (arguments.length > 0) refuseSurplus('close', arguments, 0);
    return this.#calls.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #collect<D extends DType>(results: Results<D>, parts: Parts): Collective<D> {
    if (!isGrouping(this)) {
      const [{ given, operations }] = this.#calls.collect([{ results, parts }]) as [Submitted<D>];
      return collective(given, operations);
    }
    this.#calls.checkWorks();
    const [into, made] = resultsOf(results);
    const reads = parts.from.filter((array) => array !== undefined);
    const uses = { name: parts.kind, reads, writes: into, streams: results.streams };
    return collective(into, keep({ results: { ...results, into }, parts }, uses, made));
  }

  /** Every rank gives and gets. */
  #all<D extends DType>(kind: Kind, from: readonly DeviceArray<D>[], { op }: Call<D>): Parts {
    return { kind, op, count: from[0]!.length, from, getting: from.map(() => true), mayBeSame: false };
  }
}

// A communicator of CPU devices of one process: a reference for tests and laptops, and not for speed.
//
// A collective is copies between the devices and operations of `millrace/ops` on the first one, each a record of a stream. So it is ordered, fails,
// poisons and is recorded as they are. Each stream of the group waits for all others before and after: no rank sees a part of a collective.
// Thread: owner.
import { refuseSurplus } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import type { Device } from '../core/api/device.js';
import type { Stream } from '../core/api/stream.js';
import type { DType } from '../core/elements/dtype.js';
import { CaptureSession } from '../core/graphs/capture-session.js';
import type { LaunchParty } from '../core/graphs/captured-node.js';
import { checkShape } from '../core/elements/shape.js';
import type { Operation } from '../core/operations/operation.js';
import { collective, order } from './collective.js';
import { closedError } from './errors.js';
import { isGrouping, keep, resultsOf, runGroup, type Uses } from './group.js';
import { Ranks, type Results } from './ranks.js';
import { reduced } from './reduction.js';
import type { Collective, CollectiveOptions, Communicator, Reduction, RootOptions } from './types.js';

/** Submits a call. Returns the operations of each rank. */
type Filling = () => readonly (readonly Operation[])[];

export class LocalCommunicator implements Communicator {
  readonly #ranks: Ranks;
  #isClosed = false;
  /** Graphs with a collective are not launched once the communicator is closed, as those of GPUs. */
  readonly #party: LaunchParty = { checkWorks: () => void this.#open, before: () => void this.#open, after: () => undefined };

  constructor(devices: readonly Device[]) {
    this.#ranks = new Ranks(devices, ['bool']);
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
    const call = this.#open.check(arrays, opts, ['op'], (own) => own);
    const { op, streams, named } = call;
    return this.#collect(arrays, call, 'allReduce', (parts) => {
      using sum = reduced(streams[0]!, arrays, op);
      order(streams);
      return parts.map((part, rank) => [streams[rank]!.copy(part, sum, named)]);
    });
  }

  reduce<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & RootOptions & { readonly op?: Reduction } = {},
  ): Collective<D> {
    if (arguments.length > 2) refuseSurplus('reduce', arguments, 2);
    const root = this.#open.root(opts.root);
    const call = this.#ranks.check(arrays, opts, ['op', 'root'], (own) => own, root);
    const { op, streams, named } = call;
    return this.#collect(arrays, call, 'reduce', ([part]) => {
      using sum = reduced(streams[root]!, arrays, op);
      return [[streams[root]!.copy(part!, sum, named)]];
    });
  }

  broadcast<D extends DType>(array: DeviceArray<D>, opts: CollectiveOptions<D> & RootOptions = {}): Collective<D> {
    if (arguments.length > 2) refuseSurplus('broadcast', arguments, 2);
    this.#open.checkArray(array, this.#ranks.root(opts.root));
    const results = this.#ranks.checkOptions(opts, ['root'], array.shape, array.dtype);
    const { streams, named } = results;
    return this.#collect([array], results, 'broadcast', (parts) => parts.map((part, rank) => [streams[rank]!.copy(part, array, named)]));
  }

  allGather<D extends DType>(arrays: readonly DeviceArray<D>[], opts: CollectiveOptions<D> = {}): Collective<D> {
    if (arguments.length > 2) refuseSurplus('allGather', arguments, 2);
    const call = this.#open.check(arrays, opts, [], (own) => [this.size, ...own]);
    const { streams, named } = call;
    return this.#collect(arrays, call, 'allGather', (parts) =>
      parts.map((part, rank) => arrays.map((array, from) => streams[rank]!.copy(part.view(from), array, named))),
    );
  }

  reduceScatter<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts: CollectiveOptions<D> & { readonly op?: Reduction } = {},
  ): Collective<D> {
    if (arguments.length > 2) refuseSurplus('reduceScatter', arguments, 2);
    const call = this.#open.check(arrays, opts, ['op'], (own) => this.#ranks.row(own));
    const { op, streams, named } = call;
    return this.#collect(arrays, call, 'reduceScatter', (parts) =>
      parts.map((part, rank) => {
        const rows = arrays.map((array) => array.view(rank));
        using sum = reduced(streams[rank]!, rows, op);
        return [streams[rank]!.copy(part, sum, named)];
      }),
    );
  }

  allToAll<D extends DType>(arrays: readonly DeviceArray<D>[], opts: CollectiveOptions<D> = {}): Collective<D> {
    if (arguments.length > 2) refuseSurplus('allToAll', arguments, 2);
    const call = this.#open.check(arrays, opts, [], (own) => [this.size, ...this.#ranks.row(own)]);
    const { streams, named } = call;
    return this.#collect(arrays, call, 'allToAll', (parts) =>
      parts.map((part, rank) => arrays.map((array, from) => streams[rank]!.copy(part.view(from), array.view(rank), named))),
    );
  }

  send<D extends DType>(
    array: DeviceArray<D>,
    into: DeviceArray<NoInfer<D>>,
    opts: Pick<CollectiveOptions, 'streams' | 'label'> = {},
  ): Collective<D> {
    if (arguments.length > 3) refuseSurplus('send', arguments, 3);
    const { from, to, streams, named } = this.#open.checkSend(array, into, opts);
    const [sender, receiver] = [streams[from]!, streams[to]!];
    const uses = { name: 'send', reads: [array], writes: [into], streams: [sender, receiver] };
    const submit = this.#joining(uses.streams, () => {
      if (sender !== receiver) receiver.waitStream(sender);
      const received = receiver.copy(into, array, named);
      if (sender !== receiver) sender.waitStream(receiver);
      return [[received]];
    });
    return this.#submit(uses, [into], [], submit);
  }

  barrier(opts: Pick<CollectiveOptions, 'streams'> = {}): Collective {
    if (arguments.length > 1) refuseSurplus('barrier', arguments, 1);
    const streams = this.#open.checkBarrier(opts);
    isGrouping(this, 'barrier');
    return collective(
      [],
      order(streams).map((operation) => [operation]),
    );
  }

  group<R>(fn: () => R): R {
    if (arguments.length > 1) refuseSurplus('group', arguments, 1);
    if (this.#isClosed) throw closedError();
    return runGroup(this, fn, (calls: readonly Filling[]) => {
      if (this.#isClosed) throw closedError();
      return calls.map((call) => call());
    });
  }

  abort(): void {
    if (arguments.length > 0) refuseSurplus('abort', arguments, 0);
    this.#isClosed = true;
  }

  async close(): Promise<void> {
    if (arguments.length > 0) refuseSurplus('close', arguments, 0);
    this.#isClosed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** For calls, which a closed communicator refuses. */
  get #open(): Ranks {
    if (this.#isClosed) throw closedError();
    return this.#ranks;
  }

  /** Has `fill` write new arrays, and copies them to `into`, which may be the operands. The streams are ordered before, between and after. */
  #collect<D extends DType>(
    reads: readonly DeviceArray<D>[],
    results: Results<D>,
    name: string,
    fill: (parts: readonly DeviceArray<D>[]) => readonly (readonly Operation[])[],
  ): Collective<D> {
    const { streams, named, dtype, result, root } = results;
    const receivers = root === undefined ? streams : [streams[root]!];
    // Those of a group are made before it, and the others where the streams are in order.
    let into = results.into ?? (isGrouping(this) ? resultsOf(results)[0] : undefined);
    const made = results.into === undefined && into !== undefined ? into : [];
    const submit = this.#joining(streams, () => {
      order(streams);
      // Those that are copied are no scope's.
      const make = (stream: Stream): DeviceArray<D> =>
        into === undefined ? stream.empty(result, dtype) : stream.allocate(checkShape(result), dtype);
      const parts = receivers.map((stream) => make(stream));
      const filled = fill(parts);
      order(streams);
      if (into === undefined) {
        into = parts;
        return filled;
      }
      const operations = into.map((array, at) => [receivers[at]!.copy(array, parts[at]!, named)]);
      for (const part of parts) part[Symbol.dispose]();
      order(streams);
      return operations;
    });
    if (into === undefined) {
      const operations = submit();
      return collective(into!, operations);
    }
    return this.#submit({ name, reads, writes: into, streams }, into, made, submit);
  }

  /** A capture has the communicator once the call is recorded: the graph of one that was refused has nothing of it. */
  #joining(streams: readonly Stream[], submit: Filling): Filling {
    for (const { timeline } of streams) if (timeline.recording instanceof CaptureSession) timeline.recording.checkParty(timeline);
    return () => {
      const operations = submit();
      for (const { timeline } of streams) if (timeline.recording instanceof CaptureSession) timeline.recording.addParty(this.#party);
      return operations;
    };
  }

  /** Now, or at the end of the group. */
  #submit<D extends DType>(uses: Uses, arrays: readonly DeviceArray<D>[], made: readonly DeviceArray[], submit: Filling): Collective<D> {
    return collective(arrays, isGrouping(this) ? keep(submit, uses, made) : submit());
  }
}

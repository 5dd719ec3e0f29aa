// What a communicator offers, whatever joins its ranks.
import type { DeviceArray } from '../core/api/array.js';
import type { Device } from '../core/api/device.js';
import type { Stream } from '../core/api/stream.js';
import type { DType } from '../core/elements/dtype.js';
import type { Operation } from '../core/operations/operation.js';

/** How the ranks' elements become one: NCCL's `ncclRedOp_t`. The mean is for floats. */
export type Reduction = 'sum' | 'prod' | 'min' | 'max' | 'mean';

/** Options of every collective. */
export interface CollectiveOptions<D extends DType = DType> {
  /** A stream of each rank's device, on which its part runs. Default: their current streams. */
  readonly streams?: readonly Stream[];
  /** The arrays that take the results, one for each rank; also the arrays themselves. Default: new ones. */
  readonly into?: readonly DeviceArray<D>[];
  /** The name of the copies in messages and in `device.inspect()`. */
  readonly label?: string;
}

/** Options of collectives with one rank that others send to, or get from. */
export interface RootOptions {
  /** Its number. Default 0. */
  readonly root?: number;
}

/** What a collective returns. In a `group`, `operations` and `done` throw StateError until the group is issued. */
export interface Collective<D extends DType = DType> {
  /** The results, by rank. Operations on them wait for the collective on the device. */
  readonly arrays: readonly DeviceArray<D>[];
  /** The last operation of each rank. */
  readonly operations: readonly Operation[];
  /** Resolves when all ranks have finished; rejects with the first failure. */
  readonly done: Promise<void>;
}

/**
 * Devices that compute together, one for each rank, of which there may be one alone: NCCL's communicators of one process (`ncclCommInitAll`), `torch.cuda.nccl`. Each method takes an
 * array of every rank, by rank, of one dtype and shape, and throws ArgumentError for others, before anything is submitted, and CollectiveError once the
 * communicator does not work any more. Every rank has the same bits. CPU devices add in the order of the ranks, f16 and bf16 in f32; NCCL in an order
 * and a type of its own, and it does not reduce i16 and u16.
 *
 * In a capture that the streams of all ranks have joined, a call becomes part of the graph, whose launches count as calls: NCCL's calls under
 * `cudaStreamBeginCapture`. Throws CaptureError for a stream outside of it ('isolation') and in the body of a condition ('unsupported-node').
 * A graph whose communicator was closed or aborted, or failed, throws CollectiveError at its launch.
 *
 * Calls on communicators that share devices come from one thread: it is the order of its calls in which they run on every device.
 */
export interface Communicator extends AsyncDisposable {
  /** The number of ranks. */
  readonly size: number;
  /** The devices, by rank. */
  readonly devices: readonly Device[];
  /** Each rank gets the reduction of all arrays: `ncclAllReduce`. Default 'sum'. */
  allReduce<D extends DType>(arrays: readonly DeviceArray<D>[], opts?: CollectiveOptions<D> & { readonly op?: Reduction }): Collective<D>;
  /** The root gets the reduction of all arrays, and the result has that array alone: `ncclReduce`. `into` is a list of one. */
  reduce<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts?: CollectiveOptions<D> & RootOptions & { readonly op?: Reduction },
  ): Collective<D>;
  /** Each rank gets the root's elements: `ncclBroadcast`. `array` belongs to the root's device. */
  broadcast<D extends DType>(array: DeviceArray<D>, opts?: CollectiveOptions<D> & RootOptions): Collective<D>;
  /** Each rank gets all arrays, in a new first dimension: `ncclAllGather`. */
  allGather<D extends DType>(arrays: readonly DeviceArray<D>[], opts?: CollectiveOptions<D>): Collective<D>;
  /** Rank r gets the reduction of row r of all arrays, whose first dimension has a row for each rank: `ncclReduceScatter`. */
  reduceScatter<D extends DType>(
    arrays: readonly DeviceArray<D>[],
    opts?: CollectiveOptions<D> & { readonly op?: Reduction },
  ): Collective<D>;
  /** Rank r gets row r of all arrays, in the order of the ranks: `ncclAlltoAll`, `MPI_Alltoall`. */
  allToAll<D extends DType>(arrays: readonly DeviceArray<D>[], opts?: CollectiveOptions<D>): Collective<D>;
  /** Copies an array of one rank to one of another: `ncclSend` and `ncclRecv`. The result is `into` alone, and its operation the receiver's. */
  send<D extends DType>(
    array: DeviceArray<D>,
    into: DeviceArray<NoInfer<D>>,
    opts?: Pick<CollectiveOptions, 'streams' | 'label'>,
  ): Collective<D>;
  /** Work of each rank's stream after the barrier waits for what was submitted to all of them before: `MPI_Barrier`. */
  barrier(opts?: Pick<CollectiveOptions, 'streams'>): Collective;
  /**
   * Issues the calls that `fn` makes together, when it has returned: `ncclGroupStart` and `ncclGroupEnd`, `nccl4py`'s `group`, PyTorch's
   * `batch_isend_irecv`. Returns what `fn` returns. The calls have no order among themselves, and each has its own operations, once the group is
   * issued. Throws what `fn` throws, ArgumentError for an async function and for calls of which one writes what another uses, and StateError for a
   * group in a group, a `barrier`, and calls of other communicators; then nothing is issued. A LimitError at `maxPending` comes from the call that meets it: CPU devices
   * have begun the calls before it, and the group's new results are disposed. On GPUs, one failed operand fails all calls, and a group has at most some 120 arrays.
   * @example const halves = group.group(() => [group.send(x, y), group.send(v, w)]);
   */
  group<R>(fn: () => R): R;
  /**
   * Ends the communicator at once: `ncclCommAbort`. Collectives in flight fail with a CollectiveError on all ranks, and their results are poisoned.
   * Those of CPU devices, which cannot hang, finish.
   */
  abort(): void;
  /** Waits for collectives in flight, for at most 10 s, then releases the ranks: `ncclCommDestroy`. A closed device closes it too. */
  close(): Promise<void>;
}

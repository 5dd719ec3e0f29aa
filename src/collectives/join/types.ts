// What a communicator of several processes offers to one of its ranks.
import type { DeviceArray } from '../../core/api/array.js';
import type { Device } from '../../core/api/device.js';
import type { Stream } from '../../core/api/stream.js';
import type { DType } from '../../core/elements/dtype.js';
import type { Operation } from '../../core/operations/operation.js';
import type { Reduction } from '../types.js';

/** Options of every collective of several processes. */
export interface JoinedOptions<D extends DType = DType> {
  /** A stream of the rank's device. Default: its current stream. */
  readonly stream?: Stream;
  /** The array that takes the result; also the operand itself. Default: a new one. */
  readonly into?: DeviceArray<D>;
  /** The name of the operation in messages and in `device.inspect()`. */
  readonly label?: string;
}

/** What a collective of several processes returns. In a `group`, `operation` and `done` throw StateError until the group is issued. */
export interface JoinedCollective<A> {
  /** The result of this rank; undefined where it has none. Operations on it wait for the collective on the device. */
  readonly array: A;
  /** The last operation. */
  readonly operation: Operation;
  /** Resolves when this rank has finished; rejects with a CollectiveError, or the failure of the operand. */
  readonly done: Promise<void>;
}

/**
 * One rank of a communicator of several processes: NCCL's, `nccl4py`'s `Communicator`, `torch.distributed`. All ranks call the same methods in the
 * same order with arrays of one dtype and shape; each method takes and returns this rank's array. On CPU devices the elements go through a store on
 * rank 0, which is not for speed and in no capture (CaptureError), and ranks that call something else get a CollectiveError, reason 'mismatch';
 * NCCL does not notice that. On GPUs, a call in a capture becomes part of this rank's graph, as in a `Communicator`.
 */
export interface JoinedCommunicator extends AsyncDisposable {
  /** The number of this rank. */
  readonly rank: number;
  /** The number of ranks. */
  readonly size: number;
  /** The device of this rank. */
  readonly device: Device;
  /** Each rank gets the reduction of all arrays: `ncclAllReduce`, `all_reduce`. Default 'sum'. */
  allReduce<D extends DType>(
    array: DeviceArray<D>,
    opts?: JoinedOptions<D> & { readonly op?: Reduction },
  ): JoinedCollective<DeviceArray<D>>;
  /** The root gets the reduction of all arrays: `ncclReduce`, `reduce`. */
  reduce<D extends DType>(
    array: DeviceArray<D>,
    opts?: JoinedOptions<D> & { readonly op?: Reduction; readonly root?: number },
  ): JoinedCollective<DeviceArray<D> | undefined>;
  /** Each rank gets the root's elements: `ncclBroadcast`, `broadcast`. The others give an array of the same dtype and shape, which is not read. */
  broadcast<D extends DType>(array: DeviceArray<D>, opts?: JoinedOptions<D> & { readonly root?: number }): JoinedCollective<DeviceArray<D>>;
  /** Each rank gets all arrays, in a new first dimension: `ncclAllGather`, `all_gather_into_tensor`. */
  allGather<D extends DType>(array: DeviceArray<D>, opts?: JoinedOptions<D>): JoinedCollective<DeviceArray<D>>;
  /** Rank r gets the reduction of row r of all arrays: `ncclReduceScatter`, `reduce_scatter_tensor`. */
  reduceScatter<D extends DType>(
    array: DeviceArray<D>,
    opts?: JoinedOptions<D> & { readonly op?: Reduction },
  ): JoinedCollective<DeviceArray<D>>;
  /** Rank r gets row r of all arrays, in the order of the ranks: `ncclAlltoAll`, `all_to_all_single`. */
  allToAll<D extends DType>(array: DeviceArray<D>, opts?: JoinedOptions<D>): JoinedCollective<DeviceArray<D>>;
  /** Sends the array to another rank, which calls `receive`: `ncclSend`, `send`. */
  send(array: DeviceArray, opts: Omit<JoinedOptions, 'into'> & { readonly to: number }): JoinedCollective<undefined>;
  /** Receives what another rank sends into the array: `ncclRecv`, `recv`. */
  receive<D extends DType>(
    array: DeviceArray<D>,
    opts: Omit<JoinedOptions<D>, 'into'> & { readonly from: number },
  ): JoinedCollective<DeviceArray<D>>;
  /** Later work of the stream waits until all ranks have come: `MPI_Barrier`, `barrier`. */
  barrier(opts?: Omit<JoinedOptions, 'into'>): JoinedCollective<undefined>;
  /**
   * Issues the calls that `fn` makes together, when it has returned, as `group` of a `Communicator` does: `ncclGroupStart` and `ncclGroupEnd`,
   * `batch_isend_irecv`. So ranks may each `receive` and `send` in any order. All ranks make groups that fit each other.
   * @example group.group(() => [group.receive(left, { from }), group.send(own, { to })]);
   */
  group<R>(fn: () => R): R;
  /**
   * A communicator of the ranks that live and call this within the time-out: `ncclCommShrink`, MPI's `MPIX_Comm_shrink`. They keep their order. This
   * one works no more. Rejects with CollectiveError if none can be reached.
   */
  shrink(): Promise<JoinedCommunicator>;
  /** Ends the communicator at once, on all ranks: `ncclCommAbort`. What is in flight fails with a CollectiveError. */
  abort(): void;
  /** Leaves the communicator after what is in flight: `ncclCommDestroy`. The others cannot use it either. */
  close(): Promise<void>;
}

// Stages as RxJS operators: upload$, launch$, download$ on a lane or a stream, cpu$ on a pool of threads.
//
// On a lane the arrays of upload$ are the lane's and reused by its next item; on a stream they are fresh, and the download$
// behind disposes them. What download$ gives belongs to its receiver alone. Only download$ and cpu$ wait; upload$ and
// launch$ submit and pass on, so the device gets a whole chain at once, and a failure on the way arrives where the chain
// is awaited.
import type { Shape } from '../core/elements/shape.js';
import type { LaunchArgs } from '../core/api/launch-args.js';
import type { MonoTypeOperatorFunction, Observable, OperatorFunction } from 'rxjs';
import type { DeviceArray } from '../core/api/array.js';
import type { DTypeOf } from '../core/api/array-factory.js';
import { ArgumentError } from '../core/base/errors.js';
import { dtypeOfHost, type DType, type HostArray, type HostOf } from '../core/elements/dtype.js';
import type { Kernel, LaunchShape, Params } from '../core/kernels/kernel.js';
import type { PinnedArray } from '../core/api/pinned.js';
import { readArray } from '../core/api/readback.js';
import type { Stream } from '../core/api/stream.js';
import type { Lane } from './lane.js';
import { observable, rx } from './observe.js';

type On = Lane | Stream;

/** Values of one item that an operator holds at the same time must not share an array: each gets a key of its own. */
const keysInUse: WeakMap<Lane, Map<string, number>> = new WeakMap();

/** Arrays that upload$ made on a stream and that no download$ has read yet. */
const uploaded: WeakSet<DeviceArray> = new WeakSet();

function isLane(on: On): on is Lane {
  return 'detach' in on;
}

function streamOf(on: On): Stream {
  return isLane(on) ? on.stream : on;
}

function keyFor(lane: Lane, operator: string): string {
  let counts = keysInUse.get(lane);
  if (!counts) keysInUse.set(lane, (counts = new Map()));
  const count = counts.get(operator) ?? 0;
  counts.set(operator, count + 1);
  return `${operator}:${String(count)}`;
}

function dtypeOf(data: HostArray | PinnedArray): DType {
  const dtype = 'data' in data ? data.dtype : dtypeOfHost(data);
  if (dtype) return dtype;
  throw new ArgumentError('ERR_MILLRACE_ARGUMENT', 'upload$ takes typed arrays and pinned arrays.', { argument: 'data', value: data });
}

/**
 * Copies every value to the device and emits the device array without waiting: `cuMemcpyAsync`, CuPy's `set`, `wp.copy`. The dtype
 * follows the class: f32 for a Float32Array and so on. On a lane the array belongs to the lane; on a stream it is new, and the first
 * `download$` that reads it disposes it, or without one the receiver must. The Observable errors with what `copy` throws, and with
 * ArgumentError for other values. Every operator throws UnavailableError if rxjs is not installed.
 */
export function upload$<T extends HostArray | PinnedArray>(
  on: On,
  opts: { readonly shape?: Shape } = {},
): OperatorFunction<T, DeviceArray<DTypeOf<T>>> {
  return rx().map((data) => {
    const dtype = dtypeOf(data);
    const shape = opts.shape ?? ('data' in data ? data.shape : data.length);
    const array = isLane(on) ? on.array(keyFor(on, 'upload$'), shape, dtype) : on.empty(shape, dtype);
    try {
      streamOf(on).copy(array, data);
    } catch (error) {
      if (!isLane(on)) array[Symbol.dispose]();
      throw error;
    }
    if (!isLane(on)) uploaded.add(array);
    return array as DeviceArray<DTypeOf<T>>;
  });
}

/**
 * Launches a kernel for every value and emits the value without waiting: `cuLaunchKernel`, `wp.launch`. The Observable errors with what
 * `launch` throws; a failure of the kernel appears where the chain is awaited.
 */
export function launch$<T, P extends Params>(
  on: On,
  kernel: Kernel<P>,
  shape: LaunchShape | ((value: T) => LaunchShape),
  args: (value: T) => LaunchArgs<NoInfer<P>>,
): MonoTypeOperatorFunction<T> {
  return rx().map((value) => {
    streamOf(on).launch(kernel, typeof shape === 'function' ? shape(value) : shape, args(value));
    return value;
  });
}

/**
 * Copies every array back and emits, in order, a new typed array once its bytes have arrived: `cuMemcpyAsync`, CuPy's `get`,
 * `wp.array.numpy()`. The result is in flat order and belongs to the receiver alone, who may keep, change and transfer it.
 *
 * `pinned: true` (default false) emits a PinnedArray instead, which a pool of threads gets without a copy. On a lane it is the lane's
 * memory, for use inside the stage only: it cannot be the stage's result. On a stream it is new, and the receiver disposes it.
 *
 * An array that `upload$` made on a stream is disposed after the copy. Errors with what `copy` throws and with what its `done` rejects
 * with, such as UpstreamError after a failed kernel.
 */
export function download$<D extends DType>(
  on: On,
  opts?: { readonly pinned?: false },
): OperatorFunction<DeviceArray<D>, HostOf<ArrayBuffer>[D]>;
export function download$<D extends DType>(on: On, opts: { readonly pinned: true }): OperatorFunction<DeviceArray<D>, PinnedArray<D>>;
export function download$<D extends DType>(
  on: On,
  opts: { readonly pinned?: boolean } = {},
): OperatorFunction<DeviceArray<D>, HostOf<ArrayBuffer>[D] | PinnedArray<D>> {
  const { defer, mergeMap } = rx();
  return (arrays) =>
    defer(() => {
      let before: Promise<unknown> = Promise.resolve();
      return arrays.pipe(
        mergeMap((array) => {
          const arrived = opts.pinned === true ? readPinned(on, array) : readArray(streamOf(on), array, undefined, undefined);
          if (uploaded.delete(array)) array[Symbol.dispose]();
          // Large arrays come by way of the device's worker, and a small one behind them may be here first.
          const result = Promise.all([arrived, before]).then(([value]) => value as HostOf<ArrayBuffer>[D] | PinnedArray<D>);
          before = result.catch(() => undefined);
          return result;
        }),
      );
    });
}

async function readPinned<D extends DType>(on: On, array: DeviceArray<D>): Promise<PinnedArray<D>> {
  const { shape, dtype } = array;
  const pinned = isLane(on) ? on.pinned(keyFor(on, 'download$'), shape, dtype) : on.device.pinned(shape, dtype);
  try {
    await streamOf(on).copy(pinned, array).done;
    return pinned;
  } catch (error) {
    if (!isLane(on)) pinned[Symbol.dispose]();
    throw error;
  }
}

/** A pool of threads, by its structure: a Piscina fits, and so does what `createCpuPool` returns. */
export interface CpuPool {
  /** Runs the export `name` on a thread with `task` as its argument. Resolves to its result, rejects with what it throws. */
  run(task: unknown, opts?: { readonly name?: string; readonly signal?: AbortSignal }): Promise<unknown>;
}

type TaskName<M extends object> = { [K in keyof M & string]: M[K] extends (arg: never) => unknown ? K : never }[keyof M & string];
type TaskArg<M extends object, K extends TaskName<M>> = M[K] extends (arg: infer A) => unknown ? A : never;
type TaskResult<M extends object, K extends TaskName<M>> = M[K] extends (arg: never) => infer R ? Awaited<R> : never;

/** A pool, typed by the module whose exports its threads run. */
export interface CpuTasks<M extends object> {
  /** Calls the export `name` on a thread. Pinned `data` in the argument is not copied. Aborting stops the thread of a task that runs. */
  run<K extends TaskName<M>>(name: K, arg: TaskArg<M, K>, opts?: { readonly signal?: AbortSignal }): Promise<TaskResult<M, K>>;
}

/**
 * Types a pool by the module that its threads run, after `import type * as stages`.
 * @example const tasks = cpuTasks<typeof stages>(pool);
 */
export function cpuTasks<M extends object>(pool: CpuPool): CpuTasks<M> {
  return {
    run: async <K extends TaskName<M>>(name: K, arg: TaskArg<M, K>, opts: { readonly signal?: AbortSignal } = {}) =>
      (await pool.run(arg, { ...opts, name })) as TaskResult<M, K>,
  };
}

/**
 * Runs a task of the pool for every value. `concurrency` is how many run at once: default 1, in order; with more, results come as they
 * are ready. A task that throws errors the Observable. Unsubscribing aborts the tasks that are not done.
 */
export function cpu$<T, M extends object, K extends TaskName<M>>(
  tasks: CpuTasks<M>,
  name: K,
  arg: (value: T) => TaskArg<M, K>,
  opts: { readonly concurrency?: number } = {},
): OperatorFunction<T, TaskResult<M, K>> {
  return rx().mergeMap((value) => runTask(tasks, name, arg(value)), opts.concurrency ?? 1);
}

function runTask<M extends object, K extends TaskName<M>>(tasks: CpuTasks<M>, name: K, arg: TaskArg<M, K>): Observable<TaskResult<M, K>> {
  return observable((sink) => {
    const abort = new AbortController();
    tasks.run(name, arg, { signal: abort.signal }).then(
      (result) => {
        sink.next(result);
        sink.complete();
      },
      (error: unknown) => sink.error(error),
    );
    return () => abort.abort();
  });
}

// Stages as RxJS operators: upload, launch and download, on a lane or on a stream.
//
// On a lane the arrays belong to the item. On a stream they are new, and the download after an upload disposes them. Only
// download waits. Upload and launch submit and emit at once, so the device gets the whole chain at once. On a lane a failed
// operation fails the item; on a stream the failure appears where the chain is awaited.
import type { MonoTypeOperatorFunction, OperatorFunction } from 'rxjs';
import { checkReshape, type Shape } from '../core/elements/shape.js';
import type { LaunchArgs } from '../core/api/launch-args.js';
import { DeviceArray } from '../core/api/array.js';
import { Graph, type GraphValues } from '../core/api/graph.js';
import type { DTypeOf } from '../core/api/array-factory.js';
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { dtypeOfHost, type DType, type HostArray, type HostOf } from '../core/elements/dtype.js';
import type { KernelPlan } from '../core/kernels/kernel-plan.js';
import { type CudaParams, isKernel, type Kernel, type LaunchShape, type Params } from '../core/kernels/kernel.js';
import { launchAt, type Place } from '../core/api/global-functions.js';
import type { Operation } from '../core/operations/operation.js';
import { PinnedArray } from '../core/api/pinned.js';
import { readArray } from '../core/api/readback.js';
import type { Stream } from '../core/api/stream.js';
import { type Lane, LaneTurn } from './lane.js';
import { rx } from './observe.js';

type On = Lane | Stream;

/** Arrays that `upload` made on a stream and that no `download` has read yet. */
const uploaded: WeakSet<DeviceArray> = new WeakSet();

function isLane(on: On): on is Lane {
  return 'detach' in on;
}

/** Checks the target when the operator is made. */
function checkOn(operator: string, on: On, or = ','): void {
  const { copy, stream } = (on ?? {}) as Partial<Stream & Lane>;
  if (typeof copy === 'function' || (typeof stream === 'object' && isLane(on))) return;
  const hint = stream === undefined ? '' : ': give its stream';
  throw badArgument('on', on, `${operator} works on a Lane or a Stream${or} not on ${show(on)}${hint}.`);
}

function streamOf(on: On): Stream {
  return isLane(on) ? on.stream : on;
}

/** On a lane, adds the operation to the item: its failure fails the item, and its time counts as the stage `name`. */
function report(on: On, name: string, done: () => Promise<unknown>, plan?: KernelPlan): void {
  if (on instanceof LaneTurn) on.addOperation(name, done(), plan);
}

function dtypeOf(data: HostArray | PinnedArray): DType {
  const dtype = data instanceof PinnedArray ? data.dtype : dtypeOfHost(data);
  if (dtype) return dtype;
  throw badArgument('data', data, `upload takes typed arrays and pinned arrays, not ${show(data)}.`);
}

/**
 * Copies every value to the device and emits the device array without waiting: `cuMemcpyAsync`, CuPy's `set`, `wp.copy`. The dtype follows
 * the class of the value: f32 for a Float32Array and so on. On a lane the array belongs to the item. On a stream, the first `download` that
 * reads the array disposes it; without a `download`, the receiver must. The Observable errors with what `copy` throws, and with
 * ArgumentError for other values. Every operator throws ArgumentError if `on` is no Lane or Stream, and UnavailableError if rxjs is not
 * installed.
 * @example of(samples).pipe(upload(lane), launch(lane, blur, samples.length, (x) => ({ x })), download(lane))
 */
export function upload<T extends HostArray | PinnedArray>(
  on: On,
  opts: { readonly shape?: Shape } = {},
): OperatorFunction<T, DeviceArray<DTypeOf<T>>> {
  if (arguments.length > 2) refuseSurplus('upload', arguments, 2);
  checkOn('upload', on);
  checkOptionNames(opts, ['shape']);
  return rx().map((data) => {
    const dtype = dtypeOf(data);
    const shape =
      opts.shape === undefined ? (data instanceof PinnedArray ? data.shape : data.length) : checkReshape(opts.shape, data.length);
    const array = on.empty(shape, dtype);
    try {
      const copy = streamOf(on).copy(array, data);
      report(on, 'upload', () => copy.done);
    } catch (error) {
      array[Symbol.dispose]();
      throw error;
    }
    if (!isLane(on)) uploaded.add(array);
    return array as DeviceArray<DTypeOf<T>>;
  });
}

/**
 * Launches a kernel on the current stream of the default device, or where `place` says: `wp.launch(kernel, dim, inputs, device=)`. Otherwise
 * as `stream.launch`.
 * @example launch(saxpy, y.length, { a: 2, x, y }, { device: 'cuda:1' });
 */
export function launch<P extends CudaParams>(kernel: Kernel<P>, shape: LaunchShape, args: LaunchArgs<NoInfer<P>>, place?: Place): Operation;
/** Launches a graph on the current stream of its device: `wp.capture_launch(graph)`. Otherwise as `stream.launch`. */
export function launch<P extends Params>(graph: Graph<P>, ...values: GraphValues<NoInfer<P>>): Operation;
/**
 * With a lane or a stream in front, an operator that launches a kernel for every value and emits the value without waiting:
 * `cuLaunchKernel`, `wp.launch`. The Observable errors with what `stream.launch` throws; a failure of the kernel appears where the chain
 * is awaited.
 * @example of(samples).pipe(upload(lane), launch(lane, blur, (x) => x.length, (x) => ({ x })), download(lane))
 */
export function launch<T, P extends CudaParams>(
  on: On,
  kernel: Kernel<P>,
  shape: LaunchShape | ((value: T) => LaunchShape),
  args: (value: T) => LaunchArgs<NoInfer<P>>,
): MonoTypeOperatorFunction<T>;
export function launch(first: unknown, ...rest: readonly unknown[]): unknown {
  if (first instanceof Graph) return first.launch(...(rest as unknown as GraphValues<Params>));
  if (rest.length > 3) refuseSurplus('launch', [first, ...rest], 4);
  if (isKernel(first)) return launchAt(first, rest[0] as LaunchShape, rest[1] as never, rest[2] as Place);
  return launchStage(...([first, ...rest] as Parameters<typeof launchStage>));
}

function launchStage<T>(
  on: On,
  kernel: Kernel,
  shape: LaunchShape | ((value: T) => LaunchShape),
  args: (value: T) => LaunchArgs<CudaParams>,
): MonoTypeOperatorFunction<T> {
  checkOn('launch', on, ', or takes a kernel or a graph,');
  if (typeof args !== 'function') {
    const message = `args (${show(args)}) is not a function: launch takes the target, the kernel, the shape, and a function that returns the arguments for a value.`;
    throw badArgument('args', args, message);
  }
  return rx().map((value) => {
    const given = args(value);
    if (given instanceof DeviceArray)
      throw badArgument(
        'args',
        given,
        `args returned a DeviceArray: it must return an object with the arguments of kernel ${kernel.name} by name.`,
      );
    const stream = streamOf(on);
    const launched = stream.launch(kernel, typeof shape === 'function' ? shape(value) : shape, given);
    report(on, `launch ${kernel.name}`, () => launched.done, stream.core.kernelRegistry.of(kernel));
    return value;
  });
}

/**
 * Launches a graph for every value, with the values of its parameters that `values` returns, and emits the value without waiting:
 * `cuGraphLaunch`, `wp.capture_launch`. Launches of one graph run one after another, so lanes that should overlap have a graph each. The
 * Observable errors with what `stream.launch` throws; a failure of a node appears where the chain is awaited.
 * @example of(samples).pipe(upload(lane), launchGraph(lane, filters[lane.index]!, (x) => ({ x })), download(lane))
 */
export function launchGraph<T, P extends Params>(
  on: On,
  graph: Graph<P>,
  ...values: keyof P extends never ? [] : [values: (value: T) => GraphValues<NoInfer<P>>[0]]
): MonoTypeOperatorFunction<T> {
  checkOn('launchGraph', on);
  if (!((graph as unknown) instanceof Graph))
    throw badArgument('graph', graph, `The graph (${show(graph)}) is not a graph that a stream captured.`);
  const [valuesOf] = values as [((value: T) => unknown)?];
  if (valuesOf !== undefined && typeof valuesOf !== 'function')
    throw badArgument(
      'values',
      valuesOf,
      `values (${show(valuesOf)}) is not a function: launchGraph takes one that returns the values for an item.`,
    );
  return rx().map((value) => {
    const given = (valuesOf === undefined ? [] : [valuesOf(value)]) as unknown as GraphValues<P>;
    const launched = streamOf(on).launch(graph, ...(given as never));
    report(on, `graph ${graph.label}`, () => launched.done);
    return value;
  });
}

/**
 * Copies every array back and emits, in order, a new typed array once its bytes have arrived: `cuMemcpyAsync`, CuPy's `get`,
 * `wp.array.numpy()`. The elements are in row-major order. The result belongs to the receiver, which may keep, change and transfer it.
 *
 * With `pinned: true` (default false) it emits a PinnedArray, which passes to a pool of threads without a copy. On a lane the PinnedArray
 * belongs to the item and cannot be the stage's result; on a stream the receiver disposes it.
 *
 * An array that `upload` made on a stream is disposed after the copy. The Observable errors with what `copy` throws and with what its
 * `done` rejects with: the failure of the upload, of an earlier launch, or of the copy.
 */
export function download<D extends DType>(
  on: On,
  opts?: { readonly pinned?: false },
): OperatorFunction<DeviceArray<D>, HostOf<ArrayBuffer>[D]>;
export function download<D extends DType>(on: On, opts: { readonly pinned: true }): OperatorFunction<DeviceArray<D>, PinnedArray<D>>;
export function download<D extends DType>(
  on: On,
  opts: { readonly pinned?: boolean } = {},
): OperatorFunction<DeviceArray<D>, HostOf<ArrayBuffer>[D] | PinnedArray<D>> {
  if (arguments.length > 2) refuseSurplus('download', arguments, 2);
  checkOn('download', on);
  checkOptionNames(opts, ['pinned']);
  const { defer, mergeMap } = rx();
  return (arrays) =>
    defer(() => {
      let before: Promise<unknown> = Promise.resolve();
      return arrays.pipe(
        mergeMap((array) => {
          if (!((array as unknown) instanceof DeviceArray))
            throw badArgument('array', array, `download takes device arrays, not ${show(array)}: upload it first.`);
          if (array.isDisposed) throw array.disposedError();
          const arrived = opts.pinned === true ? readPinned(on, array) : readArray(streamOf(on), array, undefined, undefined);
          report(on, 'download', () => arrived);
          if (uploaded.delete(array)) array[Symbol.dispose]();
          // Large arrays arrive through the device's worker, so a small array submitted later may arrive earlier.
          const result = Promise.all([arrived, before]).then(([value]) => value as HostOf<ArrayBuffer>[D] | PinnedArray<D>);
          before = result.catch(() => undefined);
          return result;
        }),
      );
    });
}

async function readPinned<D extends DType>(on: On, array: DeviceArray<D>): Promise<PinnedArray<D>> {
  const { shape, dtype } = array;
  const pinned = isLane(on) ? on.pinned(shape, dtype) : on.device.pinned(shape, dtype);
  try {
    await streamOf(on).copy(pinned, array).done;
    return pinned;
  } catch (error) {
    pinned[Symbol.dispose]();
    throw error;
  }
}

// A kernel as streams see it: named, typed parameters and a build. src/compiler turns TypeScript functions into kernels.
import type { Build } from '../channel/build.js';
import type { DType, Scalar } from '../elements/dtype.js';
import type { Shape } from '../elements/shape.js';
import type { ModuleText } from './module.js';

/** How a kernel uses an array. Tracked ordering depends on it, and so does poisoning: a failed launch poisons the arrays it writes. */
export type Access = 'in' | 'out' | 'inout';
/** The number of dimensions of an array parameter. */
export type Rank = 1 | 2 | 3 | 4;
/** An array parameter of a kernel, made by `input`, `output` or `inout`: a pointer in CUDA C++. */
export interface ArrayParam<D extends DType = DType, A extends Access = Access, N extends Rank = Rank> {
  /** Tells an array parameter from a scalar one. */
  readonly kind: 'array';
  /** The element type. A launch with an array of another throws an ArgumentError. */
  readonly dtype: D;
  /** 'in' for `input`, 'out' for `output`, 'inout' for `inout`. */
  readonly access: A;
  /** Dimensions of the array. */
  readonly rank: N;
}
/** A parameter of a kernel: a scalar type such as `f32`, or an array. */
export type Param = Scalar | ArrayParam;
/** A kernel's parameters by name. The order of the keys is the order of the arguments. */
export type Params = Readonly<Record<string, Param>>;

// Short names for the annotation that an exported kernel needs under isolatedDeclarations.
/** The type of `input(...)`, for the annotation of an exported kernel. */
export type In<D extends DType, N extends Rank = 1> = ArrayParam<D, 'in', N>;
/** The type of `output(...)`, for the annotation of an exported kernel. */
export type Out<D extends DType, N extends Rank = 1> = ArrayParam<D, 'out', N>;
/** The type of `inout(...)`, for the annotation of an exported kernel. */
export type InOut<D extends DType, N extends Rank = 1> = ArrayParam<D, 'inout', N>;

/** Sizes along CUDA's axes, x first: `dim3`. */
export type Dim3 = number | readonly [x: number, y?: number, z?: number];

/**
 * How many threads a launch has. `sharedBytes`: dynamic shared memory per block, up to all that the device has; default 0. `label`: the
 * launch's name in errors and tools; default the kernel's name.
 *
 * Without `block` the library chooses one by `cuOccupancyMaxActiveBlocksPerMultiprocessor`. The launch throws an ArgumentError beyond the
 * limits of the device or of the built kernel (`cuFuncGetAttribute`), and for more than 2^31-1 threads in a dimension; beyond the limits
 * of a kernel that is still being built, `done` rejects with a LaunchError. A launch of 0 threads runs nothing.
 *
 * `cooperative` (default false): all blocks run at the same time and may wait for each other (`cuLaunchCooperativeKernel`). There may be
 * at most `cuOccupancyMaxActiveBlocksPerMultiprocessor` times the multiprocessors; on the CPU device 1024.
 */
export type LaunchShape =
  | Shape
  /** Threads in array order, as `wp.launch(dim=)`: one to three dimensions, tail guard included for TypeScript kernels, whose `block` has no axes beyond these. */
  | {
      readonly threads: Shape;
      readonly block?: Dim3;
      readonly grid?: never;
      readonly sharedBytes?: number;
      readonly cooperative?: boolean;
      readonly label?: string;
    }
  /** `<<<grid, block, sharedBytes, stream>>>`: blocks, and threads a block, x first. */
  | {
      readonly grid: Dim3;
      readonly block: Dim3;
      readonly threads?: never;
      readonly sharedBytes?: number;
      readonly cooperative?: boolean;
      readonly label?: string;
    };

/**
 * How arguments are passed to the compiled kernel.
 * - `plain` (CUDA C++ kernels): one argument per parameter; an array is a pointer.
 * - `shaped` (TypeScript kernels): an array is a pointer followed by one `int` per dimension. After all parameters follow three
 *   `int` extents, x first: the launch's threads, or 2^31-1 for a launch by grid and block. A kernel with grid barriers has one
 *   more `int`: the stream's slot.
 */
export type KernelAbi = 'plain' | 'shaped';

/** The key that only objects made by `kernel()`, `cudaKernel()` and modules have. Two installs in one process share it. */
export const MADE: unique symbol = Symbol.for('millrace.kernel') as never;

/**
 * A kernel, not tied to a device: it is built for each device at its first launch there, or by `device.compile`. `CUfunction`,
 * `cupy.RawKernel`, `wp.Kernel`. Only `kernel()`, `cudaKernel()` and modules make kernels; a launch throws ArgumentError for anything
 * else.
 */
export interface Kernel<P extends Params = Params> {
  /** @internal */
  readonly uncloneable?: symbol;
  /** The kernel's name, which errors and `device.inspect()` show for launches without a label. */
  readonly name: string;
  /** The parameters by name, in the order of the arguments. */
  readonly params: P;
  /** The CUDA C++ source that both devices compile. */
  readonly source: string;
  /** Set on objects that `kernel()`, `cudaKernel()` and modules made; a launch refuses anything else. */
  readonly [MADE]: true;
  /** @internal */
  readonly build: Build;
  /** @internal */
  readonly abi: KernelAbi;
  /** @internal The number of dimensions of a `threads` launch: 1 to 3, or 0 for any. */
  readonly indexRank: 0 | 1 | 2 | 3;
  /** @internal The module of the kernel, if it has one. */
  readonly module?: ModuleText;
  /** @internal The declared limit of threads per block, if there is one. */
  readonly maxThreadsPerBlock?: number;
}

function arrayParam<A extends Access>(access: A) {
  return <D extends DType, N extends Rank>(type: Scalar<D>, rank: N): ArrayParam<D, A, N> =>
    Object.freeze({ kind: 'array', dtype: type.dtype, access, rank } as const);
}
const inParam = arrayParam('in');
const outParam = arrayParam('out');
const inoutParam = arrayParam('inout');

/** Declares an array that the kernel only reads: `const T*`. `rank` is its number of dimensions, 1 to 4, default 1. */
export function input<D extends DType>(type: Scalar<D>): In<D>;
export function input<D extends DType, N extends Rank>(type: Scalar<D>, rank: N): In<D, N>;
export function input<D extends DType>(type: Scalar<D>, rank: Rank = 1): ArrayParam<D, 'in'> {
  return inParam(type, rank);
}

/**
 * Declares an array that the kernel does not read and of which it writes every element that the launch covers: a launch therefore clears
 * the poison of the array. In CUDA C++ it is `T*`. `rank` is its number of dimensions, 1 to 4, default 1.
 */
export function output<D extends DType>(type: Scalar<D>): Out<D>;
export function output<D extends DType, N extends Rank>(type: Scalar<D>, rank: N): Out<D, N>;
export function output<D extends DType>(type: Scalar<D>, rank: Rank = 1): ArrayParam<D, 'out'> {
  return outParam(type, rank);
}

/**
 * Declares an array that the kernel reads and writes, or writes only in part: `T*`. `rank` is its number of dimensions, 1 to 4, default 1.
 */
export function inout<D extends DType>(type: Scalar<D>): InOut<D>;
export function inout<D extends DType, N extends Rank>(type: Scalar<D>, rank: N): InOut<D, N>;
export function inout<D extends DType>(type: Scalar<D>, rank: Rank = 1): ArrayParam<D, 'inout'> {
  return inoutParam(type, rank);
}

// A kernel as streams see it: named, typed parameters and a build. src/compiler turns TypeScript functions into kernels.
import type { Build } from '../channel/build-spec.js';
import type { Shape } from '../elements/shape.js';
import type { ModuleSource } from './module.js';
import type { OptionalArray, Param, SurfaceParam, TextureParam } from './params.js';
import type { ValueParam } from './value-params.js';

export { inout, input, output } from './params.js';
export type { Access, ArrayParam, In, InOut, Out, Param, Params, Rank } from './params.js';

/**
 * A parameter of a CUDA C++ kernel: a scalar, an array, an array that may be null, a struct, vector or bytes by value, a texture or a
 * surface.
 */
export type CudaParam = Param | OptionalArray | ValueParam | TextureParam | SurfaceParam;
/** The parameters of a CUDA C++ kernel by name. The order of the keys is the order of the arguments. */
export type CudaParams = Readonly<Record<string, CudaParam>>;

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
  /**
   * Threads in array order, as `wp.launch(dim=)`: one to three dimensions. TypeScript kernels include the tail guard, and their `block` has
   * no further axes.
   */
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
 * - `plain` (CUDA C++ kernels): one argument per parameter; an array is a pointer, which may be null if it is optional.
 * - `shaped` (TypeScript kernels): an array is a pointer followed by one `int` per dimension. After all parameters follow three
 *   `int` extents, x first: the launch's threads, or 2^31-1 for a launch by grid and block. A kernel with grid barriers has one
 *   more `int`: the stream's slot.
 */
export type KernelAbi = 'plain' | 'shaped';

/**
 * What a kernel does to an array that it declares as `output`, as far as an earlier failure of the array is concerned.
 * - `whole`: it writes every element. A promise: of CUDA C++ source, and of the library's own kernels.
 * - `own`: each thread writes the element of its own indices, and no thread reads what it has not written.
 * - `first`: the first thread writes element 0, and no thread reads what it has not written.
 * - `part`: it may leave elements as they are.
 * - `read`: it may read elements that it has not written.
 */
export type ArrayOutput = 'whole' | 'own' | 'first' | 'part' | 'read';

/** The key that only objects made by `kernel()`, `cudaKernel()` and modules have. Two installs in one process share it. */
export const MADE: unique symbol = Symbol.for('millrace.kernel') as never;

/**
 * A kernel, not tied to a device: it is built for each device at its first launch there, or by `device.compile`. `CUfunction`,
 * `cupy.RawKernel`, `wp.Kernel`. Only `kernel()`, `cudaKernel()` and modules make kernels; a launch throws ArgumentError for anything
 * else.
 */
export interface Kernel<P extends CudaParams = CudaParams> {
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
  /** @internal Of each `output` parameter; absent if all are 'whole'. */
  readonly outputs?: Readonly<Record<string, ArrayOutput>>;
  /** @internal Its threads wait for those of their block, so a launch by threads has whole blocks. */
  readonly syncsBlock?: boolean;
  /** @internal The module of the kernel, if it has one. */
  readonly module?: ModuleSource;
  /** @internal The declared limit of threads per block, if there is one. */
  readonly maxThreadsPerBlock?: number;
}

/** Whether `kernel()`, `cudaKernel()` or a module made it. */
export function isKernel(value: unknown): value is Kernel {
  return typeof value === 'object' && value !== null && (value as Partial<Kernel>)[MADE] === true;
}

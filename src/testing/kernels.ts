// Launches on a test device: a JavaScript function in place of the kernel, and its duration.
import { badArgument, show } from '../core/base/arguments.js';
import { DTYPES, type DType, type HostOf, type HostValue, type Scalar } from '../core/elements/dtype.js';
import { numberOf16 } from '../core/elements/scalar-bits.js';
import { type ArrayParam, type Kernel, MADE, type Params } from '../core/kernels/kernel.js';
import { Access, LaunchArg, LaunchRecord } from '../protocol/protocol.gen.js';
import { type Block, type Effect, NO_EFFECT } from './memory.js';

/** The arguments of a launch that `run` gets: typed arrays with the elements in flat order, and the values of scalars. */
export type TestKernelArgs<P extends Params> = {
  readonly [K in keyof P]: P[K] extends ArrayParam<infer D> ? HostOf<ArrayBuffer>[D] : P[K] extends Scalar<infer D> ? HostValue<D> : never;
};

/** The size of a launch. */
export interface TestLaunch {
  /** Blocks, x first: `gridDim`. */
  readonly grid: readonly [x: number, y: number, z: number];
  /** Threads of a block, x first: `blockDim`. */
  readonly block: readonly [x: number, y: number, z: number];
  /** The threads along each axis, x first: those of `threads`, or all threads of the grid for a launch by grid and block. */
  readonly threads: readonly [x: number, y: number, z: number];
}

/** What a launch does on a test device. */
export interface TestKernelOptions<P extends Params> {
  /** Virtual milliseconds that a launch takes. Default 0. */
  readonly ms?: number | ((launch: TestLaunch) => number);
  /**
   * Called once for each launch, at the end of its time, to change the arrays as the kernel would. If it throws, the launch fails with a
   * LaunchError with the same message. Default: the launch changes nothing.
   */
  readonly run?: (args: TestKernelArgs<P>, launch: TestLaunch) => void;
}

/** A kernel and what it does on a test device, made by `testKernel`. */
export interface TestKernel {
  /** The kernel. */
  readonly kernel: Kernel;
  /** @internal */
  readonly opts: TestKernelOptions<Params>;
}

/**
 * Defines what launches of a kernel do on a test device, which compiles no kernels. Throws ArgumentError if `kernel` is not a kernel, `run`
 * not a function, or `ms` not a number of at least 0 or a function.
 * @example testKernel(square, { ms: 2, run: ({ x }) => x.forEach((value, i) => (x[i] = value * value)) })
 */
export function testKernel<P extends Params>(kernel: Kernel<P>, opts: TestKernelOptions<P> = {}): TestKernel {
  if (typeof kernel !== 'object' || kernel === null || !kernel[MADE])
    throw badArgument('kernel', kernel, `${show(kernel)} is not a kernel.`);
  const { ms = 0, run } = opts;
  if (typeof ms !== 'function') checkMs('ms', ms);
  if (run !== undefined && typeof run !== 'function') throw badArgument('run', run, `run (${show(run)}) is not a function.`);
  return { kernel, opts: opts as unknown as TestKernelOptions<Params> };
}

/** Checks a duration that the user gave or that their function returned. */
export function checkMs(argument: string, ms: unknown): number {
  if (typeof ms === 'number' && ms >= 0 && ms < Number.POSITIVE_INFINITY) return ms;
  throw badArgument(argument, ms, `${argument} (${show(ms)}) is not a number of milliseconds of at least 0.`, 0);
}

type Three = readonly [x: number, y: number, z: number];

/** The failure of a launch whose kernel has no `testKernel`. */
export class Unbuilt extends Error {
  readonly kernel: number;

  constructor(kernel: number) {
    super('The test device does not know the kernel.');
    this.kernel = kernel;
  }
}

/** The effect of a launch whose kernel has no `testKernel`. */
export function unbuiltEffect(kernel: number): Effect {
  const run = (): never => {
    throw new Unbuilt(kernel);
  };
  return { ...NO_EFFECT, run };
}

/** A launch record, decoded. */
export interface Launch {
  readonly launch: TestLaunch;
  readonly effect: Effect;
}

/** Undefined while memory that the record names is not allocated. */
export function decodeLaunch(known: TestKernel, view: DataView, find: (handle: number) => Block | undefined): Launch | undefined {
  const { kernel, opts } = known;
  const isShaped = kernel.abi === 'shaped';
  const three = (at: number): Three => [view.getUint32(at, true), view.getUint32(at + 4, true), view.getUint32(at + 8, true)];
  const [grid, block] = [three(LaunchRecord.GRID_X), three(LaunchRecord.BLOCK_X)];
  const args: Record<string, unknown> = {};
  const reads: Block[] = [];
  const writes: Block[] = [];
  let entry = 0;
  const nextAt = (): number => LaunchRecord.BYTE_SIZE + entry++ * LaunchArg.BYTE_SIZE;
  const nextInt = (): number => view.getInt32(nextAt() + LaunchArg.VALUE, true);
  for (const [name, param] of Object.entries(kernel.params)) {
    const at = nextAt();
    if (param.kind === 'scalar') {
      args[name] = readScalar(view, at + LaunchArg.VALUE, param.dtype);
      continue;
    }
    const memory = find(view.getUint32(at + LaunchArg.HANDLE, true));
    if (memory === undefined) return undefined;
    const { bytes } = memory;
    const { make, byteSize } = DTYPES[param.dtype];
    const offset = Number(view.getBigUint64(at + LaunchArg.VALUE, true));
    let length = Math.floor((bytes.length - offset) / byteSize);
    if (isShaped) for (let axis = (length = 1); axis <= param.rank; axis++) length *= nextInt();
    args[name] = new make(bytes.buffer, bytes.byteOffset + offset, length);
    const access = view.getUint8(at + LaunchArg.ACCESS);
    if ((access & Access.READ) !== 0) reads.push(memory);
    if ((access & Access.WRITE) !== 0) writes.push(memory);
  }
  const most = grid.map((blocks, axis) => blocks * (block[axis] as number)) as unknown as Three;
  const extent = isShaped ? ([nextInt(), nextInt(), nextInt()] as const) : most;
  const threads = most.map((count, axis) => Math.min(count, extent[axis] as number)) as unknown as Three;
  const launch = { grid, block, threads };
  return { launch, effect: { reads, writes, isWhole: false, run: () => opts.run?.(args as never, launch) } };
}

function readScalar(view: DataView, at: number, dtype: DType): unknown {
  switch (dtype) {
    case 'bool':
      return view.getUint8(at) !== 0;
    case 'f32':
      return view.getFloat32(at, true);
    case 'f64':
      return view.getFloat64(at, true);
    case 'i64':
      return view.getBigInt64(at, true);
    case 'u64':
      return view.getBigUint64(at, true);
    case 'f16':
    case 'bf16':
      return numberOf16(dtype, view.getUint16(at, true));
    case 'i8':
    case 'i16':
    case 'i32':
      return view.getInt32(at, true);
    default:
      return view.getUint32(at, true);
  }
}

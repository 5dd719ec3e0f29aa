// Launches on a test device: a JavaScript function in place of the kernel, and its duration.
import { badArgument, show } from '../core/base/arguments.js';
import { DTYPES } from '../core/elements/dtype.js';
import { type ArrayParam, type CudaParams, isKernel, type Kernel } from '../core/kernels/kernel.js';
import { Access, ArgKind, LaunchArg, LaunchRecord, MemorySpace } from '../protocol/protocol.gen.js';
import { type Block, type Effect, type FindBlock, NO_EFFECT } from './memory.js';
import { type Pointers, readScalar, readValue, type TestValue } from './values.js';

/**
 * The arguments of a launch that `run` gets: typed arrays with the elements in flat order, the values of scalars, objects for structs, lists
 * for vectors, a Uint8Array for bytes, and null for an optional array that the launch does not give.
 */
export type TestKernelArgs<P extends CudaParams> = { readonly [K in keyof P]: TestValue<P[K]> };

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
export interface TestKernelOptions<P extends CudaParams> {
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
  readonly opts: TestKernelOptions<CudaParams>;
}

/**
 * Defines what launches of a kernel do on a test device, which compiles no kernels. Throws ArgumentError if `kernel` is not a kernel, `run`
 * not a function, or `ms` not a number of at least 0 or a function.
 * @example testKernel(square, { ms: 2, run: ({ x }) => x.forEach((value, i) => (x[i] = value * value)) })
 */
export function testKernel<P extends CudaParams>(kernel: Kernel<P>, opts: TestKernelOptions<P> = {}): TestKernel {
  if (!isKernel(kernel)) throw badArgument('kernel', kernel, `${show(kernel)} is not a kernel.`);
  const { ms = 0, run } = opts;
  if (typeof ms !== 'function') checkMs('ms', ms);
  if (run !== undefined && typeof run !== 'function') throw badArgument('run', run, `run (${show(run)}) is not a function.`);
  return { kernel, opts: opts as unknown as TestKernelOptions<CudaParams> };
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

/** `device`: of the launch. Undefined while memory that the record names is not allocated. */
export function decodeLaunch(known: TestKernel, view: DataView, device: number, find: FindBlock): Launch | undefined {
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
  const entries = view.getUint32(LaunchRecord.ARG_COUNT, true);
  const behind = LaunchRecord.BYTE_SIZE + entries * LaunchArg.BYTE_SIZE;
  const valueAt = (at: number): number => Number(view.getBigUint64(at + LaunchArg.VALUE, true));
  const isOf = (at: number, kind: ArgKind): boolean =>
    at >= LaunchRecord.BYTE_SIZE && at < behind && view.getUint8(at + LaunchArg.KIND) === kind;
  /** The number of a memory entry that may have an ELSEWHERE entry before it. */
  const memoryAt = (at: number): number => (isOf(at, ArgKind.ELSEWHERE) ? nextAt() : at);
  /** The elements of a memory entry, from its offset on; undefined while the memory is not allocated. */
  const elementsAt = (at: number, { dtype }: ArrayParam, lengthOf: (most: number) => number): ArrayBufferView | undefined => {
    const before = at - LaunchArg.BYTE_SIZE;
    const isElsewhere = isOf(before, ArgKind.ELSEWHERE);
    const [home, space] = isElsewhere
      ? [view.getUint32(before + LaunchArg.HANDLE, true), view.getUint16(before + LaunchArg.SIZE, true) as MemorySpace]
      : [device, MemorySpace.DEVICE];
    const memory = find(home, space, view.getUint32(at + LaunchArg.HANDLE, true));
    if (memory === undefined) return undefined;
    const access = view.getUint8(at + LaunchArg.ACCESS);
    if ((access & Access.READ) !== 0) reads.push(memory);
    if ((access & Access.WRITE) !== 0) writes.push(memory);
    const { make, byteSize } = DTYPES[dtype];
    const { bytes } = memory;
    const offset = valueAt(at);
    const most = isElsewhere ? valueAt(before) : bytes.length - offset;
    return new make(bytes.buffer, bytes.byteOffset + offset, lengthOf(Math.floor(most / byteSize)));
  };
  for (const [name, param] of Object.entries(kernel.params)) {
    const at = nextAt();
    switch (param.kind) {
      case 'scalar':
        args[name] = readScalar(view, at + LaunchArg.VALUE, param.dtype);
        break;
      case 'array':
      case 'optional': {
        const array = param.kind === 'array' ? param : param.array;
        const lengthOf = (length: number): number => {
          if (isShaped) for (let axis = (length = 1); axis <= array.rank; axis++) length *= nextInt();
          return length;
        };
        const isNull = isOf(at, ArgKind.SCALAR);
        const elements = isNull ? null : elementsAt(memoryAt(at), array, lengthOf);
        if (elements === undefined) return undefined;
        args[name] = elements;
        break;
      }
      // A test device makes no textures.
      case 'texture':
      case 'surface':
        return undefined;
      default: {
        const pointers = new Map<number, number>();
        const isMember = (next: number): boolean => {
          const place = LaunchRecord.BYTE_SIZE + next * LaunchArg.BYTE_SIZE;
          return isOf(place, ArgKind.MEMBER) || (isOf(place, ArgKind.ELSEWHERE) && isMember(next + 1));
        };
        while (isMember(entry)) {
          const member = memoryAt(nextAt());
          pointers.set(view.getUint16(member + LaunchArg.SIZE, true), member);
        }
        let isThere = true;
        const elements: Pointers = (place, array) => {
          const member = pointers.get(place);
          const found = member === undefined ? null : elementsAt(member, array, (length) => length);
          isThere &&= found !== undefined;
          return found;
        };
        args[name] = readValue(view, behind + valueAt(at), 0, param, elements);
        if (!isThere) return undefined;
      }
    }
  }
  const most = grid.map((blocks, axis) => blocks * (block[axis] as number)) as unknown as Three;
  const extent = isShaped ? ([nextInt(), nextInt(), nextInt()] as const) : most;
  const threads = most.map((count, axis) => Math.min(count, extent[axis] as number)) as unknown as Three;
  const launch = { grid, block, threads };
  return { launch, effect: { reads, writes, isWhole: false, run: () => opts.run?.(args as never, launch) } };
}

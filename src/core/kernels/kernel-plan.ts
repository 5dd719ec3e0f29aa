// What a kernel is on one device: its handle, its build, and its parameters in the form that a launch reads.
// Made at the first launch there, or by `device.compile`.
import { Access, MAX_LAUNCH_ARGS } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import type { KernelLimits, NativeDeviceInfo } from '../../protocol/reports.js';
import type { BuildReport } from '../channel/channel.js';
import { DTYPES, type DType } from '../elements/dtype.js';
import type { KernelFacts } from '../timeline/failure-errors.js';
import { type Kernel, MADE, type Param } from './kernel.js';
import type { ModulePlan } from './module-plan.js';

/** How a parameter's value is written. */
export const Form = { ARRAY: 0, F32: 1, F64: 2, I32: 3, U32: 4, OTHER: 5 } as const;
export type Form = (typeof Form)[keyof typeof Form];

export interface PlanParam {
  readonly name: string;
  readonly form: Form;
  readonly dtype: DType;
  readonly byteSize: number;
  /** Arrays. */
  readonly access: number;
  readonly rank: number;
}

const ACCESS = { in: Access.READ, out: Access.WRITE, inout: Access.READ_WRITE } as const;
const FORMS: { readonly [D in DType]?: Form } = { f32: Form.F32, f64: Form.F64, i32: Form.I32, u32: Form.U32 };

const WARP = 32;
/**
 * Before a kernel is built, where its block decides nothing, and else the least: on an H200, of y[i] += a * x[i] over 2^26 elements,
 * blocks of 128, 256, 512 and 1024 threads take 319, 236, 251 and 274 us, and over 2^20 7.1, 4.6, 4.1 and 4.4.
 */
const DEFAULT_BLOCK = 256;
/** A sixteenth is left for a smaller block, which is more often a place for than one that takes the multiprocessor whole. */
const NEARLY = 15 / 16;

export class KernelPlan implements KernelFacts {
  readonly name: string;
  readonly handle: number;
  readonly built: Promise<BuildReport>;
  /** The build failed for a reason that may pass. The next launch gets a new plan. */
  isGivenUp: boolean = false;
  readonly params: readonly PlanParam[];
  readonly parameters: readonly string[];
  readonly arrays: readonly string[];
  readonly assertions: readonly string[];
  /** It is a kernel of this module. */
  readonly module: ModulePlan | undefined;
  readonly isShaped: boolean;
  readonly indexRank: number;
  /** Threads a block of it can have on this device: what is known, which is more when it was built. */
  maxThreadsPerBlock: number;
  /** Dynamic shared memory a block of it can have on this device, in the same way. */
  maxSharedBytes: number;
  /** The default block of a launch in one, two and three dimensions. */
  blocks: readonly (readonly [x: number, y: number, z: number])[];
  /** Its blocks wait for each other. */
  readonly syncsGrid: boolean;
  /** Blocks of a cooperative launch, however small they are: known when it was built. */
  maxBlocksTogether: number = Number.POSITIVE_INFINITY;
  /** Of blocks of one warp, of two, and so on, without dynamic shared memory. Empty before, and where their size decides nothing. */
  #blocksTogether: readonly number[] = [];
  readonly #multiprocessors: number;
  readonly #isOfBlocks: boolean;

  constructor(kernel: Kernel, handle: number, device: NativeDeviceInfo, built: Promise<BuildReport>, module?: ModulePlan) {
    this.name = kernel.name;
    this.handle = handle;
    this.built = built;
    this.module = module;
    this.params = Object.entries(kernel.params).map(([name, param]) => planParam(name, param));
    this.parameters = this.params.map((param) => param.name);
    this.arrays = kernel.build.arrays ?? [];
    this.assertions = kernel.build.assertions ?? [];
    this.isShaped = kernel.abi === 'shaped';
    this.indexRank = kernel.indexRank;
    this.maxThreadsPerBlock = Math.min(kernel.maxThreadsPerBlock ?? device.maxThreadsPerBlock, device.maxThreadsPerBlock);
    this.maxSharedBytes = device.maxSharedBytes;
    this.blocks = defaultBlocks(DEFAULT_BLOCK, this.maxThreadsPerBlock);
    this.syncsGrid = kernel.build.syncsGrid ?? false;
    this.#multiprocessors = device.multiprocessors;
    this.#isOfBlocks = kernel.build.isOfBlocks ?? false;
  }

  /** It was built: later launches are held to its own limits at the call, and have the block that suits it. */
  learn(limits: KernelLimits): void {
    this.maxThreadsPerBlock = Math.min(this.maxThreadsPerBlock, limits.maxThreadsPerBlock);
    this.maxSharedBytes = limits.maxSharedBytes;
    const size = this.#isOfBlocks ? DEFAULT_BLOCK : fullestBlock(limits.blocksAtOnce);
    this.blocks = defaultBlocks(size, this.maxThreadsPerBlock);
    this.maxBlocksTogether = limits.maxBlocksTogether;
    this.#blocksTogether = limits.blocksAtOnce.map((blocks) => blocks * this.#multiprocessors);
  }

  /** Blocks of so many threads that a cooperative launch has at most, as far as it is known before the device looks at its shared memory. */
  blocksTogether(threads: number): number {
    return Math.min(this.maxBlocksTogether, this.#blocksTogether[Math.ceil(threads / WARP) - 1] ?? Number.POSITIVE_INFINITY);
  }
}

/** The entries of a kernel's launch record, which must not be more than fit one. */
export function checkKernel(kernel: Kernel): void {
  if (typeof kernel !== 'object' || kernel === null || !kernel[MADE]) {
    throw badArgument('kernel', kernel, `The kernel (${show(kernel)}) was not made by kernel(), cudaKernel() or a module.`);
  }
  let entries = kernel.abi === 'shaped' ? (kernel.build.syncsGrid ? 4 : 3) : 0;
  for (const param of Object.values(kernel.params)) entries += param.kind === 'array' && kernel.abi === 'shaped' ? 1 + param.rank : 1;
  if (entries > MAX_LAUNCH_ARGS) {
    const message = `The arguments of kernel ${kernel.name} (${entries}, array dimensions included) exceed the limit of a launch (${MAX_LAUNCH_ARGS}).`;
    throw badArgument('kernel', kernel, message, MAX_LAUNCH_ARGS);
  }
}

function planParam(name: string, param: Param): PlanParam {
  const { byteSize } = DTYPES[param.dtype];
  return param.kind === 'array'
    ? { name, form: Form.ARRAY, dtype: param.dtype, byteSize, access: ACCESS[param.access], rank: param.rank }
    : { name, form: FORMS[param.dtype] ?? Form.OTHER, dtype: param.dtype, byteSize, access: 0, rank: 0 };
}

/**
 * The smallest block that fills a multiprocessor nearly as well as any. `cuOccupancyMaxPotentialBlockSize` takes the largest of the
 * fullest; but of small ones a small launch reaches more multiprocessors, and each makes room when its own last thread ends.
 */
function fullestBlock(blocksAtOnce: readonly number[]): number {
  const least = DEFAULT_BLOCK / WARP;
  const warpsAtOnce = blocksAtOnce.map((blocks, at) => (at + 1 < least ? 0 : blocks * (at + 1)));
  const enough = NEARLY * Math.max(...warpsAtOnce);
  const found = warpsAtOnce.findIndex((warps) => warps > 0 && warps >= enough);
  return found < 0 ? DEFAULT_BLOCK : (found + 1) * WARP;
}

/** Warps lie along x, an even number of them in two layers. */
function defaultBlocks(size: number, limit: number): KernelPlan['blocks'] {
  const warps = size / WARP;
  const layers = warps % 2 === 0 ? 2 : 1;
  return [fit([size, 1, 1], limit), fit([WARP, warps, 1], limit), fit([WARP, warps / layers, layers], limit)];
}

/** Halves the outer dimensions first until the block is small enough; warps lie along x. */
function fit(block: [number, number, number], limit: number): readonly [number, number, number] {
  for (const axis of [2, 1, 0] as const) {
    while (block[0] * block[1] * block[2] > limit && block[axis] > 1) block[axis] = block[axis] >> 1;
  }
  return block;
}

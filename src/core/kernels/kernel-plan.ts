// A kernel on one device: its handle, its build, and its parameters in the form that a launch reads. It is made at the first
// launch on the device, or by `device.compile`.
import { Access, MAX_LAUNCH_ARGS } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import type { KernelLimits, NativeDeviceInfo } from '../../protocol/reports.js';
import type { BuildReport, Channel } from '../channel/channel.js';
import type { FaultPlaces, FaultSource } from '../channel/build-spec.js';
import { type ArrayKind, NO_KIND } from './array-kinds.js';
import { DTYPES, type DType } from '../elements/dtype.js';
import type { KernelFacts } from '../timeline/failure-errors.js';
import { DEFAULT_BLOCK, defaultBlocks, type DefaultBlocks, fullestBlock, WARP } from './default-block.js';
import { type ArrayOutput, type CudaParam, isKernel, type Kernel } from './kernel.js';
import { LaunchGeometry } from './launch-geometry.js';
import type { ModulePlan } from './module-plan.js';
import type { ArrayParam } from './params.js';
import { bytesOfAll, type Field, pathAt, type ValueParam } from './value-params.js';

/** How a parameter's value is encoded. */
export const Form = { ARRAY: 0, F32: 1, F64: 2, I32: 3, U32: 4, OTHER: 5, VALUE: 6, TEXTURE: 7, SURFACE: 8 } as const;
export type Form = (typeof Form)[keyof typeof Form];

export interface PlanParam {
  readonly name: string;
  readonly form: Form;
  readonly dtype: DType;
  readonly byteSize: number;
  /** The Access of an array parameter. */
  readonly access: number;
  /** Of a parameter whose access is WRITE. */
  readonly output: ArrayOutput;
  readonly rank: number;
  /** The kind of the array that the parameter took last. */
  taken: ArrayKind;
  /** The launch may pass null. */
  readonly isOptional: boolean;
  /** The struct, vector or bytes of Form.VALUE. */
  readonly value: ValueParam | undefined;
  /** Where its bytes are behind the entries of the record. */
  readonly place: number;
}

const ACCESS = { in: Access.READ, out: Access.WRITE, inout: Access.READ_WRITE } as const;
const FORMS: { readonly [D in DType]?: Form } = { f32: Form.F32, f64: Form.F64, i32: Form.I32, u32: Form.U32 };

/** A program that gives an array twice does so at its first launches. */
const MOST_LOOKS = 256;

/** Parameters by value begin at multiples of it. */
const WORD = 8;
/** Of a texture or surface: its value, and the memory behind it. */
const TEXTURE_ENTRIES = 2;

export class KernelPlan implements KernelFacts {
  readonly name: string;
  readonly handle: number;
  readonly built: Promise<BuildReport>;
  /** Launches wait for the build. */
  isBuilding: boolean = true;
  /** The build failed for a temporary reason. The next launch gets a new plan. */
  isGivenUp: boolean = false;
  /** How many of the next launches are looked at for arrays that are given twice. */
  looks: number = MOST_LOOKS;
  readonly params: readonly PlanParam[];
  /** The bytes behind the entries of a launch, in which its structs, vectors and bytes are. */
  readonly valueBytes: number;
  readonly parameters: readonly string[];
  readonly arrays: readonly string[];
  readonly assertions: readonly string[];
  /** The kernel's module, if it has one. */
  readonly module: ModulePlan | undefined;
  readonly isShaped: boolean;
  readonly indexRank: number;
  /** The most threads per block: the device's limit, and after the build the kernel's own. */
  maxThreadsPerBlock: number;
  /** The most bytes of dynamic shared memory per block: the device's limit, and after the build the kernel's own. */
  maxSharedBytes: number;
  /** The default block of a launch in one, two and three dimensions. */
  blocks: DefaultBlocks;
  /** The shape of the launch that is being submitted, and until the next launch of the kernel that of the latest. */
  readonly geometry: LaunchGeometry = new LaunchGeometry();
  /** Its blocks wait for each other. */
  readonly syncsGrid: boolean;
  /** Its threads wait for those of their block: a launch by threads has whole blocks. */
  readonly syncsBlock: boolean;
  /** A library that itself reaches memory of other devices. */
  readonly isOfLibrary: boolean;
  /** The most blocks of a cooperative launch, of any size: known after the build. */
  maxCooperativeBlocks: number = Number.POSITIVE_INFINITY;
  /** The same for blocks of one warp, two warps, and so on, without dynamic shared memory. Empty before the build, or if the size has no effect. */
  #cooperativeBlocks: readonly number[] = [];
  readonly #multiprocessors: number;
  readonly #isOfBlocks: boolean;
  readonly #channel: Channel;

  constructor(kernel: Kernel, handle: number, channel: Channel, built: Promise<BuildReport>, module?: ModulePlan) {
    const device = channel.info;
    this.#channel = channel;
    this.name = kernel.name;
    this.handle = handle;
    this.built = built;
    this.module = module;
    let valueBytes = 0;
    this.params = Object.entries(kernel.params).map(([name, param]) => {
      const made = planParam(name, param, valueBytes, kernel.outputs?.[name]);
      if (made.value !== undefined) valueBytes += Math.ceil(made.byteSize / WORD) * WORD;
      return made;
    });
    this.valueBytes = valueBytes;
    this.parameters = this.params.map((param) => param.name);
    this.arrays = kernel.build.arrays ?? [];
    this.assertions = kernel.build.assertions ?? [];
    this.isShaped = kernel.abi === 'shaped';
    this.indexRank = kernel.indexRank;
    this.maxThreadsPerBlock = Math.min(kernel.maxThreadsPerBlock ?? device.maxThreadsPerBlock, device.maxThreadsPerBlock);
    this.maxSharedBytes = device.maxSharedBytes;
    this.blocks = defaultBlocks(DEFAULT_BLOCK, this.maxThreadsPerBlock);
    this.syncsBlock = kernel.syncsBlock ?? false;
    this.syncsGrid = kernel.build.syncsGrid ?? false;
    this.isOfLibrary = kernel.build.isOfLibrary ?? false;
    this.#multiprocessors = device.multiprocessors;
    this.#isOfBlocks = kernel.build.isOfBlocks ?? false;
  }

  /**
   * What is at this byte of an argument of the compiled kernel: a parameter, or a field of one. With the `shaped` ABI an array has one
   * argument per dimension more.
   */
  parameterOf(argument: number, byte: number): string | undefined {
    let next = 0;
    const found = this.params.find((param) => (next += this.isShaped && param.form === Form.ARRAY ? 1 + param.rank : 1) > argument);
    return found && `${found.name}${found.value === undefined ? '' : pathAt(found.value, byte)}`;
  }

  locate(places: FaultPlaces): Promise<FaultSource> {
    return this.#channel.locate(this.handle, places);
  }

  /** Takes the limits of the built kernel: later launches are checked against them at the call, and use the best block size. */
  learn(limits: KernelLimits): void {
    this.isBuilding = false;
    this.geometry.forget();
    this.maxThreadsPerBlock = Math.min(this.maxThreadsPerBlock, limits.maxThreadsPerBlock);
    this.maxSharedBytes = limits.maxSharedBytes;
    const size = this.#isOfBlocks ? DEFAULT_BLOCK : fullestBlock(limits.blocksAtOnce);
    this.blocks = defaultBlocks(size, this.maxThreadsPerBlock);
    this.maxCooperativeBlocks = limits.maxCooperativeBlocks;
    this.#cooperativeBlocks = limits.blocksAtOnce.map((blocks) => blocks * this.#multiprocessors);
  }

  /** The most blocks of this many threads in a cooperative launch. The device lowers the limit for dynamic shared memory. */
  cooperativeBlocks(threads: number): number {
    return Math.min(this.maxCooperativeBlocks, this.#cooperativeBlocks[Math.ceil(threads / WARP) - 1] ?? Number.POSITIVE_INFINITY);
  }
}

/**
 * Throws ArgumentError for a value that is not a kernel, for a kernel whose arguments do not fit one launch record, and for one whose
 * parameters are larger than the device takes.
 */
export function checkKernel(kernel: Kernel, { maxParameterBytes }: NativeDeviceInfo): void {
  if (!isKernel(kernel)) {
    throw badArgument('kernel', kernel, `The kernel (${show(kernel)}) was not made by kernel(), cudaKernel() or a module.`);
  }
  let entries = kernel.abi === 'shaped' ? (kernel.build.syncsGrid ? 4 : 3) : 0;
  for (const param of Object.values(kernel.params)) {
    entries += param.kind === 'array' && kernel.abi === 'shaped' ? 1 + param.rank : 1;
    if (param.kind === 'struct') entries += pointersOf(param);
    if (param.kind === 'texture' || param.kind === 'surface') entries += TEXTURE_ENTRIES - 1;
  }
  if (entries > MAX_LAUNCH_ARGS) {
    const message = `The arguments of kernel ${kernel.name} (${entries}, array dimensions included) exceed the limit of a launch (${MAX_LAUNCH_ARGS}).`;
    throw badArgument('kernel', kernel, message, MAX_LAUNCH_ARGS);
  }
  const bytes = kernel.abi === 'plain' ? bytesOfAll(kernel.params) : 0;
  if (bytes > maxParameterBytes) {
    const message = `The parameters of kernel ${kernel.name} (${bytes} bytes) exceed the limit of the device (${maxParameterBytes} bytes).`;
    throw badArgument('kernel', bytes, message, maxParameterBytes);
  }
}

function pointersOf(field: Field): number {
  if (field.kind === 'array' || field.kind === 'optional') return 1;
  if (field.kind === 'texture' || field.kind === 'surface') return TEXTURE_ENTRIES;
  if (field.kind === 'fixed') return field.length * pointersOf(field.element);
  return field.kind === 'struct' ? Object.values(field.fields).reduce((sum, one) => sum + pointersOf(one), 0) : 0;
}

function planParam(name: string, param: CudaParam, place: number, output?: ArrayOutput): PlanParam {
  switch (param.kind) {
    case 'array':
      return arrayPlanParam(name, param, false, output);
    case 'optional':
      return arrayPlanParam(name, param.array, true);
    case 'scalar': {
      const { dtype } = param;
      return plainParam(name, FORMS[dtype] ?? Form.OTHER, dtype, DTYPES[dtype].byteSize);
    }
    case 'texture':
    case 'surface':
      return plainParam(name, param.kind === 'texture' ? Form.TEXTURE : Form.SURFACE, 'u64', param.byteSize);
    default:
      return { ...plainParam(name, Form.VALUE, 'u8', param.byteSize), value: param, place };
  }
}

/** A parameter that is neither an array nor behind the entries. */
function plainParam(name: string, form: Form, dtype: DType, byteSize: number): PlanParam {
  return {
    name,
    form,
    dtype,
    byteSize,
    access: 0,
    output: 'whole',
    rank: 0,
    taken: NO_KIND,
    isOptional: false,
    value: undefined,
    place: 0,
  };
}

/** An array parameter, or a pointer in a struct, whose name is then its path. */
export function arrayPlanParam(
  name: string,
  { dtype, access, rank }: ArrayParam,
  isOptional: boolean,
  output: ArrayOutput = 'whole',
): PlanParam {
  return { ...plainParam(name, Form.ARRAY, dtype, DTYPES[dtype].byteSize), access: ACCESS[access], output, rank, isOptional };
}

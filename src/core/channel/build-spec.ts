// The input of the kernel builder: plain data, independent of how the kernel was defined.
import type { CollectiveReason } from '../base/errors.js';

/** The parameter number of a fault report about a failed assertion; its index is then the assertion's number. */
export const ASSERTION_PARAMETER = 0xffff_ffff;

/** The parameter number of a fault report about a collective that did not end; its dimension is then an index into COLLECTIVE_FAULTS. */
export const COLLECTIVE_PARAMETER = 0xffff_fffc;
/** Why a communicator does not work, in the order of `CommunicatorFault` in native/cuda/communicator.h. */
export const COLLECTIVE_FAULTS: readonly { readonly reason: CollectiveReason; readonly text: string }[] = [
  { reason: 'failed', text: 'it failed' },
  { reason: 'aborted', text: 'it was aborted' },
  { reason: 'failed', text: 'NCCL reported a failure' },
  { reason: 'lost', text: 'the device of a rank is lost' },
  { reason: 'closed', text: 'it is closed' },
  { reason: 'lost', text: 'a rank is gone' },
  { reason: 'timeout', text: 'a rank did not come in time' },
];
/** The codes of NCCL, `ncclResult_t`. */
export const NCCL_CODES: readonly string[] = [
  'ncclSuccess',
  'ncclUnhandledCudaError',
  'ncclSystemError',
  'ncclInternalError',
  'ncclInvalidArgument',
  'ncclInvalidUsage',
  'ncclRemoteError',
  'ncclInProgress',
];

/** The parameter number of a fault report about a refused launch from a kernel; its dimension is then an index into REFUSED_LAUNCH. */
export const LAUNCH_PARAMETER = 0xffff_fffe;
/** The exceeded limits, in the order of `Refusal` in native/cpu/dynamic_parallelism.h. */
export const REFUSED_LAUNCH: readonly string[] = [
  'launches that are pending',
  'threads of a block',
  'threads along an axis of a block',
  'blocks along an axis of the grid',
  'bytes of dynamic shared memory',
];
/** The memory that an argument may not point into, in the order of the further refusals; their index is the number of the argument. */
export const REFUSED_ARGUMENT: readonly string[] = [
  'shared memory of the launching block',
  'local memory of the launching thread or shared memory of its block',
];

/**
 * The parameter number of a fault report about an aborted kernel; its dimension is then an index into KERNEL_FAULTS, its index the address,
 * or the limit in bytes.
 */
export const KERNEL_FAULT_PARAMETER = 0xffff_fffd;
/** Why the kernel was aborted, in the order of `KernelFault` in native/cpu/kernel_fault.h; `#` stands for the index. */
export const KERNEL_FAULTS: readonly string[] = [
  'stopped',
  'overflowed the stack of its thread (# bytes)',
  'exceeded the memory for its threads (# bytes)',
  'accessed an address that is not mapped for that access (0x#)',
  'accessed a vector at an address that is not aligned for it, or used a non-canonical address',
  'reached a trap',
  'waited in a loop for another thread, or for another launch, for more than # ms (threads of a block run one after the other between barriers; of all launches with such loops, 1,024 blocks run at once)',
  'accessed memory before or behind its # bytes of dynamic shared memory',
  'did not run, because the system refused the signal handler, the signal stack or the memory that it needs',
  'accessed memory before or behind its __shared__ or local variables',
];
/**
 * The index in KERNEL_FAULTS of an access outside an array. The index of the report is the distance from the
 * array's first byte, and instead of the thread it has the number of the parameter (or NO_PARAMETER) and the array's size in two halves.
 */
export const GUARD_FAULT: number = KERNEL_FAULTS.length;
/**
 * The index in KERNEL_FAULTS of a race of shared memory. The report's index is the byte, and instead of the thread it has the positions of
 * both threads and what the accesses are (native/cpu/grid_call.cpp).
 */
export const RACE_FAULT: number = KERNEL_FAULTS.length + 1;
/**
 * The index in KERNEL_FAULTS of threads of a tile that called `shfl` with different source ranks. The report's index is the line of the first
 * thread's call, and instead of the thread it has the positions of both threads and the line of the second one's call. Its places are the
 * ranks.
 */
export const SHUFFLE_FAULT: number = KERNEL_FAULTS.length + 2;
/** The position in a race of code that runs once for all threads of a block. */
export const EVERY_THREAD = 0xffff_ffff;
/** No parameter of the kernel is, or holds, a pointer into the array. */
export const NO_PARAMETER = 0xffff_ffff;

/** Two accesses to shared memory by a kernel of a CPU device, as a fault report has them. */
export interface RacePlaces {
  /** The offsets of the instructions behind the accesses in the kernel's image. */
  readonly instructions: readonly [first: number, second: number];
  /** The byte of the image's variables; undefined for dynamic shared memory. */
  readonly byte: number | undefined;
}

/** Two calls in a kernel of a CPU device, by their lines in the compiled source. */
export interface CallPlaces {
  readonly lines: readonly [first: number, second: number];
}

/** What two threads of a kernel did, as a fault report has it. */
export type FaultPlaces = RacePlaces | CallPlaces;

/** The same in the source. */
export interface FaultSource {
  /** `file:line` of each access or call; undefined where it is not known. */
  readonly lines: readonly [first: string | undefined, second: string | undefined];
  /** Why lines are not known. */
  readonly reason: string | undefined;
  /** Of a race: the variable and its byte. */
  readonly variable: { readonly name: string; readonly byte: number } | undefined;
}

/** Maps lines of the compiled source to lines of the user's file, so that compiler messages point there. */
export interface SourceMapping {
  /** Name shown in messages: the user's file, or the kernel's name when it is not known. */
  readonly file: string;
  /** 1-based line of the user's file for each line of `BuildSpec.source` (0: generated, no counterpart). */
  readonly lines: readonly number[];
  /** For each line: 0 if it is a line of `file`, otherwise the 1-based index of its file in `files`. Absent if all are of `file`. */
  readonly of?: readonly number[];
  readonly files?: readonly string[];
}

/** A field of a struct by its path: `origin.x`. */
export interface FieldCheck {
  readonly path: string;
  readonly offset: number;
  readonly byteSize: number;
  /** The element type of a scalar, 'pointer', or undefined for other fields. */
  readonly type: string | undefined;
}

/** The layout of a parameter by value. */
export interface ValueCheck {
  readonly byteSize: number;
  /** Undefined if any will do. */
  readonly align: number | undefined;
  /** Those whose names a struct can have. The compiler compares those that the struct does have. */
  readonly fields: readonly FieldCheck[];
}

/** A parameter of a CUDA C++ kernel whose type only the compiler can check. */
export interface ParameterCheck {
  readonly name: string;
  /** Its position in the list, from 0. */
  readonly at: number;
  /** Name of its element type: 'f32'; of a parameter by value, how messages describe it. */
  readonly dtype: string;
  /** Undefined for what is no array. */
  readonly access: 'in' | 'out' | 'inout' | undefined;
  /** Set for a parameter by value that is no scalar. */
  readonly value?: ValueCheck;
  /** The parameter as written in the source; undefined if the preprocessor chooses between lists. */
  readonly text: string | undefined;
}

export interface ParameterChecks {
  /** How many parameters the kernel has. */
  readonly count: number;
  /** The line of the source where its list begins. */
  readonly line: number;
  readonly list: readonly ParameterCheck[];
}

/** Element types of a plan, in the order of `PlanType` in native/hal/library_plan.h. */
export const PLAN_TYPES = ['f32', 'f64', 'f16', 'bf16'] as const;

/** The properties of a build that are known before its source is emitted. */
export interface BuildFacts {
  /** The key of built images in place of the source; equal for sources that differ only in the names of local variables. */
  readonly identity?: string;
  /** The kernel's name as the caller gives it, which is its symbol if it is `extern "C"`; empty for a module. */
  readonly entry: string;
  /** The C++ name of a kernel that is not `extern "C"`, valid at the end of the source: `ns::reduce<float, 256>`. */
  readonly path?: string;
  /** The image has all kernels of the source that are no templates, and its variables can be found by name. */
  readonly isModule?: boolean;
  /** Of a module: the C++ names of the instances of kernel templates that its image has besides. */
  readonly instances?: readonly string[];
  /** The kernel's name in messages; for a module, the names of its kernels. */
  readonly name: string;
  /** The kernel of an operation on arrays: the element types of its parameters. Its image may come with the package. */
  readonly operation?: string;
  /** Extra compiler options (NVRTC spelling), from `cudaKernel(..., { options })`. */
  readonly options: readonly string[];
  /** Fused multiply-add allowed (default true). */
  readonly fmad: boolean;
  /** The source has no loop and no barrier. */
  readonly isBounded: boolean;
  /** The two hidden fault parameters follow the kernel's own: `MrFaultSlot* mr_fault, unsigned* mr_fault_word`. */
  readonly isChecked: boolean;
  /** User CUDA C++ source with assertions: on the CPU device its image has the hidden fault parameters and reports line numbers. */
  readonly isAsserting?: boolean;
  /** Its blocks wait for each other, as far as the source shows, so it needs a cooperative launch. */
  readonly syncsGrid?: boolean;
  /** User CUDA C++ source whose kernels launch kernels: linked with the device runtime on a GPU, checked on the CPU device. */
  readonly isLaunching?: boolean;
  /** Its threads use barriers or shared memory and may depend on the block size, so the default block size stays the same after the build. */
  readonly isOfBlocks?: boolean;
  /** Arrays that the kernel declares: a fault report numbers them after the parameters. */
  readonly arrays?: readonly string[];
  /**
   * What a library may do in the place of the kernel, with the same parameters: hal::LibraryPlan as words. The kernel is built where there is
   * no such library, or where it refuses.
   */
  readonly plan?: Float64Array;
  /** There is only the plan: where the library refuses it, launches fail. The library itself reaches memory of other devices. */
  readonly isOfLibrary?: boolean;
  /** The asserted conditions by number; with `isAsserting`, by line. */
  readonly assertions?: readonly string[];
}

/** One build: plain data, so that it can be posted to the device's worker. */
export interface BuildSpec extends BuildFacts {
  /** CUDA C++. */
  readonly source: string;
  /** The source with host code, if it had some. All other characters are at the same positions. */
  readonly original?: string;
  readonly mapping: SourceMapping;
  /** The compiler rejects the source if a parameter has another type than its declaration here. */
  readonly parameterChecks?: ParameterChecks;
  /** For the CPU device: C++ of the same kernel, whose threads run in SIMD lanes. */
  readonly simdSource?: string;
}

/** The build of a TypeScript kernel: its source is emitted only if the cache has no image of it. */
export interface UnwrittenBuild extends BuildFacts {
  readonly identity: string;
  /** The input of the emitter: plain data that only the compiler reads. */
  readonly form: object;
}

export type Build = BuildSpec | UnwrittenBuild;

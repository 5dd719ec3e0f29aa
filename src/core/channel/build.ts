// What a kernel passes to the builder: everything needed to make a module, nothing of where it came from.

/** What a fault report names in place of an array when an assertion failed; its index is then the assertion's number. */
export const ASSERTION_PARAMETER = 0xffff_ffff;

/** What a fault report names in place of an array when a launch from a kernel was refused; its dimension is then one of REFUSED_LAUNCH. */
export const LAUNCH_PARAMETER = 0xffff_fffe;
/** What was beyond its limit, in the order of `Refusal` in native/cpu/launcher.h. */
export const REFUSED_LAUNCH: readonly string[] = [
  'launches that are pending',
  'threads of a block',
  'threads along an axis of a block',
  'blocks along an axis of the grid',
  'bytes of dynamic shared memory',
];

/**
 * What a fault report names in place of an array when a kernel could not go on; its dimension is then one of KERNEL_FAULTS, its index
 * the address, or the limit in bytes.
 */
export const KERNEL_FAULT_PARAMETER = 0xffff_fffd;
/** What the kernel did, in the order of `KernelFault` in native/cpu/kernel_fault.h; `#` stands for the index. */
export const KERNEL_FAULTS: readonly string[] = [
  'stopped',
  'overflowed the stack of its thread (# bytes)',
  'exceeded the memory for the coroutines of its waiting threads (# bytes)',
  'accessed an address that is not mapped for that access (0x#)',
  'accessed a non-canonical address',
  'reached a trap',
];

/** Where a line of the generated or given text comes from, so that compiler messages can point into the user's source. */
export interface SourceMapping {
  /** Name shown in messages: the user's file, or the kernel's name when it is not known. */
  readonly file: string;
  /** 1-based line of the user's file for each line of `BuildSpec.source` (0: generated, no counterpart). */
  readonly lines: readonly number[];
}

/** A parameter of a CUDA C++ text whose type only a compiler knows, and what it is declared as. */
export interface ParameterCheck {
  readonly name: string;
  /** Its position in the list, from 0. */
  readonly at: number;
  /** Name of its element type: 'f32'. */
  readonly dtype: string;
  /** Of an array; undefined of a scalar. */
  readonly access: 'in' | 'out' | 'inout' | undefined;
  /** As it stands in the text; undefined where the preprocessor chooses between lists. */
  readonly text: string | undefined;
}

export interface ParameterChecks {
  /** How many parameters the kernel has. */
  readonly count: number;
  /** The line of the text where its list begins. */
  readonly line: number;
  readonly list: readonly ParameterCheck[];
}

/** What is known of a build before any text of it is written. */
export interface BuildFacts {
  /** What built images are remembered by, in place of the text: the same for texts that differ in the names of locals. */
  readonly identity?: string;
  /** The `extern "C"` function to look up; empty of a module. */
  readonly entry: string;
  /** The image has all of the text's `extern "C"` kernels, and its variables can be found by name. */
  readonly isModule?: boolean;
  /** What the user called the kernel; of a module, its kernels. */
  readonly name: string;
  /** Extra compiler options (NVRTC spelling), from `cudaKernel(..., { options })`. */
  readonly options: readonly string[];
  /** Fused multiply-add allowed (default true). */
  readonly fmad: boolean;
  /** The text has no loop and waits for nothing. */
  readonly isBounded: boolean;
  /** The two hidden fault parameters follow the kernel's own: `MrFaultSlot* mr_fault, unsigned* mr_fault_word`. */
  readonly isChecked: boolean;
  /** CUDA C++ text of the user's that asserts: on the CPU device its image has the hidden fault parameters, and reports lines. */
  readonly isAsserting?: boolean;
  /** Its blocks wait for each other, as far as the text tells: it is launched with `cooperative` only. */
  readonly syncsGrid?: boolean;
  /** CUDA C++ text of the user's whose kernels launch kernels: linked with the device runtime; checked on the CPU device. */
  readonly isLaunching?: boolean;
  /** Threads that work together in blocks: it may be made for blocks of one size, so it keeps that of its first launch. */
  readonly isOfBlocks?: boolean;
  /** Arrays that the text declares: a fault report counts them after the parameters. */
  readonly arrays?: readonly string[];
  /** What the text asserts, in the order of their numbers; by line where it `isAsserting`. */
  readonly assertions?: readonly string[];
}

/** One build: plain data, so that it can be posted to the device's worker. */
export interface BuildSpec extends BuildFacts {
  /** CUDA C++. */
  readonly source: string;
  readonly mapping: SourceMapping;
  /** The compiler refuses the text where these parameters have another type than they are declared with. */
  readonly parameterChecks?: ParameterChecks;
  /** For the CPU device: C++ of the same kernel behind the device's headers, whose threads run side by side in lanes of vectors. */
  readonly lanes?: string;
}

/** One whose texts are written where no image of it is kept: of a TypeScript kernel. */
export interface UnwrittenBuild extends BuildFacts {
  readonly identity: string;
  /** What its compiler writes them from: plain data, which is that compiler's own business. */
  readonly form: object;
}

export type Build = BuildSpec | UnwrittenBuild;

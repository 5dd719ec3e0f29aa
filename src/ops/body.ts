// A kernel that the library writes: its parameters and arguments side by side, so that neither can be forgotten.
import type { DeviceArray } from '../core/api/array.js';
import type { Recorder } from '../core/api/recorder.js';
import { type DType, i32, type Scalar, scalarOf } from '../core/elements/dtype.js';
import { inout, input, type Kernel, type LaunchShape, output, type Param } from '../core/kernels/kernel.js';
import { cudaKernelOfText } from '../compiler/definitions/cuda-kernel.js';
import { kernelOfText } from '../compiler/definitions/kernel.js';
import { STORE_NAMES } from './fused.js';

type ShapeWithBytes = Extract<LaunchShape, { readonly sharedBytes?: number }>;
type ArrayAccess = 'input' | 'output' | 'inout';
const ACCESS: Readonly<Record<ArrayAccess, (type: Scalar, rank?: 1 | 3) => Param>> = { input, output, inout };
/** One object for each parameter of arrays, by its rank. */
const arrayParams: Readonly<Record<ArrayAccess, Readonly<Record<1 | 3, Partial<Record<DType, Param>>>>>> = {
  input: { 1: {}, 3: {} },
  output: { 1: {}, 3: {} },
  inout: { 1: {}, 3: {} },
};

/** Arguments of some names and types, in order: kernels that take them are found by identities, not by a text for each launch. */
class Signature {
  readonly #before: Signature | undefined;
  readonly #name: string;
  readonly #param: Param | undefined;
  readonly #longer: Signature[] = [];
  readonly #kernels: Map<string, Map<string, Kernel>> = new Map();

  constructor(before?: Signature, name: string = '', param?: Param) {
    this.#before = before;
    this.#name = name;
    this.#param = param;
  }

  /** The signature with one more parameter. */
  with(name: string, param: Param): Signature {
    for (const one of this.#longer) if (one.#param === param && one.#name === name) return one;
    const made = new Signature(this, name, param);
    this.#longer.push(made);
    return made;
  }

  get params(): Record<string, Param> {
    return this.#before === undefined ? {} : { ...this.#before.params, [this.#name]: this.#param! };
  }

  kernel(name: string, key: string, made: () => Kernel): Kernel {
    let known = this.#kernels.get(name);
    if (known === undefined) this.#kernels.set(name, (known = new Map<string, Kernel>()));
    let kernel = known.get(key);
    if (kernel === undefined) known.set(key, (kernel = made()));
    return kernel;
  }
}

const EMPTY = new Signature();

/** The arguments of one launch, in the order of the parameters. */
export class Arguments {
  #signature: Signature = EMPTY;
  readonly #values: Record<string, unknown> = {};
  #isChecked = false;
  #isFused = true;

  /** An array, from its first element in memory to its last. Returns where element 0 is. */
  array(name: string, array: DeviceArray, access: ArrayAccess = 'input'): number {
    const [elements, first] = array.span;
    this.#give(name, arrayParam(access, array.dtype, 1), elements);
    return first;
  }

  /** A contiguous array of so many dimensions. Its indices are checked, so a wrong one is a BoundsError. */
  checked(name: string, array: DeviceArray, rank: 1 | 3, access: ArrayAccess = 'input'): void {
    this.#give(name, arrayParam(access, array.dtype, rank), array);
    this.#isChecked = true;
  }

  /** A number of a type. */
  give(name: string, type: Scalar, value: number | bigint): void {
    this.#give(name, type, value);
  }

  /** Whole numbers of 32 bits. */
  numbers(numbers: Readonly<Record<string, number>>): void {
    for (const name in numbers) this.#give(name, i32, numbers[name]);
  }

  /** Each product is rounded before it is added to. */
  rounded(): void {
    this.#isFused = false;
  }

  /** Launches the kernel with this body, which names the thread's members in `thread`; it is written once for each `key`. */
  launch(recorder: Recorder, name: string, key: string, shape: ShapeWithBytes, thread: string, body: () => string): void {
    const made = (): Kernel => {
      const { params } = this.#signature;
      const text = `({ ${Object.keys(params).join(', ')} }, { ${thread}, ${STORE_NAMES}, idiv, min, max, i32, u32, i64, u64, f32, f64 }) => { ${body()} }`;
      return kernelOfText(name, params, text, new Map(), { file: undefined, line: 0 }, this.#isChecked, this.#isFused);
    };
    recorder.launch(this.#signature.kernel(name, key, made), labelled(shape, name) as never, this.#values as never);
  }

  /** Launches the kernel `entry` of a CUDA C++ text, whose parameters are in the order of the arguments. */
  launchCuda(
    recorder: Recorder,
    name: string,
    key: string,
    grid: readonly [x: number, y: number],
    block: number,
    entry: string,
    text: () => string,
  ): void {
    const made = (): Kernel => cudaKernelOfText(entry, this.#signature.params, text());
    recorder.launch(this.#signature.kernel(entry, key, made), { grid, block, label: name } as never, this.#values as never);
  }

  #give(name: string, param: Param, value: unknown): void {
    this.#signature = this.#signature.with(name, param);
    this.#values[name] = value;
  }
}

function arrayParam(access: ArrayAccess, dtype: DType, rank: 1 | 3): Param {
  return (arrayParams[access][rank][dtype] ??= ACCESS[access](scalarOf(dtype), rank));
}

/** The shape with a label. Objects of few forms: each form costs the launch. */
function labelled(shape: ShapeWithBytes, label: string): object {
  const { threads, grid, block, sharedBytes } = shape as Partial<Record<'threads' | 'grid' | 'block' | 'sharedBytes', unknown>>;
  if (sharedBytes !== undefined) return { ...shape, label };
  if (threads === undefined) return { grid, block, label };
  return block === undefined ? { threads, label } : { threads, block, label };
}

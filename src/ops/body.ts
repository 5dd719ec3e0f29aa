// A kernel that the library writes: its parameters and arguments side by side, so that neither can be forgotten.
import type { DeviceArray } from '../core/api/array.js';
import type { Recorder } from '../core/api/recorder.js';
import { i32, type Scalar, scalarOf } from '../core/elements/dtype.js';
import { inout, input, type Kernel, type LaunchShape, output, type Param } from '../core/kernels/kernel.js';
import { cudaKernelOfText } from '../compiler/definitions/cuda-kernel.js';
import { kernelOfText } from '../compiler/definitions/kernel.js';
import { STORE_NAMES } from './fused.js';

const kernels: Map<string, Kernel> = new Map();
type ArrayAccess = 'input' | 'output' | 'inout';
const ACCESS: Readonly<Record<ArrayAccess, (type: Scalar, rank?: 1 | 3) => Param>> = { input, output, inout };

/** The arguments of one launch, in the order of the parameters. */
export class Arguments {
  readonly #params: Record<string, Param> = {};
  readonly #values: Record<string, unknown> = {};
  #isChecked = false;
  #isFused = true;
  /** The names and types of the parameters, by which a kernel is found. */
  #types = '';

  /** An array, from its first element in memory to its last. Returns where element 0 is. */
  array(name: string, array: DeviceArray, access: ArrayAccess = 'input'): number {
    const [elements, first] = array.span;
    this.#give(name, ACCESS[access](scalarOf(array.dtype)), elements);
    return first;
  }

  /** A contiguous array of so many dimensions. Its indices are checked, so a wrong one is a BoundsError. */
  checked(name: string, array: DeviceArray, rank: 1 | 3, access: ArrayAccess = 'input'): void {
    this.#give(name, ACCESS[access](scalarOf(array.dtype), rank), array);
    this.#isChecked = true;
  }

  /** A number of a type. */
  give(name: string, type: Scalar, value: number | bigint): void {
    this.#give(name, type, value);
  }

  /** Whole numbers of 32 bits. */
  numbers(numbers: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(numbers)) this.give(name, i32, value);
  }

  /** Each product is rounded before it is added to. */
  rounded(): void {
    this.#isFused = false;
  }

  /** Launches the kernel with this body, which names the thread's members in `thread`; it is written once for each `key`. */
  launch(
    recorder: Recorder,
    name: string,
    key: string,
    shape: Extract<LaunchShape, { readonly sharedBytes?: number }>,
    thread: string,
    body: () => string,
  ): void {
    this.#launch(recorder, name, key, shape, () => {
      const text = `({ ${Object.keys(this.#params).join(', ')} }, { ${thread}, ${STORE_NAMES}, idiv, min, max, i32, u32, i64, u64, f32, f64 }) => { ${body()} }`;
      return kernelOfText(name, this.#params, text, new Map(), { file: undefined, line: 0 }, this.#isChecked, this.#isFused);
    });
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
    this.#launch(recorder, name, `${entry}|${key}`, { grid, block }, () => cudaKernelOfText(entry, this.#params, text()));
  }

  #launch(recorder: Recorder, name: string, key: string, shape: object, made: () => Kernel): void {
    const full = `${name}|${key}${this.#types}`;
    let kernel = kernels.get(full);
    if (kernel === undefined) kernels.set(full, (kernel = made()));
    recorder.launch(kernel, { ...shape, label: name } as never, this.#values as never);
  }

  #give(name: string, param: Param, value: unknown): void {
    this.#params[name] = param;
    this.#values[name] = value;
    this.#types += `|${name}:${param.dtype}`;
  }
}

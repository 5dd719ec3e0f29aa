// What a module is to the core: a text of which kernels and variables can be asked for. How the text is read is the
// compiler's business.
import type { BuildSpec } from '../channel/build.js';
import type { DType } from '../elements/dtype.js';
import type { Kernel, Params } from './kernel.js';

/** A variable that the text has, or may have. */
export interface ModuleVariable {
  /** With its namespaces. */
  readonly name: string;
  /** Kernels only read it: it is `__constant__`. */
  readonly isConstant: boolean;
}

/** Not tied to a device. What is the same object is the same module: its kernels share variables on each device. */
export interface ModuleText {
  readonly build: BuildSpec;
  /** Of all kernels of the text, those found without a compiler. */
  readonly kernelNames: readonly string[];
  readonly variableNames: readonly string[];
  /** Throws as `cudaKernel` does. */
  kernel<const P extends Params>(name: string, params: P): Kernel<P>;
  /** Throws ArgumentError for a name, type or size that cannot be the text's. */
  variable(name: string, dtype: DType, shape: readonly number[]): ModuleVariable;
}

/** On what `cudaModule()` made, and on nothing else: its text. Two installs in one process agree on it. */
export const MODULE: unique symbol = Symbol.for('millrace.module') as never;

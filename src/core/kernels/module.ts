// A module as core sees it: source code with kernels and variables. src/compiler parses the source.
import type { BuildSpec } from '../channel/build-spec.js';
import type { DType } from '../elements/dtype.js';
import type { CudaParams, Kernel } from './kernel.js';

/** A variable that the source declares, or may declare. */
export interface ModuleVariable {
  /** The name with its namespaces. */
  readonly name: string;
  /** It is `__constant__`: kernels only read it. */
  readonly isConstant: boolean;
}

/** A module, not tied to a device. Kernels of the same object share its variables on each device. */
export interface ModuleSource {
  readonly build: BuildSpec;
  /** The build with the instances of templates that were asked for. From the first call on, `kernel` refuses others. */
  closed(): BuildSpec;
  /** The names of the kernels that the parser finds in the source. */
  readonly kernelNames: readonly string[];
  readonly variableNames: readonly string[];
  /** A kernel of the module. Throws as `cudaKernel` does. */
  kernel<const P extends CudaParams>(name: string, params: P): Kernel<P>;
  /** A variable of the module. Throws ArgumentError for a name, type or size that does not match the source. */
  variable(name: string, dtype: DType, shape: readonly number[]): ModuleVariable;
}

/** The key under which modules made by `cudaModule()` hold their ModuleSource. Two installs in one process share it. */
export const MODULE: unique symbol = Symbol.for('millrace.module') as never;

/** The source of a module, also of one that another copy of this package made; undefined for a kernel. */
export function sourceOf(kernel: unknown): ModuleSource | undefined {
  return typeof kernel === 'object' && kernel !== null && MODULE in kernel
    ? (kernel as { readonly [MODULE]: ModuleSource })[MODULE]
    : undefined;
}

// Checks the parameters of a module's kernels. A module is compiled once, before the library knows which kernels a program declares and
// how, so the compiler compares their parameters in separate passes, which make no image. Kernels that are asked for while a pass waits
// for its turn share it.
//
// Thread: the device's worker, one object a device.
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { CompileError } from '../../core/base/errors.js';
import type { KernelCompiler } from '../compilers/compiler.js';
import { withCompilerSlot } from '../system/compiler-slots.js';
import { setImmediate } from '../../core/base/timers.js';

/** A pass that has not started. */
interface Pass {
  readonly kernels: BuildSpec[];
  /** The errors of the kernels that differ. */
  readonly errors: Promise<ReadonlyMap<BuildSpec, unknown>>;
}

export class KernelChecks {
  /** By the module that their kernels are of. */
  readonly #waiting = new Map<string, Pass>();

  /** `module` identifies the source. Rejects with the CompileError of this kernel alone. */
  async check(compiler: KernelCompiler, module: string, kernel: BuildSpec): Promise<void> {
    let pass = this.#waiting.get(module);
    if (pass === undefined) {
      const kernels: BuildSpec[] = [];
      pass = { kernels, errors: this.#run(compiler, module, kernels) };
      this.#waiting.set(module, pass);
    }
    pass.kernels.push(kernel);
    const errors = await pass.errors;
    if (errors.has(kernel)) throw errors.get(kernel);
  }

  async #run(compiler: KernelCompiler, module: string, kernels: readonly BuildSpec[]): Promise<ReadonlyMap<BuildSpec, unknown>> {
    // The requests of one turn of a program arrive in one turn of the worker.
    await new Promise(setImmediate);
    return withCompilerSlot(async () => {
      this.#waiting.delete(module);
      return errorsOf(compiler, kernels);
    });
  }
}

/** If the kernels do not pass together, each is checked alone. */
async function errorsOf(compiler: KernelCompiler, all: readonly BuildSpec[]): Promise<ReadonlyMap<BuildSpec, unknown>> {
  const errors = new Map<BuildSpec, unknown>();
  for (const kernel of all) {
    const refusal = compiler.refusal?.(kernel);
    if (refusal !== undefined) errors.set(kernel, refusal);
  }
  const kernels = all.filter((kernel) => !errors.has(kernel));
  if (kernels.length === 0) return errors;
  try {
    await compiler.check(kernels);
    return errors;
  } catch (error) {
    if (kernels.length === 1 || !isOfSource(error)) {
      for (const kernel of kernels) errors.set(kernel, error);
      return errors;
    }
  }
  for (const kernel of kernels) {
    await compiler.check([kernel]).catch((error: unknown) => errors.set(kernel, error));
  }
  return errors;
}

/** Not of a compiler that took too long, or could not run. */
function isOfSource(error: unknown): boolean {
  return error instanceof CompileError && error.diagnostics.every(({ code }) => code !== 'K704');
}

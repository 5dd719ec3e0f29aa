// Runs a part of the compiler for a caller, and gives its errors a place in the user's file.
import { isTooDeep, tooDeep } from './depth.js';
import { type CallSite, type ErrorSource, KernelTextError, toCompileError } from './diagnostics.js';

/** Converts the errors of `run` to CompileError with a code frame of the function. `name` is that of the kernel in messages. */
export function reporting<T>(name: string, source: ErrorSource, site: CallSite, run: () => T): T {
  try {
    return run();
  } catch (error) {
    const known = isTooDeep(error) ? tooDeep() : error;
    if (known instanceof KernelTextError) throw toCompileError(known, name, source, site);
    throw error;
  }
}

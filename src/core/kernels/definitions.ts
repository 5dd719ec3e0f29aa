// The kernels and modules that a program defines, for a tool that imports the program and builds them ahead of time.
import type { Kernel } from './kernel.js';
import type { ModuleSource } from './module.js';

export type Definition = Kernel | ModuleSource;

/** A symbol of the process: the program may import another copy of this package than the tool. */
const LIST: unique symbol = Symbol.for('millrace.definitions') as never;
const globals = globalThis as { [LIST]?: Definition[] };

/** From now on, definitions are listed. */
export function listDefinitions(): readonly Definition[] {
  return (globals[LIST] ??= []);
}

/** Every kernel and module passes here when it is made. */
export function defined<T extends Definition>(made: T): T {
  globals[LIST]?.push(made);
  return made;
}

export function isModule(made: Definition): made is ModuleSource {
  return 'kernelNames' in made;
}

// The kernels and modules that a program defines, for a tool that imports the program and builds them ahead of time.
import { describeAs } from '../base/describe.js';
import type { Kernel } from './kernel.js';
import type { ModuleSource } from './module.js';

export type Definition = Kernel | ModuleSource;

/** A symbol of the process: the program may import another copy of this package than the tool. */
const LIST: unique symbol = Symbol.for('millrace.definitions') as never;
const globals = globalThis as { [LIST]?: List };

/** `isForCpu`: what only GPUs run is not wanted. */
interface List extends Array<Definition> {
  readonly isForCpu?: boolean;
}

/** From now on, definitions are listed. */
export function listDefinitions(): readonly Definition[] {
  return (globals[LIST] ??= []);
}

/** Whether definitions are listed, also those of kernels that only GPUs run. */
export function isListingForGpus(): boolean {
  const list = globals[LIST];
  return list !== undefined && list.isForCpu !== true;
}

/** Every kernel and module passes here when it is made: it is frozen, and prints as one line. */
export function defined<T extends Definition>(made: T): T {
  if (isModule(made)) describeAs<ModuleSource>(made, (module) => `module of kernels ${module.kernelNames.join(', ')}`, factsOfModule);
  else describeAs<Kernel>(made, (kernel) => `Kernel ${kernel.name}(${Object.keys(kernel.params).join(', ')})`, factsOfKernel);
  globals[LIST]?.push(made);
  return Object.freeze(made);
}

function factsOfModule({ kernelNames, variableNames }: ModuleSource): object {
  return { kernels: kernelNames, globals: variableNames };
}

function factsOfKernel({ name, params }: Kernel): object {
  return { name, params };
}

export function isModule(made: Definition): made is ModuleSource {
  return 'kernelNames' in made;
}

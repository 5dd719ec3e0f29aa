// Shared by the compiler's tests: the emitted source of a body, and the errors of an invalid one.
import { afterAll, beforeAll, vi } from 'vitest';
import { CompileError } from '../../../src/core/base/errors.js';
import type { Kernel } from '../../../src/core/kernels/kernel.js';

/** The entry's lines after the bounds guard, or after the head of a block. */
export function bodyOf(made: Kernel): string {
  const lines = made.source.split('\n');
  const entry = lines.findIndex((line) => line.startsWith('extern "C" __global__'));
  const guard = lines.findIndex((line, at) => at > entry && /(>= mr_n0|MR_BEGIN_BLOCK\()/.test(line));
  return lines
    .slice(guard + 1, lines.lastIndexOf('}'))
    .map((line) => line.slice(2))
    .join('\n');
}

/** The names of the helpers before the entry. */
export function helpersOf(made: Kernel): string[] {
  return [...made.source.matchAll(/__forceinline__ \w+ (mr_\w+)\(/g)].map((match) => match[1]!);
}

/** The CompileError that `run` must throw. */
export function compileError(run: () => unknown): CompileError {
  try {
    run();
  } catch (error) {
    if (error instanceof CompileError) return error;
    throw error;
  }
  throw new Error('It compiles.');
}

/** Code, message and hint, without the position. */
export function complaint(run: () => unknown): string {
  const { message } = compileError(run);
  return message
    .split('\n')
    .filter((line) => !line.startsWith("  in kernel '") && !/^ +\d* \|/.test(line))
    .join('\n');
}

/** Until it is restored, errors have the positions of a Node without an inspector, which takes up to 70 ms to find a function. */
export function noInspector(): { mockRestore(): void } {
  const { getBuiltinModule } = process;
  return vi.spyOn(process, 'getBuiltinModule').mockImplementation((id: string) => {
    if (id === 'node:inspector') throw new Error('No position is looked at.');
    return getBuiltinModule.call(process, id) as never;
  });
}

/** For files that look at no position. */
export function withoutPositions(): void {
  let inspector = { mockRestore: (): void => undefined };
  beforeAll(() => {
    inspector = noInspector();
  });
  afterAll(() => inspector.mockRestore());
}

/** A function with exactly this source, as a build tool may produce it. `free` are the free names that it uses. */
export function withText(text: string, ...free: string[]): never {
  try {
    return new Function(...free, `return (${text});`)() as never;
  } catch {
    // A method's text stands inside an object only.
    return new Function(...free, `return Object.values({ ${text} })[0];`)() as never;
  }
}

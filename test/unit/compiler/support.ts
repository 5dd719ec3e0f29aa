// What the compiler's tests share: the part of the emitted text that comes from a body, and the errors of one that fails.
import { CompileError } from '../../../src/core/base/errors.js';
import type { Kernel } from '../../../src/core/kernels/kernel.js';

/** The entry's lines after the tail guard, or after the head of a block. */
export function bodyOf(made: Kernel): string {
  const lines = made.source.split('\n');
  const entry = lines.findIndex((line) => line.startsWith('extern "C" __global__'));
  const guard = lines.findIndex((line, at) => at > entry && /(>= mr_n0|MR_BEGIN_BLOCK\()/.test(line));
  return lines
    .slice(guard + 1, lines.lastIndexOf('}'))
    .map((line) => line.slice(2))
    .join('\n');
}

/** The helpers that stand before the entry, by name. */
export function helpersOf(made: Kernel): string[] {
  return [...made.source.matchAll(/__forceinline__ \w+ (mr_\w+)\(/g)].map((match) => match[1]!);
}

/** The error that `run` must throw, as CompileError. */
export function compileError(run: () => unknown): CompileError {
  try {
    run();
  } catch (error) {
    if (error instanceof CompileError) return error;
    throw error;
  }
  throw new Error('It compiles.');
}

/** Code, sentence and hint, without the place. */
export function complaint(run: () => unknown): string {
  const { message } = compileError(run);
  return message
    .split('\n')
    .filter((line) => !line.startsWith("  in kernel '") && !/^ +\d* \|/.test(line))
    .join('\n');
}

/** A function whose text is exactly this one, as a build tool would have left it. `free` are the names it may mention. */
export function withText(text: string, ...free: string[]): never {
  try {
    return new Function(...free, `return (${text});`)() as never;
  } catch {
    // A method's text stands inside an object only.
    return new Function(...free, `return Object.values({ ${text} })[0];`)() as never;
  }
}

// Texts nested deeper than the stack of those who read them, tree by tree.
import { KernelTextError } from './diagnostics.js';

/** The stack ended. */
export function isTooDeep(error: unknown): boolean {
  return (
    error instanceof Error && /call stack|stack space/.test(error.message) && (error instanceof RangeError || error instanceof SyntaxError)
  );
}

export function tooDeep(): KernelTextError {
  return new KernelTextError(
    'K006',
    { start: 0, end: 1 },
    'The text is nested too deeply to be read.',
    'Take parts of it out of their brackets.',
  );
}

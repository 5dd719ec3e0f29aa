// Detects kernels that are nested too deeply for the recursive functions that walk them.
import { KernelTextError } from './diagnostics.js';

/** Posting to the device's worker clones the tree recursively on the launching thread's stack: 1900 levels use all of Node's. */
const MOST_LEVELS = 1200;

/** Whether the error is a stack overflow. */
export function isTooDeep(error: unknown): boolean {
  return (
    error instanceof Error && /call stack|stack space/.test(error.message) && (error instanceof RangeError || error instanceof SyntaxError)
  );
}

export function tooDeep(): KernelTextError {
  return new KernelTextError(
    'K006',
    { start: 0, end: 1 },
    'The function is nested too deeply.',
    'Split the expression into local variables.',
  );
}

/** Throws the error of `tooDeep` for a tree with more levels than any thread can post. */
export function refuseDeep(tree: object): void {
  const seen = new Set<object>();
  let level: object[] = [tree];
  for (let levels = 0; level.length > 0; levels++) {
    if (levels > MOST_LEVELS) throw tooDeep();
    const next: object[] = [];
    for (const node of level) {
      for (const value of Object.values(node) as unknown[]) {
        if (typeof value !== 'object' || value === null || seen.has(value)) continue;
        seen.add(value);
        next.push(value);
      }
    }
    level = next;
  }
}

// Texts nested deeper than the stack of those who read them, tree by tree.
import { KernelTextError } from './diagnostics.js';

/** What is posted to a device's worker is copied on the stack of whoever launches: 1900 levels take all of Node's. */
const MOST_LEVELS = 1200;

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
    'The function is nested too deeply.',
    'Split the expression into local variables.',
  );
}

/** Throws what `tooDeep` gives for a tree of more levels than can be posted, wherever it is launched from. */
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

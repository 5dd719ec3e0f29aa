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

/** Brackets in each other that a source may have. The parser uses all of Node's stack with 1140. */
const MOST_BRACKETS = 500;
/** Operators and statements in each other or in a row, which the parser nests. It uses all of the stack with about twice as many. */
const MOST_LINKS = 2400;
/** Comments, strings, and what nests. */
const TOKENS =
  /\/\*[^]*?\*\/|\/\/.*|'[^'\\\n]*(?:\\[^][^'\\\n]*)*'|"[^"\\\n]*(?:\\[^][^"\\\n]*)*"|[([{}\])]|[;,]|\b(?:if|else|for|while|do)\b|\*\*|=>|[-+*/%&|^!~?:=<>]/g;
const OPENS = new Set(['(', '[', '{']);
const CLOSES = new Set([')', ']', '}']);
const STATEMENTS = new Set(['if', 'else', 'for', 'while', 'do']);

/**
 * Throws the error of `tooDeep` for a source that could take the parser near the end of the stack. A stack overflow there would be no error
 * that can be caught if V8 had to compile one of the parser's regular expressions: it ends the process.
 */
export function refuseNested(text: string): void {
  /** Of each open bracket: what is linked before it in its statement. */
  const links: number[] = [];
  let [here, around] = [0, 0];
  let hasEnded = false;
  for (const [token] of text.matchAll(TOKENS)) {
    if (/^(?:\/[/*]|['"])/.test(token)) continue;
    // Behind a block, only an operator or `else` goes on.
    if (hasEnded && (OPENS.has(token) || (STATEMENTS.has(token) && token !== 'else'))) here = 0;
    hasEnded = token === '}';
    if (OPENS.has(token)) {
      links.push(++here);
      around += here;
      here = 0;
    } else if (CLOSES.has(token)) {
      here = links.pop() ?? 0;
      around -= here;
    } else if (token === ';' || token === ',') here = 0;
    else here += STATEMENTS.has(token) ? 2 : 1;
    if (links.length > MOST_BRACKETS || around + here > MOST_LINKS) throw tooDeep();
  }
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

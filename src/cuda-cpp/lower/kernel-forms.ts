// Selects the form of each kernel whose threads wait: loop fission at its barriers where the result is proven to be the same, else a stack
// for each thread.
import type { Edit } from '../read/source-edits.js';
import { splitKernel } from './loop-fission.js';
import type { Token } from '../read/tokens.js';
import { MOST_LOOPED_TOKENS } from './uniform-loops.js';
import { findWaiting } from './waiting-functions.js';

export interface Forms {
  readonly edits: readonly Edit[];
  /** Kernels after loop fission. */
  readonly split: readonly string[];
  /** Whether a kernel's threads may wait, and it is not split. `path`: its C++ name, with its template arguments. */
  isWaiting(path: string): boolean;
  /** Whether a function waits that is not split. */
  readonly hasWaiting: boolean;
}

export const NO_FORMS: Forms = { edits: [], split: [], isWaiting: () => false, hasWaiting: false };

export function formsOf(source: string, tokens: readonly Token[], maySplit: boolean): Forms {
  const { functions, waits, mentions, isAnywhere, isWaiting } = findWaiting(tokens);
  const edits: Edit[] = [];
  const split = new Set<string>();
  for (const i of maySplit && !isAnywhere ? waits : []) {
    const fn = functions[i]!;
    if (fn.bodyEnd - fn.bodyOpen > MOST_LOOPED_TOKENS) continue;
    const isKernel = tokens.slice(fn.start, fn.at).some(({ text }) => text === '__global__');
    const isTemplate = tokens[fn.start - 1]?.text === '>';
    const isAlone = functions.filter(({ name }) => name === fn.name).length === 1;
    const hasLambdas = functions.some(({ at }) => at > fn.bodyOpen && at < fn.bodyEnd);
    if (!isKernel || isTemplate || !isAlone || hasLambdas || fn.bodyOpen < 0 || fn.bodyEnd >= tokens.length) continue;
    if ([...mentions].some(([at, by]) => by === i && tokens[at]!.text !== '__syncthreads')) continue;
    const text = splitKernel(source, tokens, fn);
    if (text === undefined) continue;
    split.add(fn.name);
    edits.push({ start: tokens[fn.start]!.start, end: tokens[fn.bodyEnd]!.end, text });
  }
  return {
    edits,
    split: [...split],
    isWaiting: (path) => !split.has(path) && isWaiting(path),
    hasWaiting: isAnywhere || waits.size > split.size,
  };
}

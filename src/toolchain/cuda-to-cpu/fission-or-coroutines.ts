// Selects the form of each kernel whose threads wait: loop fission at its barriers where the result is proven to be the same, else
// coroutines.
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { coroutineEdits } from './coroutines.js';
import type { Edit } from '../cuda-parser/source-edits.js';
import { splitKernel } from './loop-fission.js';
import type { Token } from '../cuda-parser/tokenizer.js';
import { MOST_LOOPED_TOKENS } from './uniform-loops.js';
import { findWaiting } from './waiting-functions.js';

export interface Forms {
  readonly edits: readonly Edit[];
  /** Kernels after loop fission. */
  readonly split: readonly string[];
  /** Functions that can wait. */
  readonly waiting: ReadonlySet<string>;
  /** Whether some function is a coroutine. */
  readonly hasCoroutines: boolean;
}

/** Throws a CompileError for code that waits and supports neither form. */
export function formsOf(spec: BuildSpec, source: string, tokens: readonly Token[], maySplit: boolean): Forms {
  const { functions, waits, calls, owner } = findWaiting(spec, tokens);
  const edits: Edit[] = [];
  const split = new Set<number>();
  for (const i of maySplit ? waits : []) {
    const fn = functions[i]!;
    if (fn.bodyEnd - fn.bodyOpen > MOST_LOOPED_TOKENS) continue;
    const isKernel = tokens.slice(fn.start, fn.at).some(({ text }) => text === '__global__');
    const isTemplate = tokens[fn.start - 1]?.text === '>';
    const isAlone = functions.filter(({ name }) => name === fn.name).length === 1;
    const hasLambdas = functions.some(({ at }) => at > fn.bodyOpen && at < fn.bodyEnd);
    const waitsItself = calls.every((at) => owner[at] !== i || tokens[at]!.text === '__syncthreads');
    if (!isKernel || isTemplate || !isAlone || hasLambdas || !waitsItself || fn.bodyOpen < 0 || fn.bodyEnd >= tokens.length) continue;
    const text = splitKernel(source, tokens, fn);
    if (text === undefined) continue;
    split.add(i);
    edits.push({ start: tokens[fn.start]!.start, end: tokens[fn.bodyEnd]!.end, text });
  }
  return {
    edits: [
      ...edits,
      ...coroutineEdits(spec, tokens, split).filter((one) => !edits.some(({ start, end }) => one.start >= start && one.end <= end)),
    ],
    split: [...split].map((i) => functions[i]!.name),
    waiting: new Set([...waits].map((i) => functions[i]!.name)),
    hasCoroutines: waits.size > split.size,
  };
}

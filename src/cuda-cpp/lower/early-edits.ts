// Rewrites that come before all others: the heap of device code, loops in which threads wait for each other (spin-loops.ts), statements that the
// lanes of a warp take together (lockstep.ts), and alignments that C++ wants in another place.
//
// malloc, free, new and delete become those of the shim's heap (device_heap.h): the functions of the process have no limit, and new would not
// give null.
import { callOpen, functionsOf } from '../read/functions.js';
import { applyEdits, type Edit } from '../read/source-edits.js';
import { closing, namespaceScope, tokenize, type Token } from '../read/tokens.js';
import { lockstepEdits } from './lockstep.js';
import { boundOf } from './rewrite.js';
import { spinEdits } from './spin-loops.js';

/** Most tokens of the type of a cast. */
const MOST_TYPE = 40;

export interface EarlyText {
  readonly text: string;
  readonly tokens: readonly Token[];
  /** Headers of the shim that the edits need. */
  readonly headers: readonly string[];
  /** Positions of the compiler's messages in the given text. */
  restore(log: string): string;
}

export function rewriteEarly(source: string, tokens: readonly Token[]): EarlyText {
  const heap = tokens.some(({ text }) => /^(?:malloc|free|new|delete)$/.test(text)) ? heapEdits(tokens) : [];
  const spins = spinEdits(tokens);
  const edits = [
    ...heap,
    ...spins,
    ...lockstepEdits(tokens, new Set(spins.map(({ start }) => start))),
    ...alignmentEdits(tokens),
    ...boundEdits(tokens),
    ...castEdits(tokens),
  ];
  if (edits.length === 0) return { text: source, tokens, headers: [], restore: (log) => log };
  const headers = [...(heap.length > 0 ? ['device_heap.h'] : []), ...(spins.length > 0 ? ['spin.h'] : [])];
  const { text, restore } = applyEdits(source, tokens, edits);
  return { text, tokens: tokenize(text).tokens, headers, restore };
}

/** `__shared__ alignas(16) float x[4]` becomes `alignas(16) __shared__ float x[4]`. */
function alignmentEdits(tokens: readonly Token[]): Edit[] {
  return tokens.flatMap(({ text, start, end }, i) => {
    if (text !== '__shared__' || tokens[i + 1]?.text !== 'alignas' || tokens[i + 2]?.text !== '(') return [];
    const close = tokens[closing(tokens, i + 2)];
    if (close === undefined || tokens[i - 1]?.text === 'extern') return [];
    return [
      { start, end, text: '' },
      { start: close.end, end: close.end, text: ' __shared__' },
    ];
  });
}

/** `extern __shared__ float x[4]` has a bound, by which nvcc takes it as static shared memory: `extern` goes. */
function boundEdits(tokens: readonly Token[]): Edit[] {
  return tokens.flatMap(({ text, start, end }, i) => {
    if (text !== 'extern') return [];
    const bracket = boundOf(tokens, i + 1);
    const isShared = tokens.slice(Math.max(0, i - 1), Math.max(0, bracket)).some((token) => token.text === '__shared__');
    return isShared && tokens[bracket + 1]?.text !== ']' ? [{ start, end, text: '' }] : [];
  });
}

/** `reinterpret_cast<T*>(name)` of dynamic shared memory at namespace scope: the shim's class converts to a pointer behind a plus. */
function castEdits(tokens: readonly Token[]): Edit[] {
  const isOutside = namespaceScope(tokens);
  const names = new Set(
    tokens.flatMap(({ text }, i) => (text === '[' && tokens[i + 1]?.text === ']' && isOutside[i] ? [tokens[i - 1]?.text] : [])),
  );
  if (names.size === 0) return [];
  return tokens.flatMap(({ text, start }, i) => {
    const isCast = tokens[i - 1]?.text === '(' && tokens[i - 2]?.text === '>' && tokens[i + 1]?.text === ')' && names.has(text);
    if (!isCast) return [];
    let at = i - 2;
    while (at > i - MOST_TYPE && tokens[at]!.text !== 'reinterpret_cast') at--;
    return tokens[at]?.text === 'reinterpret_cast' ? [{ start, end: start, text: '+' }] : [];
  });
}

function heapEdits(tokens: readonly Token[]): Edit[] {
  const own = new Set(functionsOf(tokens).map(({ name }) => name));
  const edits: Edit[] = [];
  for (const [i, { text, start, end }] of tokens.entries()) {
    const [before, after] = [tokens[i - 1]?.text, tokens[i + 1]?.text];
    if (text === 'malloc' || text === 'free') {
      const isMember = before === '.' || (before === '>' && tokens[i - 2]?.text === '-') || before === ':';
      if (!isMember && !own.has(text) && callOpen(tokens, i) >= 0) edits.push({ start, end, text: `mr_heap_${text}` });
    } else if (text === 'new' && before !== 'operator' && after !== '(') {
      edits.push({ start, end, text: 'new (mr_in_heap{})' });
    } else if (text === 'delete' && before !== 'operator' && before !== '=') {
      const isArray = after === '[' && tokens[i + 2]?.text === ']';
      edits.push({ start, end: isArray ? tokens[i + 2]!.end : end, text: isArray ? 'mr_deleting_array{} *' : 'mr_deleting{} *' });
    }
  }
  return edits;
}

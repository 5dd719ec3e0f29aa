// Local arrays of coroutines. g++ places a variable in the frame of its coroutine by the alignment of its type, and ignores that of the
// variable. Kernels read arrays as vectors (`*reinterpret_cast<float4*>(x)`), whose moves fault at other addresses than multiples of 16. So
// the arrays get an aligned type: `float x[4];` becomes `mr_aligned<float [4]> x;`.
import { ATTRIBUTES } from '../../compiler/cuda-source/attributes.js';
import type { Edit } from '../cuda-parser/source-edits.js';
import { closingAngle, type FunctionTokens } from '../cuda-parser/functions.js';
import { closing, type Token } from '../cuda-parser/tokenizer.js';

/** First words of statements that declare no array of a thread. */
const OTHERS: ReadonlySet<string> = new Set(
  'return co_return static extern constexpr __shared__ thread_local typedef using auto if for while do else switch case goto delete new throw break continue default template namespace enum asm'.split(
    ' ',
  ),
);
/** Most tokens of a class before its members; more come only from arbitrary input. */
const MOST_OF_HEAD = 100;

/** `owner`: for each token, the function whose body contains it; `index` is that of `fn`. */
export function arrayEdits(tokens: readonly Token[], owner: Int32Array, index: number, fn: FunctionTokens): Edit[] {
  const edits: Edit[] = [];
  for (let i = fn.bodyOpen + 1; i < fn.bodyEnd; i++) {
    if (/^(?:struct|class|union)$/.test(tokens[i]!.text)) i = Math.max(i, classEnd(tokens, i, fn.bodyEnd));
    if (owner[i] === index && /^[;{}]$/.test(tokens[i - 1]!.text)) edits.push(...declarationEdits(tokens, i));
  }
  return edits;
}

/** The brace behind the members of the class that is defined at `from`; -1 for a mere name of one. */
function classEnd(tokens: readonly Token[], from: number, end: number): number {
  for (let at = from; at < Math.min(end, from + MOST_OF_HEAD) && !/^[;)=]$/.test(tokens[at]!.text); at++) {
    if (tokens[at]!.text === '{') return closing(tokens, at);
    if (tokens[at]!.text !== '(') continue;
    if (!ATTRIBUTES.includes(tokens[at - 1]!.text)) return -1;
    at = closing(tokens, at);
  }
  return -1;
}

function declarationEdits(tokens: readonly Token[], from: number): Edit[] {
  let first = from;
  while (ATTRIBUTES.includes(tokens[first]?.text ?? '') && tokens[first + 1]?.text === '(') first = closing(tokens, first + 1) + 1;
  const name = OTHERS.has(tokens[first]?.text ?? '') ? -1 : nameAt(tokens, first);
  if (name < 0) return [];
  const type = tokens
    .slice(first, name)
    .map(({ text }) => text)
    .join(' ');
  const edits: Edit[] = [{ start: tokens[first]!.start, end: tokens[first]!.start, text: 'mr_aligned<' }];
  for (let at = name; ; ) {
    const end = dimensionsEnd(tokens, at + 1);
    if (end > 0) {
      const { start, end: behind, text } = tokens[at]!;
      edits.push({ start, end: behind, text: '' }, { start: tokens[end - 1]!.end, end: tokens[end - 1]!.end, text: `> ${text}` });
    } else if (at === name) return [];
    const comma = initializerEnd(tokens, end > 0 ? end : at);
    if (comma < 0) return [];
    if (tokens[comma]!.text === ';') return edits;
    at = comma + 1;
    const isArray = tokens[at]?.kind === 'name' && dimensionsEnd(tokens, at + 1) > 0;
    edits.push({ start: tokens[comma]!.start, end: tokens[comma]!.end, text: isArray ? `; mr_aligned<${type}` : `; ${type}` });
  }
}

/** The declared name, if a type and a name with `[` begin here; else -1. */
function nameAt(tokens: readonly Token[], from: number): number {
  for (let at = from; tokens[at]?.kind === 'name'; ) {
    let next = at + 1;
    for (;;) {
      if (tokens[next]?.text === '<') {
        const close = closingAngle(tokens, next);
        if (close < 0) return -1;
        next = close + 1;
      } else if (tokens[next]?.text === ':' && tokens[next + 1]?.text === ':' && tokens[next + 2]?.kind === 'name') next += 3;
      else break;
    }
    if (tokens[next]?.text === '[') return at > from && next === at + 1 ? at : -1;
    at = next;
  }
  return -1;
}

/** Behind the dimensions that begin at `from`; -1 without one, or if the initializer gives it. */
function dimensionsEnd(tokens: readonly Token[], from: number): number {
  let at = from;
  while (tokens[at]?.text === '[') {
    const close = closing(tokens, at);
    if (close === at + 1) return -1;
    at = close + 1;
  }
  return at > from ? at : -1;
}

/** The comma or semicolon behind a declarator; -1 if it cannot be told. */
function initializerEnd(tokens: readonly Token[], from: number): number {
  for (let at = from; at < tokens.length; at++) {
    const { text } = tokens[at]!;
    if (text === ';' || text === ',') return at;
    if (text === '(' || text === '[' || text === '{') at = closing(tokens, at);
    // A comma may separate template arguments.
    else if (text === '<' || text === ')' || text === '}') return -1;
  }
  return -1;
}

// Loops of a kernel that every thread goes through alike, from their tokens: g++ vectorises over the threads around such
// a loop only when it is unrolled whole.
import type { Edit } from '../cuda-parser/source-edits.js';
import { closingAngle } from '../cuda-parser/functions.js';
import { closing, namespaceScope, type Token } from '../cuda-parser/tokenizer.js';

/** Constants of a text by name; undefined where the value is not a number as it is written. */
export type Constants = ReadonlyMap<string, number | undefined>;

/** A longer kernel is left as it is: the loops around its parts would be no longer worth the time that it takes to see where they may be. */
export const MOST_LOOPED_TOKENS = 5000;
/** More rounds, or more code, than this are no gain. */
const MOST_ROUNDS = 32;
const MOST_TOKENS = 1500;
/** Of a constant's type and name. */
const MOST_WORDS = 8;
const HEAD = /^(?:(?:const )?(?:unsigned|int|unsigned int|size_t) )(\w+) = (\w+) ; \1 < (= )?(\w+) ; (?:\+ \+ \1|\1 \+ \+|\1 \+ = (\w+))$/;

/** Those of `const int N = 16;` and `constexpr int N = 16;` at namespace scope, where nothing else there has the name. */
export function constantsOf(tokens: readonly Token[]): Constants {
  const constants = new Map<string, number | undefined>();
  const isOutside = namespaceScope(tokens);
  for (let i = 0; i < tokens.length; i++) {
    if (!isOutside[i] || (tokens[i]!.text !== 'const' && tokens[i]!.text !== 'constexpr')) continue;
    let equals = i + 1;
    while (equals < Math.min(tokens.length, i + MOST_WORDS) && tokens[equals]!.kind === 'name') equals++;
    const words = tokens.slice(i, equals).map(({ text }) => text);
    if (
      tokens[equals]?.text !== '=' ||
      words.includes('volatile') ||
      !words.some((word) => /^(?:int|unsigned|size_t|u?int\d+_t)$/.test(word))
    )
      continue;
    const isNumber = tokens[equals + 2]?.text === ';' && /^\d+u?$/.test(tokens[equals + 1]!.text);
    constants.set(words.at(-1)!, isNumber ? Number.parseInt(tokens[equals + 1]!.text, 10) : undefined);
  }
  for (const [name, times] of constants.size > 0 ? declaredIn(tokens, isOutside) : []) if (times > 1) constants.delete(name);
  return constants;
}

/** How often each name is declared at namespace scope, in whichever namespace. */
function declaredIn(tokens: readonly Token[], isOutside: readonly boolean[]): Map<string, number> {
  const times = new Map<string, number>();
  let hasValue = false;
  for (let i = 0; i < tokens.length; i++) {
    const { text, kind } = tokens[i]!;
    if (!isOutside[i]) continue;
    if (text === '<') i = Math.max(i, closingAngle(tokens, i));
    else if (text === '(' || text === '[') i = closing(tokens, i);
    else if (text === '=') hasValue = true;
    else if (';,{}'.includes(text)) hasValue = false;
    else if (kind === 'name' && !hasValue && '=;,[({)'.includes(tokens[i + 1]?.text ?? ' ')) times.set(text, (times.get(text) ?? 0) + 1);
  }
  return times;
}

/** `#pragma GCC unroll` before the loops in [from, to] that have few rounds, their number known. It stands on a line of its own. */
export function unrollEdits(tokens: readonly Token[], from: number, to: number, constants: Constants): Edit[] {
  const edits: Edit[] = [];
  for (let i = from; i <= to; i++) {
    // A pragma is no statement: where a branch expects one, there would be none.
    if (tokens[i]!.text !== 'for' || !';{}'.includes(tokens[i - 1]!.text)) continue;
    const rounds = roundsOf(tokens, i, constants);
    if (rounds === undefined || rounds < 2 || rounds > MOST_ROUNDS) continue;
    if (lengthOf(tokens, i, statementEnd(tokens, i), constants) > MOST_TOKENS) continue;
    edits.push({ start: tokens[i]!.start, end: tokens[i]!.start, text: `\n#pragma GCC unroll ${rounds}\n` });
  }
  return edits;
}

/** How often `for (int k = 0; k < 16; k += 1)` goes round, and its like; undefined for any other. */
export function roundsOf(tokens: readonly Token[], loop: number, constants: Constants): number | undefined {
  const close = closing(tokens, loop + 1);
  if (close - loop > 20) return undefined;
  const head = tokens.slice(loop + 2, close).map(({ text }) => text);
  const match = HEAD.exec(head.join(' '));
  if (!match) return undefined;
  const valueOf = (word: string): number => (/^\d+u?$/.test(word) ? Number.parseInt(word, 10) : (constants.get(word) ?? Number.NaN));
  const rounds = Math.ceil((valueOf(match[4]!) + (match[3] ? 1 : 0) - valueOf(match[2]!)) / valueOf(match[5] ?? '1'));
  return Number.isFinite(rounds) ? Math.max(0, rounds) : undefined;
}

/** Tokens of [from, to] when its loops of known rounds are unrolled. */
function lengthOf(tokens: readonly Token[], from: number, to: number, constants: Constants): number {
  let length = 0;
  for (let i = from; i <= to; i++) {
    length++;
    const rounds = tokens[i]!.text === 'for' ? roundsOf(tokens, i, constants) : undefined;
    if (rounds === undefined) continue;
    const end = Math.min(to, statementEnd(tokens, i));
    length += rounds * lengthOf(tokens, closing(tokens, i + 1) + 1, end, constants);
    i = end;
  }
  return length;
}

function statementEnd(tokens: readonly Token[], at: number): number {
  let i = at;
  while (tokens[i]?.text === 'for') i = closing(tokens, i + 1) + 1;
  if (tokens[i]?.text === '{') return closing(tokens, i);
  while (i < tokens.length && tokens[i]!.text !== ';') i++;
  return i;
}

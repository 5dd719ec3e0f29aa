// Finds, by tokens, the loops of a kernel that all threads run alike: g++ vectorises over the threads around such a loop only when it is
// fully unrolled.
import type { Edit } from '../read/source-edits.js';
import { closingAngle } from '../read/functions.js';
import { closing, namespaceScope, type Token } from '../read/tokens.js';

/** Constants of the source by name; undefined unless the value is a literal number. */
export type Constants = ReadonlyMap<string, number | undefined>;

/** Size limit of a kernel for this analysis: in a longer one, the gain is not worth the analysis time. */
export const MOST_LOOPED_TOKENS = 5000;
/** Unrolling beyond these limits gains nothing. */
const MOST_ROUNDS = 32;
const MOST_TOKENS = 1500;
/** Most words of a constant's type and name. */
const MOST_WORDS = 8;
const HEAD = /^(?:(?:const )?(?:unsigned|int|unsigned int|size_t) )(\w+) = (\w+) ; \1 < (= )?(\w+) ; (?:\+ \+ \1|\1 \+ \+|\1 \+ = (\w+))$/;

/** Constants such as `const int N = 16;` and `constexpr int N = 16;` at namespace scope whose names are unique there. */
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

/** The number of declarations of each name at namespace scope, over all namespaces. */
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

/** Inserts `#pragma GCC unroll`, on its own line, before the loops in [from, to] whose known iteration count is small. */
export function unrollEdits(tokens: readonly Token[], from: number, to: number, constants: Constants): Edit[] {
  const edits: Edit[] = [];
  for (let i = from; i <= to; i++) {
    // A pragma is not a statement, so it must not stand where a branch expects one.
    if (tokens[i]!.text !== 'for' || !';{}'.includes(tokens[i - 1]!.text)) continue;
    const rounds = roundsOf(tokens, i, constants);
    if (rounds === undefined || rounds < 2 || rounds > MOST_ROUNDS) continue;
    if (lengthOf(tokens, i, statementEnd(tokens, i), constants) > MOST_TOKENS) continue;
    edits.push({ start: tokens[i]!.start, end: tokens[i]!.start, text: `\n#pragma GCC unroll ${rounds}\n` });
  }
  return edits;
}

/** The iteration count of loops such as `for (int k = 0; k < 16; k += 1)`; undefined for any other loop. */
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

/** The number of tokens in [from, to] after its loops of known length are unrolled. */
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

// Sums of a warp that were written before `__syncwarp`: `s[t] += s[t + 16]; s[t] += s[t + 8];` with a volatile array and without barriers. They
// rely on the lanes of a warp executing each statement together. On the CPU device, lanes run one after the other until they wait, so each such
// statement becomes three steps that the lanes of a warp take together: all have come, all have read, all have written.
import type { Edit } from '../read/source-edits.js';
import { closing, type Token } from '../read/tokens.js';
import { volatileNames } from './spin-loops.js';

/** Functions of locks: a lane that holds a lock must not wait for lanes that wait for the lock. */
const LOCKS = /^atomic(?:CAS|Exch)(?:_block|_system)?$/;
/** A source writes such statements in dozens at most; more would make the file long. */
const MOST_STATEMENTS = 500;
/** Longest statement in tokens. */
const MOST_TOKENS = 200;
/** Above all numbers of lines, which `__activemask` is given otherwise. */
const FIRST_SITE = 0x4000_0000;

/** The edits for a source's statements. */
export function lockstepEdits(tokens: readonly Token[]): Edit[] {
  if (!tokens.some(({ text }) => text === 'volatile') || tokens.some(({ text }) => LOCKS.test(text))) return [];
  const names = volatileNames(tokens);
  const edits: Edit[] = [];
  for (const [i, { text, kind, start }] of tokens.entries()) {
    if (kind !== 'name' || !names.has(text) || tokens[i + 1]?.text !== '[' || !/^(?:[;{}):]|else)$/.test(tokens[i - 1]?.text ?? ''))
      continue;
    const left = closing(tokens, i + 1);
    const isCompound = /^[-+*/%&|^]$/.test(tokens[left + 1]?.text ?? '') && tokens[left + 2]?.text === '=';
    const equals = isCompound ? left + 2 : left + 1;
    if (tokens[equals]?.text !== '=' || tokens[equals + 1]?.text === '=') continue;
    const end = endOf(tokens, equals + 1);
    if (end < 0 || isBeforeBarrier(tokens, end)) continue;
    const doesRead = tokens.slice(equals + 1, end).some((token, at) => names.has(token.text) && tokens[equals + 2 + at]?.text === '[');
    if (!doesRead || edits.length >= 2 * MOST_STATEMENTS) continue;
    const site = FIRST_SITE + 2 * edits.length;
    const target = textOf(tokens, i, left);
    const before = isCompound ? `${target} ${tokens[left + 1]!.text} (` : '';
    edits.push(
      { start, end: tokens[equals].end, text: `{ __activemask(${site}u); const auto mr_value = ${before}` },
      {
        start: tokens[end]!.start,
        end: tokens[end]!.end,
        text: `${isCompound ? ')' : ''}; __activemask(${site + 1}u); ${target} = mr_value; __activemask(${site + 2}u); }`,
      },
    );
  }
  return edits;
}

/** The semicolon that ends the expression; -1 if it is long or has a comma outside of brackets. */
function endOf(tokens: readonly Token[], from: number): number {
  for (let i = from; i < tokens.length && i - from < MOST_TOKENS; i++) {
    const { text } = tokens[i]!;
    if (text === ';') return i;
    if (text === ',' || text === '{' || text === '}') return -1;
    if (text === '(' || text === '[') i = closing(tokens, i);
  }
  return -1;
}

/** Whether a barrier comes next, perhaps behind the end of a block. */
function isBeforeBarrier(tokens: readonly Token[], end: number): boolean {
  let next = end + 1;
  while (tokens[next]?.text === '}') next++;
  const isCall = (at: number): boolean => tokens[at]?.kind === 'name' && /sync/i.test(tokens[at].text);
  return isCall(next) || (tokens[next + 1]?.text === '.' && isCall(next + 2)) || (tokens[next + 1]?.text === ':' && isCall(next + 3));
}

function textOf(tokens: readonly Token[], from: number, to: number): string {
  return tokens
    .slice(from, to + 1)
    .map(({ text }) => text)
    .join(' ');
}

// Sums of a warp that were written before `__syncwarp`: `s[t] += s[t + 16]; s[t] += s[t + 8];` with a volatile array and without barriers. They
// rely on the lanes of a warp executing each statement together. On the CPU device, lanes run one after the other until they wait, so each such
// statement becomes three steps that the lanes of a warp take together: all have come, all have read, all have written.
import { functionsOf, owners } from '../read/functions.js';
import type { Edit } from '../read/source-edits.js';
import { closing, opening, type Token } from '../read/tokens.js';
import { type VolatileNames, volatileNames } from '../read/volatile-names.js';

/** Functions of locks: a lane that holds a lock must not wait for lanes that wait for the lock. */
const LOCKS = /^atomic(?:CAS|Exch)(?:_block|_system)?$/;
/** A source writes such statements in dozens at most; more would make the file long. */
const MOST_STATEMENTS = 500;
/** Longest statement in tokens. */
const MOST_TOKENS = 200;
/** Above all numbers of lines, which `__activemask` is given otherwise. */
const FIRST_SITE = 0x4000_0000;

/** Words before parentheses that a statement follows. */
const HEADS = /^(?:if|for|while|constexpr|switch)$/;

/** `left operator right;`, as token indices. */
interface Assignment {
  readonly left: number;
  readonly leftEnd: number;
  /** Of `+=` and `++`; empty for `=`. */
  readonly operator: string;
  readonly right: number;
  /** The semicolon; for `left++;`, `right` is the same. */
  readonly end: number;
}

/** The edits for a source's statements. `spins`: where loops begin in which threads wait. */
export function lockstepEdits(tokens: readonly Token[], spins: ReadonlySet<number> = new Set()): Edit[] {
  if (!tokens.some(({ text }) => text === 'volatile')) return [];
  const mayWait = withoutLocks(tokens, spins);
  const volatiles = volatileNames(tokens);
  const edits: Edit[] = [];
  /** The brackets around the token. */
  const around: string[] = [];
  let count = 0;
  for (const [i, { text, start }] of tokens.entries()) {
    if (/^[([{]$/.test(text)) around.push(text);
    else if (/^[)\]}]$/.test(text)) around.pop();
    const within = around.at(text === '(' ? -2 : -1);
    if (within !== '{' || count === MOST_STATEMENTS || !isStart(tokens, i) || !mayWait(i)) continue;
    const found = assignmentAt(tokens, i);
    if (!found || !isExchange(tokens, found, volatiles)) continue;
    const { left, leftEnd, operator, right, end } = found;
    const site = FIRST_SITE + 3 * count++;
    // What is on the left is evaluated last.
    const isLate = right < end && tokens.slice(left, leftEnd).some((_token, at) => isChange(tokens, left + at));
    const [place, target] = isLate
      ? ['const auto mr_place = [&]() -> auto&& { return ', '; auto&& mr_target = mr_place()']
      : ['auto&& mr_target = ', ''];
    let value =
      right === end ? `const auto mr_value = mr_target ${operator} 1` : `const auto mr_value = ${operator && `mr_target ${operator} (`}`;
    if (isLate) value = `}; const auto mr_right = `;
    const from = tokens[leftEnd - 1]!.end;
    let last = operator && right < end ? ')' : '';
    if (isLate) last = `${target}; const auto mr_value = ${operator && `mr_target ${operator} `}mr_right`;
    edits.push(
      { start, end: tokens[left]!.start, text: `{ __activemask(${site}u); ${place}` },
      { start: from, end: right < end ? tokens[right - 1]!.end : tokens[end]!.start, text: `; ${value}` },
      {
        start: tokens[end]!.start,
        end: tokens[end]!.end,
        text: `${last}; __activemask(${site + 1}u); mr_target = mr_value; __activemask(${site + 2}u); }`,
      },
    );
  }
  return edits;
}

/** Tells whether a token is in a function that no kernel with locks, or with loops that wait, may call. */
function withoutLocks(tokens: readonly Token[], spins: ReadonlySet<number>): (at: number) => boolean {
  const isLock = ({ text, start }: Token): boolean => LOCKS.test(text) || spins.has(start);
  if (!tokens.some(isLock)) return () => true;
  const functions = functionsOf(tokens);
  const owner = owners(tokens, functions);
  // No token tells the calls of others.
  const isNamed = functions.map(
    ({ kind, name, className }) => kind === 'function' && name !== className && !name.startsWith('operator') && !name.startsWith('~'),
  );
  const declared = new Set(functions.map(({ at }) => at));
  const callers = new Set<number>();
  const names = new Set<string>();
  let before = -1;
  while (before < callers.size) {
    before = callers.size;
    for (const [i, token] of tokens.entries()) {
      if (declared.has(i) || !(isLock(token) || names.has(token.text))) continue;
      const by = owner[i]!;
      if (by < 0 || !isNamed[by]) return () => false;
      callers.add(by);
      names.add(functions[by]!.name);
    }
  }
  const called = new Set(callers);
  for (before = -1; before < called.size; ) {
    before = called.size;
    const mentioned = new Set(tokens.flatMap(({ text }, i) => (called.has(owner[i]!) ? [text] : [])));
    for (const [index, { name }] of functions.entries()) if (mentioned.has(name)) called.add(index);
  }
  return (at) => owner[at]! >= 0 && isNamed[owner[at]!]! && !called.has(owner[at]!);
}

/** Whether a statement may begin here. */
function isStart(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1]?.text ?? '';
  if (/^(?:[;{}]|else|do)$/.test(before)) return true;
  if (before === ')') return HEADS.test(tokens[opening(tokens, at - 1) - 1]?.text ?? '');
  if (before !== ':') return false;
  // A label; not the end of `a ? b : c`.
  let i = at - 2;
  while (i >= 0 && !/^[;{}?]$/.test(tokens[i]!.text)) i--;
  return tokens[i]?.text !== '?';
}

/** The assignment that is the statement at `at`. */
function assignmentAt(tokens: readonly Token[], at: number): Assignment | undefined {
  const textAt = (i: number): string => tokens[i]?.text ?? '';
  const isPrefixed = (textAt(at) === '+' || textAt(at) === '-') && textAt(at + 1) === textAt(at);
  const left = isPrefixed ? at + 2 : at;
  let leftEnd = left;
  while (textAt(leftEnd) === '*') leftEnd++;
  if (textAt(leftEnd) === '(') leftEnd = closing(tokens, leftEnd) + 1;
  else if (tokens[leftEnd]?.kind === 'name') leftEnd++;
  else return undefined;
  for (;;) {
    const isMember = textAt(leftEnd) === '.' || (textAt(leftEnd) === '-' && textAt(leftEnd + 1) === '>');
    if (textAt(leftEnd) === '[') leftEnd = closing(tokens, leftEnd) + 1;
    else if (isMember) leftEnd += textAt(leftEnd) === '.' ? 2 : 3;
    else break;
  }
  if (isPrefixed) return textAt(leftEnd) === ';' ? { left, leftEnd, operator: textAt(at), right: leftEnd, end: leftEnd } : undefined;
  const [first, second, third] = [textAt(leftEnd), textAt(leftEnd + 1), textAt(leftEnd + 2)];
  if (/^[-+]$/.test(first) && first === second && third === ';')
    return { left, leftEnd, operator: first, right: leftEnd + 2, end: leftEnd + 2 };
  const isShift = /^[<>]$/.test(first) && first === second && third === '=';
  const isCompound = /^[-+*/%&|^]$/.test(first) && second === '=';
  const operator = isShift ? first + second : isCompound ? first : '';
  const equals = leftEnd + operator.length;
  if (textAt(equals) !== '=' || textAt(equals + 1) === '=') return undefined;
  const end = endOf(tokens, equals + 1);
  return end < 0 ? undefined : { left, leftEnd, operator, right: equals + 1, end };
}

/** Whether the statement reads elements of volatile arrays and writes one, and lanes may meet in them. */
function isExchange(tokens: readonly Token[], found: Assignment, volatiles: VolatileNames): boolean {
  const { left, leftEnd, operator, right, end } = found;
  if (!hasElement(tokens, left, leftEnd, volatiles)) return false;
  if (operator === '' && !hasElement(tokens, right, end, volatiles)) return false;
  return !isApart(tokens, found, volatiles);
}

/** Whether an element of a volatile array, or what a volatile pointer points to, is between these tokens. */
function hasElement(tokens: readonly Token[], from: number, to: number, { names, types }: VolatileNames): boolean {
  const isName = (i: number): boolean => names.has(tokens[i]?.text ?? '');
  for (let i = from; i < to; i++) {
    const { text } = tokens[i]!;
    if (text === 'volatile' || types.has(text) || (isName(i) && tokens[i + 1]?.text === '[')) return true;
    if (text !== '*' || (i > from && (/^(?:name|number)$/.test(tokens[i - 1]!.kind) || /^[)\]]$/.test(tokens[i - 1]!.text)))) continue;
    const close = tokens[i + 1]?.text === '(' ? closing(tokens, i + 1) : i + 1;
    for (let inner = i + 1; inner <= close && inner < to; inner++) if (isName(inner)) return true;
  }
  return false;
}

/**
 * Whether no lane reads what another lane writes, and a barrier comes next: `if (t < n) s[t] += s[t + n]; __syncthreads();`. Such steps of a
 * tree are common, and need no time.
 */
function isApart(tokens: readonly Token[], { left, leftEnd, right, end }: Assignment, { names }: VolatileNames): boolean {
  if (!isBeforeBarrier(tokens, end) || tokens[left + 1]?.text !== '[' || closing(tokens, left + 1) !== leftEnd - 1 || leftEnd !== left + 4)
    return false;
  const index = tokens[left + 2]!.text;
  const head = tokens[left - 1]?.text === '{' ? left - 2 : left - 1;
  const open = tokens[head]?.text === ')' ? opening(tokens, head) : -1;
  if (open < 0 || tokens[open - 1]?.text !== 'if' || tokens[open + 1]?.text !== index || tokens[open + 2]?.text !== '<') return false;
  const limit = tokens[open + 3]!.text;
  if (open + 4 !== head && (tokens[open + 4]?.text !== '&' || tokens.slice(open, head).some(({ text }) => text === '|' || text === '?')))
    return false;
  for (let i = right; i < end; i++) {
    if (!names.has(tokens[i]!.text)) continue;
    const inside = tokens.slice(i + 1, closing(tokens, i + 1) + 1).map(({ text }) => text);
    const isOwn = inside.join(' ') === `[ ${index} ]`;
    if (tokens[i]!.text !== tokens[left]!.text || !(isOwn || inside.join(' ') === `[ ${index} + ${limit} ]`)) return false;
  }
  return true;
}

/** Whether the token changes something. */
function isChange(tokens: readonly Token[], at: number): boolean {
  const [text, next] = [tokens[at]!.text, tokens[at + 1]?.text];
  const isCall = text === '(' && at > 0 && tokens[at - 1]!.kind === 'name';
  return isCall || (text === '=' && next !== '=' && !/^[=!<>]$/.test(tokens[at - 1]?.text ?? '')) || (/^[-+]$/.test(text) && next === text);
}

/** The semicolon that ends the expression; -1 if it is long or has a comma outside of brackets. */
function endOf(tokens: readonly Token[], from: number): number {
  for (let i = from; i < tokens.length && i - from < MOST_TOKENS; i++) {
    const { text } = tokens[i]!;
    if (text === ';') return i;
    if (/^[,{})\]]$/.test(text)) return -1;
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

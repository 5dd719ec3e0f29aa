// Casts to integers, which saturate on a GPU when a float is out of range: `(int)x`, `int(x)` and `static_cast<int>(x)` become
// `::mr_cast<int>(x)` of the shim's casts.h, whatever the type of x. Type parameters count as
// integers, because mr_cast is a plain cast for other types. Code that this file cannot read with certainty stays as it is.
import { closing, type Token } from '../read/tokens.js';
import type { Edit } from '../read/source-edits.js';

const WORDS: ReadonlySet<string> = new Set(['int', 'unsigned', 'signed', 'char', 'short', 'long']);
const FLOATS: ReadonlySet<string> = new Set(['float', 'double', 'half', '__half']);
const NAMES = /^(?:u?int(?:_fast|_least)?(?:8|16|32|64)_t|size_t|ssize_t|ptrdiff_t|u?intptr_t|uint|uchar|ushort|ulong)$/;
/** Words after which an expression begins. */
const BEFORE: ReadonlySet<string> = new Set(['return', 'case', 'else', 'do', 'co_return', 'co_yield', 'co_await']);
const NO_OPERAND: ReadonlySet<string> = new Set([
  'sizeof',
  'alignof',
  'new',
  'delete',
  'throw',
  'const',
  'noexcept',
  'override',
  'volatile',
]);
const OPERATOR = /^[=+\-*/%?:<>|^&!~([,]$/;

/** Whether the source may cast to an integer. */
export function mayCast(source: string): boolean {
  return /[(<]\s*(?:const\s+)?\w+(?:\s+\w+)*\s*[)>]|\b(?:int|unsigned|char|short|long|\w+_t|[A-Z]\w*)\s*\(/.test(source);
}

export function castEdits(tokens: readonly Token[]): Edit[] {
  const known = declaredTypes(tokens);
  const isType = (text: string): boolean => WORDS.has(text) || NAMES.test(text) || known.has(text);
  const edits: Edit[] = [];
  for (let i = 1; i + 2 < tokens.length; i++) {
    const { text } = tokens[i]!;
    if (text === 'static_cast') edits.push(...staticCast(tokens, i, isType));
    else if (text === '(') edits.push(...cast(tokens, i, isType));
    else if (isType(text)) edits.push(...functionalCast(tokens, i));
  }
  return edits;
}

/** Type parameters, and names that typedef and using declare for types of integers. */
function declaredTypes(tokens: readonly Token[]): Set<string> {
  const known = new Set<string>();
  for (let i = 0; i + 1 < tokens.length; i++) {
    const { text } = tokens[i]!;
    const next = tokens[i + 1]!;
    if ((text === 'typename' || text === 'class') && /^[<,]$/.test(tokens[i - 1]?.text ?? '') && next.kind === 'name') known.add(next.text);
    const isUsing = text === 'using' && tokens[i + 2]?.text === '=';
    if (!isUsing && text !== 'typedef') continue;
    const end = typeEnd(tokens, isUsing ? i + 3 : i + 1, (name) => WORDS.has(name) || NAMES.test(name) || known.has(name));
    const name = isUsing ? next : tokens[end];
    if (name?.kind === 'name' && tokens[isUsing ? end : end + 1]?.text === ';') known.add(name.text);
  }
  return known;
}

/** The index behind the name of a type of integers, such as `unsigned long` or `std::size_t`; `from` if there is none. */
function typeEnd(tokens: readonly Token[], from: number, isType: (text: string) => boolean): number {
  let at = from;
  while (tokens[at]?.text === 'const' || tokens[at]?.text === 'typename') at++;
  if (tokens[at]?.text === 'std' && tokens[at + 1]?.text === ':') at += 3;
  if (!isType(tokens[at]?.text ?? '')) return from;
  if (!WORDS.has(tokens[at]!.text)) return at + 1;
  while (WORDS.has(tokens[at]?.text ?? '')) at++;
  return at;
}

function written(tokens: readonly Token[], from: number, to: number): string {
  const words = tokens.slice(from, to).map(({ text }) => text);
  return words
    .filter((word) => word !== 'const')
    .join(' ')
    .replaceAll(' : : ', '::');
}

function staticCast(tokens: readonly Token[], at: number, isType: (text: string) => boolean): Edit[] {
  const end = typeEnd(tokens, at + 2, isType);
  if (tokens[at + 1]!.text !== '<' || end === at + 2 || tokens[end]?.text !== '>' || tokens[end + 1]?.text !== '(') return [];
  if (isLiteral(tokens, end + 1)) return [];
  return [{ start: tokens[at]!.start, end: tokens[end].end, text: ` ::mr_cast<${written(tokens, at + 2, end)}>` }];
}

/** Whether only a number is in the parentheses, which may be a null pointer. */
function isLiteral(tokens: readonly Token[], open: number): boolean {
  return tokens[open + 1]?.text === ')' || (tokens[open + 1]?.kind === 'number' && tokens[open + 2]?.text === ')');
}

/** `int(x)`. A declaration may look the same. */
function functionalCast(tokens: readonly Token[], at: number): Edit[] {
  const [before, inside] = [tokens[at - 1]!, tokens[at + 2]!];
  if (tokens[at + 1]!.text !== '(' || isLiteral(tokens, at + 1)) return [];
  const close = closing(tokens, at + 1);
  if (close >= tokens.length || !isValue(tokens, at + 2, close)) return [];
  const isPointer = inside.text === '*' || inside.text === '&';
  const isFree = BEFORE.has(before.text) || OPERATOR.test(before.text);
  if (!isFree || (isPointer && /^[(,<>&*]$/.test(before.text)) || (before.text === ':' && tokens[at - 2]?.text === ':')) return [];
  if (before.text === '<' && tokens[at - 2]?.kind === 'name' && tokens[close + 1]?.text === '>') return [];
  return [{ start: tokens[at]!.start, end: tokens[at]!.end, text: ` ::mr_cast<${tokens[at]!.text}>` }];
}

/** Whether one value is in the parentheses, instead of several or the types of a function. */
function isValue(tokens: readonly Token[], from: number, to: number): boolean {
  const isParameter = WORDS.has(tokens[from]!.text) || FLOATS.has(tokens[from]!.text) || tokens[from]!.text === 'const';
  if (isParameter && tokens[from + 1]?.text !== '(') return false;
  for (let i = from; i < to; i++) {
    if (tokens[i]!.text === ',' || (tokens[i]!.text === '.' && tokens[i + 1]?.text === '.')) return false;
    if (tokens[i]!.text === '(' || tokens[i]!.text === '[' || tokens[i]!.text === '{') i = closing(tokens, i);
  }
  return true;
}

/** `(int)x` */
function cast(tokens: readonly Token[], open: number, isType: (text: string) => boolean): Edit[] {
  const close = typeEnd(tokens, open + 1, isType);
  if (close === open + 1 || tokens[close]?.text !== ')') return [];
  const before = tokens[open - 1]!;
  const isCall = before.kind !== 'punctuation' ? !BEFORE.has(before.text) : before.text === ']' || before.text === '}';
  const end = castOperandEnd(tokens, close + 1);
  if (isCall || end === close + 1 || (end === close + 2 && tokens[close + 1]!.kind === 'number')) return [];
  const behind = tokens[end - 1]!.end;
  return [
    { start: tokens[open]!.start, end: tokens[close].end, text: ` ::mr_cast<${written(tokens, open + 1, close)}>(` },
    { start: behind, end: behind, text: ')' },
  ];
}

/** The index behind the operand of a cast; `first` if this file cannot tell. */
function castOperandEnd(tokens: readonly Token[], first: number): number {
  let at = first;
  for (;;) {
    if (tokens[at]?.text === '-' && tokens[at + 1]?.text === '>') return first;
    while (/^[-+~!*&]$/.test(tokens[at]?.text ?? '')) at++;
    if (tokens[at]?.text === ':' && tokens[at + 1]?.text === ':') at += 2;
    const token = tokens[at];
    if (token === undefined || NO_OPERAND.has(token.text)) return first;
    if (token.text === '(') {
      const close = closing(tokens, at);
      const after = tokens[close + 1];
      if (after === undefined) return first;
      // Of another cast: `(float)x`.
      const isCast = after.kind !== 'punctuation' || (/^[-+~!*&]$/.test(after.text) && areTypes(tokens, at + 1, close));
      at = close + 1;
      if (isCast) continue;
    } else if (token.kind === 'name') {
      at = nameEnd(tokens, at);
    } else if (token.kind === 'number' || token.kind === 'string') {
      at++;
    } else return first;
    return postfixEnd(tokens, at);
  }
}

function areTypes(tokens: readonly Token[], from: number, to: number): boolean {
  return to > from && tokens.slice(from, to).every(({ text }) => WORDS.has(text) || FLOATS.has(text) || NAMES.test(text));
}

/** Behind `a::b<int, 4>`. A `<` without a call behind its `>` is a comparison. */
function nameEnd(tokens: readonly Token[], from: number): number {
  let at = from + 1;
  for (;;) {
    if (tokens[at]?.text === ':' && tokens[at + 1]?.text === ':' && tokens[at + 2]?.kind === 'name') at += 3;
    else if (tokens[at]?.text === '<') {
      let end = at + 1;
      while (/^[\w:,*&]+$/.test(tokens[end]?.text ?? '')) end++;
      if (end === at + 1 || tokens[end]?.text !== '>' || tokens[end + 1]?.text !== '(') return at;
      at = end + 1;
    } else return at;
  }
}

function postfixEnd(tokens: readonly Token[], from: number): number {
  let at = from;
  for (;;) {
    const [text, next] = [tokens[at]?.text, tokens[at + 1]];
    if (text === '(' || text === '[') at = closing(tokens, at) + 1;
    else if (text === '.' && next?.kind === 'name') at += 2;
    else if (text === '-' && next?.text === '>' && tokens[at + 2]?.kind === 'name') at += 3;
    else if ((text === '+' || text === '-') && next?.text === text && next.start === tokens[at]!.end && !isOperand(tokens[at + 2])) at += 2;
    else return Math.min(at, tokens.length);
  }
}

function isOperand(token: Token | undefined): boolean {
  return token !== undefined && (token.kind !== 'punctuation' || token.text === '(');
}

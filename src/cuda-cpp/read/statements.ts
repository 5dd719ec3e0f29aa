// Parses the statements of a function's body, as far as loop fission needs them. One statement that is not understood makes the whole body
// fail.
import { closingAngle } from './functions.js';
import { closing, type Token } from './tokens.js';

/** Token indices, both inclusive. */
interface Extent {
  readonly from: number;
  readonly to: number;
}
export interface Declarator {
  readonly name: string;
  /** Tokens between the type and the name: `*`, or none. */
  readonly prefix: string;
  /** Array dimensions with their brackets; empty for a variable that is not an array. */
  readonly suffix: string;
  readonly initializer: Extent | undefined;
}
export interface Declaration {
  readonly type: Extent;
  readonly declarators: readonly Declarator[];
}
export type Statement = Extent &
  (
    | { readonly kind: 'barrier' | 'shared' | 'simple' | 'other' }
    | { readonly kind: 'declaration'; readonly declaration: Declaration }
    | { readonly kind: 'block'; readonly body: readonly Statement[] }
    /** `head`: the tokens inside the parentheses. */
    | { readonly kind: 'for' | 'if'; readonly head: Extent; readonly body: Statement; readonly otherwise: Statement | undefined }
  );

export const TYPE_WORDS: ReadonlySet<string> = new Set([
  'const',
  'volatile',
  'unsigned',
  'signed',
  'long',
  'short',
  'int',
  'char',
  'float',
  'double',
  'bool',
]);
export const CASTS: ReadonlySet<string> = new Set(['static_cast', 'reinterpret_cast', 'const_cast']);
const NO_TYPE: ReadonlySet<string> = new Set(
  'return goto break continue do while for if switch delete new throw case default else typedef using struct class union enum static extern template asm sizeof'.split(
    ' ',
  ),
);

/** Words that begin something other than an expression, which this does not parse. */
const NO_EXPRESSION: ReadonlySet<string> = new Set(
  'return goto case default typedef using struct class union enum static extern template asm auto const'.split(' '),
);

/** The statements in [from, to]; undefined when one is not understood. */
export function statementsOf(tokens: readonly Token[], from: number, to: number): Statement[] | undefined {
  const list: Statement[] = [];
  for (let at = from; at <= to; ) {
    const one = statementAt(tokens, at, to);
    if (one === undefined) return undefined;
    list.push(one);
    at = one.to + 1;
  }
  return list;
}

function statementAt(tokens: readonly Token[], at: number, limit: number): Statement | undefined {
  if (at > limit) return undefined;
  const word = tokens[at]!.text;
  if (word === '{') {
    const to = closing(tokens, at);
    const body = statementsOf(tokens, at + 1, to - 1);
    return to <= limit && body ? { kind: 'block', from: at, to, body } : undefined;
  }
  if (word === 'for' || word === 'if') {
    if (tokens[at + 1]?.text !== '(') return undefined;
    const close = closing(tokens, at + 1);
    const body = close < limit ? statementAt(tokens, close + 1, limit) : undefined;
    if (!body) return undefined;
    const hasElse = word === 'if' && tokens[body.to + 1]?.text === 'else';
    const otherwise = hasElse ? statementAt(tokens, body.to + 2, limit) : undefined;
    if (hasElse && !otherwise) return undefined;
    return { kind: word, from: at, to: otherwise?.to ?? body.to, head: { from: at + 2, to: close - 1 }, body, otherwise };
  }
  if (word === 'while' || word === 'switch') {
    if (tokens[at + 1]?.text !== '(') return undefined;
    const body = statementAt(tokens, closing(tokens, at + 1) + 1, limit);
    return body && { kind: 'other', from: at, to: body.to };
  }
  if (word === 'do') {
    const body = statementAt(tokens, at + 1, limit);
    const end = body && simpleEnd(tokens, body.to + 1, limit);
    return end === undefined ? undefined : { kind: 'other', from: at, to: end };
  }
  const to = simpleEnd(tokens, at, limit);
  if (to === undefined) return undefined;
  if (word === 'return') return { kind: 'simple', from: at, to };
  if (word === '__syncthreads' && to === at + 3) return { kind: 'barrier', from: at, to };
  if (tokens.slice(at, at + 4).some(({ text }) => text === '__shared__')) return { kind: 'shared', from: at, to };
  const declaration = declarationOf(tokens, at, to);
  // Something that looks like a declaration but is not understood must not count as an expression.
  const angle = tokens[at + 1]?.text === '<' ? closingAngle(tokens, at + 1) : -1;
  const second = angle >= 0 ? tokens[angle + 1] : tokens[at + 1];
  if (!declaration && (NO_EXPRESSION.has(word) || (tokens[at]!.kind === 'name' && second?.kind === 'name'))) return undefined;
  return declaration ? { kind: 'declaration', from: at, to, declaration } : { kind: 'simple', from: at, to };
}

function simpleEnd(tokens: readonly Token[], from: number, limit: number): number | undefined {
  for (let i = from; i <= limit; i++) {
    const { text } = tokens[i]!;
    if (text === ';') return i;
    if (text === '(' || text === '[' || text === '{') i = closing(tokens, i);
    else if (text === '}' || text === ')' || text === ']') return undefined;
  }
  return undefined;
}

/** Parses `const unsigned int a = 1, *b, c[2];` in [from, to], with or without the semicolon. */
export function declarationOf(tokens: readonly Token[], from: number, to: number): Declaration | undefined {
  let at = from;
  let hasType = false;
  for (; at <= to; at++) {
    const { text, kind } = tokens[at]!;
    if (TYPE_WORDS.has(text)) {
      if (text !== 'const' && text !== 'volatile') hasType = true;
    } else if (kind === 'name' && !NO_TYPE.has(text) && !text.startsWith('__') && !hasType) {
      hasType = true;
      while (tokens[at + 1]?.text === ':' && tokens[at + 2]?.text === ':' && tokens[at + 3]?.kind === 'name') at += 3;
      if (tokens[at + 1]?.text === '<') {
        const close = closingAngle(tokens, at + 1);
        if (close < 0) return undefined;
        at = close;
      }
    } else break;
  }
  if (!hasType || at === from || at > to) return undefined;
  const type = { from, to: at - 1 };
  const declarators: Declarator[] = [];
  while (at <= to) {
    let prefix = '';
    while (at <= to && ['*', '&', 'const', '__restrict__'].includes(tokens[at]!.text)) prefix += `${tokens[at++]!.text} `;
    const name = tokens[at];
    if (name?.kind !== 'name' || NO_TYPE.has(name.text) || at > to) return undefined;
    let suffix = '';
    for (at++; tokens[at]?.text === '['; at++) {
      const close = closing(tokens, at);
      suffix += tokens
        .slice(at, close + 1)
        .map(({ text }) => text)
        .join(' ');
      at = close;
    }
    let initializer: Extent | undefined;
    const next = tokens[at]?.text;
    if (next === '=' && tokens[at + 1]?.text !== '=') {
      let end = at + 1;
      while (end <= to && tokens[end]!.text !== ',' && tokens[end]!.text !== ';') {
        const angle = tokens[end]!.text === '<' && tokens[end - 1]!.kind === 'name' ? closingAngle(tokens, end) : -1;
        // Its comma may separate template arguments or variables.
        if (angle >= 0 && !CASTS.has(tokens[end - 1]!.text)) return undefined;
        end = angle >= 0 ? angle + 1 : '([{'.includes(tokens[end]!.text) ? closing(tokens, end) + 1 : end + 1;
      }
      initializer = { from: at + 1, to: end - 1 };
      at = end;
    } else if (next !== ',' && next !== ';' && at <= to) {
      return undefined;
    }
    declarators.push({ name: name.text, prefix: prefix.trim().replaceAll('& &', '&&'), suffix, initializer });
    if (at > to || tokens[at]?.text === ';') break;
    at++;
  }
  return { type, declarators };
}

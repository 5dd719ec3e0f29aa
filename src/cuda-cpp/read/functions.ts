// Finds the functions and lambdas of CUDA C++ source by its tokens: where each begins, its parameters, type and body. That suffices to
// decide which of them can wait, and to rewrite them. A construct that is not understood is not reported as a function.
import { FUNCTION_ATTRIBUTES } from './attributes.js';
import { closing, type Token } from './tokens.js';

/** All members are token indices. */
export interface FunctionTokens {
  readonly kind: 'function' | 'lambda';
  /** A lambda's variable, if it initialises one. An operator's name begins with `operator`. */
  readonly name: string;
  /** The name's token; for a lambda, its `[`. */
  readonly at: number;
  /** The first token of the declaration, after any template head. */
  readonly start: number;
  /** Parentheses of the parameters; both -1 for a lambda without a parameter list. */
  readonly open: number;
  readonly close: number;
  /** The trailing return type, after `->`; undefined without one. */
  readonly trailing: readonly [from: number, to: number] | undefined;
  /** Braces of the body; both -1 for a declaration. */
  readonly bodyOpen: number;
  readonly bodyEnd: number;
  /** The class that contains it. */
  readonly className: string;
}

type Scope = { readonly kind: 'namespace' | 'class' | 'function' | 'other'; readonly name: string };

const NOT_A_NAME: ReadonlySet<string> = new Set([...FUNCTION_ATTRIBUTES, 'decltype', 'noexcept', 'requires', 'explicit', '__declspec']);
/** Words after which `[` begins a lambda although they look like a name. */
const BEFORE_LAMBDA: ReadonlySet<string> = new Set(['return', 'co_return', 'case', 'else', 'do']);

/** Most nested templates that are parsed, far more than people write. It bounds the number of visits per token. */
const MOST_ANGLES = 64;

/** The index of the `>` that closes the `<` at `open`; -1 if that is not a bracket. */
export function closingAngle(tokens: readonly Token[], open: number): number {
  let depth = 0;
  for (let i = open; i < tokens.length; i++) {
    const { text } = tokens[i]!;
    if (text === '<' && ++depth > MOST_ANGLES) return -1;
    if (text === '>' && tokens[i - 1]!.text !== '-' && --depth === 0) return i;
    else if (text === '(' || text === '[') i = closing(tokens, i);
    else if (text === ';' || text === '{' || text === '}' || text === '&' || text === '|' || text === ')') {
      if (text !== '&' || tokens[i + 1]?.text === '&') return -1;
    }
  }
  return -1;
}

/** The `(` of a call of the name at `at`, with or without template arguments; -1 if it is not a call. */
export function callOpen(tokens: readonly Token[], at: number): number {
  const next = tokens[at + 1]?.text;
  if (next === '(') return at + 1;
  if (next !== '<') return -1;
  const angle = closingAngle(tokens, at + 1);
  return angle >= 0 && tokens[angle + 1]?.text === '(' ? angle + 1 : -1;
}

/** Every function (definitions and declarations) and every lambda, in order of discovery. */
export function functionsOf(tokens: readonly Token[]): FunctionTokens[] {
  const found: FunctionTokens[] = [];
  const scopes: Scope[] = [];
  const lambdaBodies = new Set<number>();
  let start = 0;
  for (let i = 0; i < tokens.length; i++) {
    const { text } = tokens[i]!;
    const scope = scopes.at(-1);
    const isOutside = scope === undefined || scope.kind === 'namespace' || scope.kind === 'class';
    if (text === '(' && isOutside) {
      // A default argument may contain a lambda, which never waits.
      i = closing(tokens, i);
    } else if (text === '[') {
      const lambda = lambdaAt(tokens, i);
      if (lambda) {
        found.push(lambda);
        lambdaBodies.add(lambda.bodyOpen);
      }
    } else if (text === '{') {
      const made = lambdaBodies.has(i) ? { kind: 'function' as const, name: '' } : scopeOf(tokens, start, i, isOutside);
      if (made.kind === 'function' && !lambdaBodies.has(i)) {
        const head = headOf(tokens, start, i);
        if (head) found.push({ ...head, bodyOpen: i, bodyEnd: closing(tokens, i), className: scope?.name ?? '' });
      }
      scopes.push(made);
      start = i + 1;
    } else if (text === '}') {
      scopes.pop();
      start = i + 1;
    } else if (text === ';') {
      const head = isOutside ? headOf(tokens, start, i) : undefined;
      if (head) found.push({ ...head, bodyOpen: -1, bodyEnd: -1, className: scope?.name ?? '' });
      start = i + 1;
    } else if (text === ':' && scope?.kind === 'class' && /^(?:public|private|protected)$/.test(tokens[i - 1]!.text)) {
      start = i + 1;
    }
  }
  return found;
}

function scopeOf(tokens: readonly Token[], start: number, brace: number, isOutside: boolean): Scope {
  const head = tokens.slice(start, brace);
  if (head.some(({ text }) => text === 'namespace') || head.at(-1)?.text === '"C"' || head.at(-1)?.text === '"C++"') {
    return { kind: 'namespace', name: '' };
  }
  const name = classNameOf(tokens, start, brace);
  if (name !== undefined) return { kind: 'class', name };
  return { kind: isOutside && headOf(tokens, start, brace) ? 'function' : 'other', name: '' };
}

/** Matches `struct __align__(16) Name : Base {`. A function that returns a struct has a parameter list. */
function classNameOf(tokens: readonly Token[], start: number, brace: number): string | undefined {
  let name: string | undefined;
  for (let i = skipTemplate(tokens, start); i < brace; i++) {
    const { text, kind } = tokens[i]!;
    if (text === '(') return undefined;
    if (NOT_A_NAME.has(text) && tokens[i + 1]?.text === '(') i = closing(tokens, i + 1);
    else if (text === 'struct' || text === 'class' || text === 'union' || text === 'enum') name ??= '';
    else if (text === '=') return undefined;
    else if (text === '<') i = Math.max(i, closingAngle(tokens, i));
    else if (name === '' && kind === 'name') name = text;
  }
  return name;
}

function skipTemplate(tokens: readonly Token[], start: number): number {
  let at = start;
  while (tokens[at]?.text === 'template' && tokens[at + 1]?.text === '<') {
    const close = closingAngle(tokens, at + 1);
    if (close < 0) return at;
    at = close + 1;
  }
  return at;
}

/** The function head in [start, end), which a body or a semicolon follows. */
function headOf(
  tokens: readonly Token[],
  start: number,
  end: number,
): Omit<FunctionTokens, 'bodyOpen' | 'bodyEnd' | 'className'> | undefined {
  const first = skipTemplate(tokens, start);
  for (let i = first; i < end; i++) {
    const { text, kind } = tokens[i]!;
    if (text === '=' || text === 'typedef' || text === 'using' || text === 'static_assert') return undefined;
    if (text === 'operator') {
      const open = tokens.findIndex((token, at) => at > i + 1 && token.text === '(');
      return open < 0 || open >= end ? undefined : headAt(tokens, first, i, open, end, wordsOf(tokens, i, open));
    }
    if (kind === 'name' && tokens[i + 1]?.text === '(') {
      // `float (*name)(float)`
      if (tokens[i + 2]?.text === '*') return undefined;
      if (!NOT_A_NAME.has(text)) return headAt(tokens, first, i, i + 1, end, tokens[i - 1]?.text === '~' ? `~${text}` : text);
      i = closing(tokens, i + 1);
    } else if (text === '[') {
      i = closing(tokens, i);
    } else if (text === '<') {
      const close = closingAngle(tokens, i);
      if (close < 0) return undefined;
      // `template <> float f<3>(float)` is a specialisation.
      if (tokens[close + 1]?.text === '(' && tokens[i - 1]?.kind === 'name')
        return headAt(tokens, first, i - 1, close + 1, end, tokens[i - 1]!.text);
      i = close;
    }
  }
  return undefined;
}

function wordsOf(tokens: readonly Token[], from: number, to: number): string {
  return tokens
    .slice(from, to)
    .map(({ text }) => text)
    .join('');
}

function headAt(
  tokens: readonly Token[],
  start: number,
  at: number,
  open: number,
  end: number,
  name: string,
): Omit<FunctionTokens, 'bodyOpen' | 'bodyEnd' | 'className'> | undefined {
  const close = closing(tokens, open);
  if (close >= end) return undefined;
  return { kind: 'function', name, at, start, open, close, trailing: trailingType(tokens, close + 1, end) };
}

function trailingType(tokens: readonly Token[], from: number, end: number): readonly [number, number] | undefined {
  for (let i = from; i + 2 < end; i++) {
    if (tokens[i]!.text === '-' && tokens[i + 1]!.text === '>') return [i + 2, end];
    if (tokens[i]!.text === '(') i = closing(tokens, i);
    else if (tokens[i]!.text === ':') return undefined;
  }
  return undefined;
}

/** The lambda that begins at this `[`. */
function lambdaAt(tokens: readonly Token[], at: number): FunctionTokens | undefined {
  const before = tokens[at - 1];
  if (before !== undefined) {
    if (before.kind === 'number' || before.kind === 'string' || before.text === ')' || before.text === ']') return undefined;
    if (before.kind === 'name' && !BEFORE_LAMBDA.has(before.text)) return undefined;
    if (before.text === '[' || tokens[at + 1]?.text === '[') return undefined;
  }
  let next = closing(tokens, at) + 1;
  if (tokens[next]?.text === '<') next = closingAngle(tokens, next) + 1;
  let open = -1;
  let close = -1;
  if (tokens[next]?.text === '(') {
    open = next;
    close = closing(tokens, next);
    next = close + 1;
  }
  let brace = next;
  while (brace < tokens.length && tokens[brace]!.text !== '{') {
    if (';)]}'.includes(tokens[brace]!.text)) return undefined;
    brace = tokens[brace]!.text === '(' ? closing(tokens, brace) + 1 : brace + 1;
  }
  if (brace >= tokens.length) return undefined;
  const name = before?.text === '=' && tokens[at - 2]?.kind === 'name' ? tokens[at - 2]!.text : '';
  const trailing = trailingType(tokens, next, brace);
  return { kind: 'lambda', name, at, start: at, open, close, trailing, bodyOpen: brace, bodyEnd: closing(tokens, brace), className: '' };
}

/** For each token, the index in `functions` of the innermost function that contains it, or -1. */
export function owners(tokens: readonly Token[], functions: readonly FunctionTokens[]): Int32Array {
  const owner = new Int32Array(tokens.length).fill(-1);
  const outermostFirst = functions.map((_unused, i) => i).toSorted((a, b) => functions[a]!.bodyOpen - functions[b]!.bodyOpen);
  for (const i of outermostFirst) {
    const { bodyOpen, bodyEnd } = functions[i]!;
    if (bodyOpen >= 0) owner.fill(i, bodyOpen + 1, bodyEnd);
  }
  return owner;
}

// The tokens of C++ by one set of patterns: of source, with their positions, which suffices to find names outside comments and strings; and of
// text without comments and strings, for the readers of declarations. Code that needs more runs the compiler. Each function makes a single
// pass, because the source can be a megabyte of arbitrary input.

/** The backslash that continues a line; as in g++ and clang, also if spaces follow it. */
export const SPLICE: string = String.raw`\\[ \t\v\f\r]*\n`;
const TO_END = `(?:${SPLICE}|[^\\n])*`;
const END = String.raw`(?![\s\S])`;
const COMMENT = String.raw`\/\/${TO_END}|\/\*[\s\S]*?(?:\*\/|${END})`;
/** Strings and characters. The end of the text ends a raw string, too, so that no end is searched twice. */
const quoted = (end: string): string => String.raw`"(?:\\[\s\S]|[^"\\\n])*(?:"${end})|'(?:\\[\s\S]|[^'\\\n])*(?:'${end})`;
const RAW = String.raw`R"([^\s()\\]{0,16})\([\s\S]*?(?:\)\1"|${END})`;
const PREFIX = '(?:u8|[uUL])?';
const NUMBER = String.raw`\.?\d(?:[eEpP][+-]|'\w|[\w.])*`;
const NAME = String.raw`[A-Za-z_$][\w$]*`;

/** Comment, string or character, directive at the start of a line, name, number, any other character: also the quote of an unterminated string. */
const PIECE = new RegExp(`${COMMENT}|${PREFIX}(?:${RAW}|${quoted('')})|^[ \\t]*#${TO_END}|${NAME}|${NUMBER}|\\S`, 'gm');
/** An unterminated string goes on to the end of its line. */
const QUIET = new RegExp(`(?<!\\bu8)(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])|${COMMENT}|${RAW}|${quoted(`|(?=\\n)|${END}`)}`, 'g');
/** The linkage of an `extern` is the only string that readers of declarations see. */
const WORD = new RegExp(`${NUMBER}|${NAME}|"C(?:\\+\\+)?"|<<<|::|->|\\S`, 'g');

export interface SourceToken {
  readonly text: string;
  readonly start: number;
}

/** Replaces comments, strings and character literals with spaces, which preserves offsets and line breaks. */
export function withoutComments(source: string): string {
  return source.replace(QUIET, (text) => (text === "'" ? text : text.replace(/[^\n]/g, ' ')));
}

/** Names, numbers, punctuators. `text` has no comments and strings; its directives are tokens, too. */
export function wordsOf(text: string): string[] {
  return text.match(WORD) ?? [];
}

/** The same with their offsets. */
export function sourceTokens(text: string): SourceToken[] {
  return [...text.matchAll(WORD)].map((match) => ({ text: match[0], start: match.index }));
}

/** Replaces a part of a text with spaces; its lines stay. */
export function blanked(text: string, start: number, end: number): string {
  return text.slice(0, start) + text.slice(start, end).replace(/[^\r\n]/g, ' ') + text.slice(end);
}

export interface Token {
  readonly kind: 'name' | 'number' | 'string' | 'punctuation';
  readonly text: string;
  /** Offset in the source. */
  readonly start: number;
  readonly end: number;
  /** 1-based; follows line markers. */
  readonly line: number;
  /** 1-based. */
  readonly column: number;
}

export interface Directive {
  /** Begins at the `#`. */
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

export interface Tokens {
  readonly tokens: readonly Token[];
  /** Directives, which only a preprocessor can evaluate. Line markers are not included. */
  readonly directives: readonly Directive[];
}

const [QUOTE, APOSTROPHE, UNDERSCORE, DOLLAR, POINT] = [0x22, 0x27, 0x5f, 0x24, 0x2e];
const LINE_MARKER = /^\s*#\s*(?:line\s+)?(\d+)/;

/** Directives yield no tokens. Line markers, which a preprocessor leaves, set the line number. */
export function tokenize(source: string): Tokens {
  const tokens: Token[] = [];
  const directives: Directive[] = [];
  let line = 1;
  let lineStart = 0;
  const nextEnd = (from: number): number => {
    const at = source.indexOf('\n', from);
    return at < 0 ? source.length : at;
  };
  let lineEnd = nextEnd(0);
  const advance = (to: number): void => {
    for (; lineEnd < to; lineEnd = nextEnd(lineStart)) {
      line++;
      lineStart = lineEnd + 1;
    }
  };
  for (const match of source.matchAll(PIECE)) {
    const text = match[0];
    const start = match.index;
    advance(start);
    const trimmed = text.trimStart();
    if (trimmed.startsWith('//') || trimmed.startsWith('/*')) continue;
    if (trimmed.startsWith('#') && trimmed.length > 1) {
      const marker = LINE_MARKER.exec(text);
      if (marker) {
        advance(start + text.length);
        line = Number(marker[1]) - 1;
      } else {
        directives.push({ text: trimmed, line, column: start + text.length - trimmed.length - lineStart + 1 });
      }
      continue;
    }
    tokens.push({ kind: kindOf(text), text, start, end: start + text.length, line, column: start - lineStart + 1 });
  }
  return { tokens, directives };
}

/** Needs only the first and last character, since the pattern has matched the whole token. */
function kindOf(text: string): Token['kind'] {
  const last = text.charCodeAt(text.length - 1);
  if (text.length > 1 && (last === QUOTE || last === APOSTROPHE)) return 'string';
  const first = text.charCodeAt(0);
  const isLetter = (first >= 97 && first <= 122) || (first >= 65 && first <= 90) || first === UNDERSCORE || first === DOLLAR;
  if (isLetter) return 'name';
  const digit = first === POINT ? text.charCodeAt(1) : first;
  return digit >= 48 && digit <= 57 ? 'number' : 'punctuation';
}

/** Whether a launch's `<<<` begins here; with `mark`, its `>>>`. */
export function isLaunch(tokens: readonly Token[], at: number, mark: '<' | '>' = '<'): boolean {
  return [0, 1, 2].every((step) => tokens[at + step]?.text === mark && tokens[at + step]!.start === tokens[at]!.start + step);
}

/** For each bracket, its partner, even of another kind; -1 without one. Computed once per source. */
const partners = new WeakMap<readonly SourceToken[], Int32Array>();

function partnersOf(tokens: readonly SourceToken[]): Int32Array {
  const known = partners.get(tokens);
  if (known) return known;
  const found = new Int32Array(tokens.length).fill(-1);
  const open: number[] = [];
  for (const [i, { text }] of tokens.entries()) {
    if (text === '(' || text === '[' || text === '{') open.push(i);
    else if ((text === ')' || text === ']' || text === '}') && open.length > 0) {
      const at = open.pop()!;
      found[at] = i;
      found[i] = at;
    }
  }
  partners.set(tokens, found);
  return found;
}

/** The index of the bracket that closes the one at `open`, or the number of tokens. */
export function closing(tokens: readonly SourceToken[], open: number): number {
  const found = partnersOf(tokens)[open] ?? -1;
  return found > open ? found : tokens.length;
}

/** The index of the bracket that `close` closes, or -1. */
export function opening(tokens: readonly Token[], close: number): number {
  const found = partnersOf(tokens)[close] ?? -1;
  return found < close ? found : -1;
}

/** Whether all brackets match and are closed. Other sources compile on no device. */
export function hasMatchingBrackets(tokens: readonly Token[]): boolean {
  const open: string[] = [];
  for (const { text } of tokens) {
    if (text === '(') open.push(')');
    else if (text === '[') open.push(']');
    else if (text === '{') open.push('}');
    else if ((text === ')' || text === ']' || text === '}') && open.pop() !== text) return false;
  }
  return open.length === 0;
}

/** For each token, whether it is at namespace scope: outside every brace except those of namespaces and `extern "C"`. */
export function namespaceScope(tokens: readonly Token[]): boolean[] {
  const braces: boolean[] = [];
  let inner = 0;
  return tokens.map((token, i) => {
    const isOutside = inner === 0;
    if (token.text === '{') {
      const before = tokens[i - 1]?.text;
      const isNamespace = before === '"C"' || before === 'namespace' || tokens[i - 2]?.text === 'namespace' || isNestedNamespace(tokens, i);
      braces.push(isNamespace);
      if (!isNamespace) inner++;
    }
    if (token.text === '}' && braces.pop() === false) inner--;
    return isOutside;
  });
}

/** `namespace a::b {` */
function isNestedNamespace(tokens: readonly Token[], brace: number): boolean {
  let i = brace - 1;
  while (i > 0 && (tokens[i]!.text === ':' || tokens[i]!.kind === 'name') && tokens[i]!.text !== 'namespace') i--;
  return tokens[i]?.text === 'namespace';
}

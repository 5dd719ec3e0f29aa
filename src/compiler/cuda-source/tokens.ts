// The tokens of C++ by one set of patterns: of text with comments and strings for the tokenizer, and of text without them for the readers of
// declarations. Each function makes a single pass, because the source can be a megabyte of arbitrary input.

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
export const PIECE: RegExp = new RegExp(`${COMMENT}|${PREFIX}(?:${RAW}|${quoted('')})|^[ \\t]*#${TO_END}|${NAME}|${NUMBER}|\\S`, 'gm');
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

// Reads the preprocessor's directives: definitions of macros, and includes. Conditions are read in conditions.ts. `text` has no comments and
// strings (see `withoutComments`).
import { blanked, SPLICE } from './tokens.js';

export interface SourceDirective {
  /** `define`; empty for a lone `#`. */
  readonly name: string;
  /** What follows the name. */
  readonly rest: string;
  /** Begins before the `#`. */
  readonly start: number;
  readonly end: number;
}

const DIRECTIVE = new RegExp(`^[ \\t]*#[ \\t]*(\\w*)((?:${SPLICE}|[^\\n])*)`, 'gm');
const DEFINITION = /^\s*([\w$]+)(?:\(([^)\n]*)\))?([^]*)$/;
const SPLICES = new RegExp(SPLICE, 'g');

export function directivesOf(text: string): SourceDirective[] {
  return [...text.matchAll(DIRECTIVE)].map(({ 0: { length }, 1: name = '', 2: rest = '', index }) => ({
    name,
    rest,
    start: index,
    end: index + length,
  }));
}

/** Replaces directives with spaces. */
export function withoutDirectives(text: string): string {
  return text.replace(DIRECTIVE, (directive) => directive.replace(/[^\n]/g, ' '));
}

export interface Macro {
  readonly name: string;
  /** Undefined for a macro without a list. */
  readonly parameters: readonly string[] | undefined;
  /** On one line. */
  readonly body: string;
}

/** The macros that the text defines, in order. */
export function macrosIn(text: string): Macro[] {
  return directivesOf(text).flatMap(({ name, rest }) => (name === 'define' ? (macroOf(rest) ?? []) : []));
}

/** What stands behind `#define`. */
export function macroOf(rest: string): Macro | undefined {
  const [, name, list, body = ''] = DEFINITION.exec(rest) ?? [];
  const parameters = list?.split(',').map((one) => one.trim().replace(/\s*\.\.\.$/, ''));
  return name === undefined ? undefined : { name, parameters, body: body.replace(SPLICES, ' ') };
}

export interface Include {
  /** Empty for one that a macro gives. */
  readonly name: string;
  readonly isQuoted: boolean;
  /** The offset of the directive, and that of the name. */
  readonly start: number;
  readonly at: number;
  readonly end: number;
}

/** The includes outside of comments. `source` has the names, which are strings, and `text` is the same without them. */
export function includesOf(source: string, text: string): Include[] {
  if (!text.includes('include')) return [];
  return directivesOf(text).flatMap(({ name: directive, rest, start, end }) => {
    if (directive !== 'include') return [];
    const from = end - rest.length;
    const [head = '', sign, name = ''] = /^[ \t]*(["<])([^">\n]+)[">]/.exec(source.slice(from, end)) ?? [];
    return { name, isQuoted: sign === '"', start, at: from + head.indexOf(name), end: head === '' ? end : from + head.length };
  });
}

/** The source with spaces in place of the includes whose headers are `gone`. */
export function withoutIncludes(source: string, text: string, gone: (name: string) => boolean): string {
  const found = includesOf(source, text).filter(({ name }) => gone(name));
  return found.reduce((left, { start, end }) => blanked(left, start, end), source);
}

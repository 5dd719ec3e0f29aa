// Removes prototypes of kernel overloads that the source does not define. The library finds a kernel by its name alone, so such a
// prototype would make the name ambiguous for the compiler.
import { blanked, globalFunctions, type GlobalFunction } from './source-scan.js';

/** Most characters of a parameter list that are searched for its end. */
const MAX_LIST = 4000;
/** Most declarations of one kernel. */
const MOST = 20;

/**
 * Replaces with spaces the prototypes of a kernel that has one definition, with another number of parameters. `text` is the source without
 * comments.
 */
export function withoutUndefinedOverloads(source: string, text: string): string {
  if (text.indexOf('__global__') === text.lastIndexOf('__global__')) return source;
  const functions = globalFunctions(text);
  const byPath = new Map<string, GlobalFunction[]>();
  for (const one of functions) {
    const list = byPath.get(one.path);
    if (list) list.push(one);
    else byPath.set(one.path, [one]);
  }
  let made = source;
  for (const list of byPath.values()) {
    // Many functions of one name come only from arbitrary input.
    if (list.length < 2 || list.length > MOST || list.some(({ template }) => template !== undefined)) continue;
    const ends = list.map((one) => endOf(text, one));
    const defined = ends.filter((one) => one?.isDefinition);
    const own = defined[0];
    if (own === undefined || defined.length > 1 || ends.includes(undefined)) continue;
    for (const [at, one] of list.entries()) {
      const { isDefinition, parameters, end } = ends[at] as Ending;
      if (isDefinition || parameters === own.parameters || !isAlone(text, one)) continue;
      made = blanked(made, one.start, end);
    }
  }
  return made;
}

interface Ending {
  readonly isDefinition: boolean;
  readonly parameters: number;
  /** Behind the semicolon of a prototype. */
  readonly end: number;
}

/** What follows the parameters; undefined if it is neither a body nor a semicolon. */
function endOf(text: string, { open }: GlobalFunction): Ending | undefined {
  let depth = 1;
  let parameters = /^\s*(?:void\s*)?\)/.test(text.slice(open, open + 200)) ? 0 : 1;
  let at = open;
  for (; at < Math.min(text.length, open + MAX_LIST) && depth > 0; at++) {
    const sign = text[at]!;
    if (sign === '(' || sign === '<' || sign === '[') depth++;
    else if (sign === ')' || sign === '>' || sign === ']') depth--;
    else if (sign === ',' && depth === 1) parameters++;
    else if (sign === ';' || sign === '{') return undefined;
  }
  const next = /\S/.exec(text.slice(at, at + 2000));
  if (next === null || (next[0] !== '{' && next[0] !== ';')) return undefined;
  return { isDefinition: next[0] === '{', parameters, end: at + next.index + 1 };
}

/** Whether no specifier precedes `__global__`. */
function isAlone(text: string, { start }: GlobalFunction): boolean {
  const before = text.slice(Math.max(0, start - 2000), start).trimEnd();
  return before === '' || /[;{}]$/.test(before) || /(?:^|\n)[ \t]*#[^\n]*$/.test(before);
}

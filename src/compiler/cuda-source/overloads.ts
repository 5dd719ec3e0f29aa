// Removes overloads of kernels: prototypes that the source does not define, and definitions that do not have as many parameters as the caller
// declares. The library finds a kernel by its name alone, so overloads make the name ambiguous for the compiler.
import { blanked, globalFunctions, type GlobalFunction } from './source-scan.js';

/** Most characters of a parameter list that are searched for its end. */
const MAX_LIST = 4000;
/** Most declarations of one kernel. */
const MOST = 20;

/** A kernel by its name, without or with namespaces, and the number of its parameters. */
export interface WantedKernel {
  readonly name: string;
  readonly parameters: number;
}

/**
 * Replaces with spaces the prototypes of a kernel that has one definition, with another number of parameters, and the overloads of `wanted`.
 * `text` is the source without comments.
 */
export function withoutOtherOverloads(source: string, text: string, wanted?: WantedKernel): string {
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
    const isWanted = wanted?.name === list[0]!.name || wanted?.name === list[0]!.path;
    const fitting = defined.filter((one) => defined.length === 1 || (isWanted && one!.parameters === wanted.parameters));
    const own = fitting[0];
    if (own === undefined || fitting.length > 1 || ends.includes(undefined)) continue;
    for (const [at, one] of list.entries()) {
      const { isDefinition, parameters, end } = ends[at] as Ending;
      if (parameters === own.parameters || !isAlone(text, one)) continue;
      const last = isDefinition ? bodyEnd(text, end) : end;
      if (last !== undefined) made = blanked(made, one.start, last);
    }
  }
  return made;
}

/**
 * How many parameters the definitions of a kernel have that the compiler will see together: none for a template, and for definitions between
 * which a directive may choose.
 */
export function overloadsOf(text: string, path: string): readonly number[] {
  const list = globalFunctions(text).filter((one) => one.path === path && one.template === undefined);
  if (list.length < 2 || list.length > MOST) return [];
  const defined = list.flatMap((one) => {
    const end = endOf(text, one);
    return end?.isDefinition === true ? [{ ...end, start: one.start }] : [];
  });
  const between = text.slice(defined[0]?.start ?? 0, defined.at(-1)?.start ?? 0);
  return defined.length < 2 || /^[ \t]*#[ \t]*(?:if|el|endif)/m.test(between) ? [] : defined.map(({ parameters }) => parameters);
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

/** Behind the body whose brace precedes `from`; undefined if it has no end. */
function bodyEnd(text: string, from: number): number | undefined {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') depth++;
    else if (text[at] === '}' && --depth === 0) return at + 1;
  }
  return undefined;
}

/** Whether no specifier precedes `__global__`. */
function isAlone(text: string, { start }: GlobalFunction): boolean {
  const before = text.slice(Math.max(0, start - 2000), start).trimEnd();
  return before === '' || /[;{}]$/.test(before) || /(?:^|\n)[ \t]*#[^\n]*$/.test(before);
}

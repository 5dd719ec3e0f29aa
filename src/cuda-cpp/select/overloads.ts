// Overloads of kernels. The library and the compilers find a kernel by its name alone, so each overload gets a name of its own.
import { directivesOf, withoutDirectives } from '../read/directives.js';
import { globalFunctions, type GlobalFunction } from '../read/global-functions.js';
import { blanked } from '../read/tokens.js';

/** Most characters of a parameter list that are searched for its end. */
const MAX_LIST = 4000;
/** Most declarations of one kernel. */
const MOST = 20;

export interface SeparateNames {
  readonly source: string;
  /** The C++ names of the overloads that the source defines, by the name that they had. One of them keeps it. */
  readonly overloads: ReadonlyMap<string, readonly string[]>;
  /** The C++ names that overloads share because the source launches them. */
  readonly shared: ReadonlySet<string>;
}

/** A change of the source. */
interface Change {
  readonly at: number;
  readonly apply: (source: string) => string;
}

/**
 * Gives the kernels that one name means in the source names of their own, and removes their prototypes. Also removes prototypes of a kernel
 * that has one definition, with another number of parameters. The lines stay the same. `text` is the source without comments.
 *
 * Kernels keep their name if tokens do not tell which of them are compiled, or if the source launches them.
 */
export function withSeparateNames(source: string, text: string): SeparateNames {
  if (text.indexOf('__global__') === text.lastIndexOf('__global__')) return { source, overloads: new Map(), shared: new Set() };
  const code = withoutDirectives(text);
  const byPath = new Map<string, GlobalFunction[]>();
  for (const one of globalFunctions(code)) {
    const list = byPath.get(one.path);
    if (list) list.push(one);
    else byPath.set(one.path, [one]);
  }
  const overloads = new Map<string, readonly string[]>();
  const shared = new Set<string>();
  const changes: Change[] = [];
  for (const [path, list] of byPath) {
    // Many functions of one name come only from arbitrary input.
    if (list.length < 2 || list.length > MOST || list.some(({ template }) => template !== undefined)) continue;
    const ends = list.map((one) => endOf(code, one));
    const defined = list.filter((_one, at) => ends[at]?.isDefinition);
    if (defined.length === 0 || ends.includes(undefined)) continue;
    const endings = ends as Ending[];
    const blank = (at: number): Change => {
      const [{ start }, { end }] = [list[at]!, endings[at]!];
      return { at: start, apply: (now) => blanked(now, start, end) };
    };
    const prototypes = [...list.keys()].filter((at) => !endings[at]!.isDefinition);
    if (defined.length === 1) {
      const own = endings.find(({ isDefinition }) => isDefinition)!;
      const other = prototypes.filter((at) => endings[at]!.parameters !== own.parameters && isAlone(text, list[at]!));
      changes.push(...other.map(blank));
      continue;
    }
    const lists = new Set(endings.filter(({ isDefinition }) => isDefinition).map((one) => one.list));
    if (lists.size < defined.length || !areAllCompiled(text, defined) || !prototypes.every((at) => isAlone(text, list[at]!))) continue;
    if (isLaunched(text, defined[0]!)) {
      shared.add(path);
      continue;
    }
    const named = separate(text, defined);
    if (named === undefined) continue;
    changes.push(...prototypes.map(blank));
    overloads.set(
      path,
      named.map(([one, name]) => path.slice(0, path.length - one.name.length) + name),
    );
    for (const [one, name] of named) {
      const at = code.lastIndexOf(one.name, one.open - 1 - one.name.length);
      changes.push({ at, apply: (now) => now.slice(0, at) + name + now.slice(at + one.name.length) });
    }
  }
  // From the end, so that positions stay valid.
  const made = changes.toSorted((a, b) => b.at - a.at).reduce((now, { apply }) => apply(now), source);
  return { source: made, overloads, shared };
}

function isLaunched(text: string, { name }: GlobalFunction): boolean {
  return new RegExp(`\\b${name}\\s*(?:<[^;{}()]*>)?\\s*<<<`).test(text);
}

/** The kernels and their new names; undefined if they must keep theirs. */
function separate(text: string, defined: readonly GlobalFunction[]): (readonly [GlobalFunction, string])[] | undefined {
  const { name } = defined[0]!;
  const ofC = defined.filter(({ isExternC }) => isExternC);
  if (ofC.length > 1) return undefined;
  const keeps = ofC[0] ?? defined[0];
  const named = defined.map((one, at) => [one, one === keeps ? name : `${name}_overload_${at + 1}`] as const);
  return named.some(([one, made]) => one !== keeps && text.includes(made)) ? undefined : named;
}

/** Whether no two of them are in different branches of one `#if`. */
function areAllCompiled(text: string, functions: readonly GlobalFunction[]): boolean {
  const branches = new Map<number, number>();
  return functions.every(({ start }) =>
    branchesAt(text, start).every(([condition, branch]) => {
      const known = branches.get(condition) ?? branch;
      branches.set(condition, known);
      return known === branch;
    }),
  );
}

/** For each `#if` around a position: where it is, and which of its branches contains the position. */
function branchesAt(text: string, end: number): readonly (readonly [condition: number, branch: number])[] {
  const open: [number, number][] = [];
  for (const { name, start } of directivesOf(text.slice(0, end))) {
    if (name.startsWith('if')) open.push([start, 0]);
    else if (name === 'endif') open.pop();
    else if (name.startsWith('el') && open.length > 0) open.at(-1)![1]++;
  }
  return open;
}

interface Ending {
  readonly isDefinition: boolean;
  readonly parameters: number;
  /** The list, with single spaces. */
  readonly list: string;
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
  const list = text
    .slice(open, at - 1)
    .replace(/\s+/g, ' ')
    .trim();
  return { isDefinition: next[0] === '{', parameters, list, end: at + next.index + 1 };
}

/** Whether no specifier precedes `__global__`. */
function isAlone(text: string, { start }: GlobalFunction): boolean {
  const before = text.slice(Math.max(0, start - 2000), start).trimEnd();
  return before === '' || /[;{}]$/.test(before) || /(?:^|\n)[ \t]*#[^\n]*$/.test(before);
}

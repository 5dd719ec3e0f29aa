// Lists the kernels of CUDA C++ source for cudaKernel(). Each function makes a single pass, because the source can be a megabyte of arbitrary
// input.
import { FUNCTION_ATTRIBUTES } from './attributes.js';
import { macrosIn, withoutDirectives } from './directives.js';

/** Whether code of the text launches kernels (`<<<`), also by a macro that it names. A macro that only removed host code named does not count. */
export function mayLaunch(text: string): boolean {
  if (!text.includes('<<<')) return false;
  const code = withoutDirectives(text);
  if (code.includes('<<<')) return true;
  const macros = macrosIn(text);
  const named = new Set(code.match(/\w+/g));
  for (let isGrowing = true; isGrowing; ) {
    const before = named.size;
    for (const { name, body } of macros) if (named.has(name)) for (const word of body.match(/\w+/g) ?? []) named.add(word);
    isGrowing = named.size > before;
  }
  return macros.some(({ name, body }) => body.includes('<<<') && named.has(name));
}

export interface GlobalFunction {
  readonly name: string;
  /** The C++ name at the end of the source, with the namespaces. */
  readonly path: string;
  /** Offset of the kernel's `__global__`. */
  readonly start: number;
  /** Offset just after the parenthesis that opens the parameter list. */
  readonly open: number;
  readonly isExternC: boolean;
  /** The names of the parameters of its template; undefined for a kernel that is no template. */
  readonly template?: readonly string[];
}

/** Most characters that are searched before a kernel for its template, and before a brace for its namespace. Longer heads are not written. */
const MAX_HEAD = 2000;
/** Most characters of a parameter list that are searched for its end. */
const MAX_LIST = 20_000;

/** What may stand between a parameter list and its body. */
const TRAILING: readonly string[] = [...FUNCTION_ATTRIBUTES, 'noexcept'];
/** More characters than a word of those has. */
const MAX_WORD = 32;

/** Every `__global__ ... name(` of source without comments. The "C" of `extern "C"` is blank in it. */
export function globalFunctions(text: string): GlobalFunction[] {
  const found: GlobalFunction[] = [];
  /** The enclosing braces: whether each belongs to an `extern "C"`, and the namespaces up to it. */
  const braces: { readonly isExtern: boolean; readonly path: string }[] = [];
  let externs = 0;
  /** Where the current declaration began, whether it says extern, and where its `__global__` is. */
  let from = 0;
  let saysExtern = false;
  let start = -1;
  /** The end of a macro's arguments. */
  let behind = 0;
  for (const match of text.matchAll(/[;{}(]|\b(?:__global__|extern)\b/g)) {
    const { index: at } = match;
    const token = match[0];
    if (at < behind) continue;
    if (token === 'extern') {
      saysExtern = true;
      continue;
    }
    if (token === '__global__') {
      start = at;
      continue;
    }
    if (token === '(') {
      const name = start < 0 ? '' : wordBefore(text, at, start + '__global__'.length);
      if (name === '' || FUNCTION_ATTRIBUTES.includes(name)) continue;
      const end = listEnd(text, at + 1);
      if (isHeadBehind(text, end)) {
        behind = end;
        continue;
      }
      const template = templateNames(text.slice(Math.max(from, start - MAX_HEAD), start));
      const path = (braces.at(-1)?.path ?? '') + name;
      found.push({ name, path, start, open: at + 1, isExternC: externs > 0 || saysExtern, ...(template && { template }) });
      start = -1;
      continue;
    }
    if (token === '{') {
      const isExtern = wordBefore(text, at, from) === 'extern';
      braces.push({ isExtern, path: (braces.at(-1)?.path ?? '') + namespacePath(text.slice(Math.max(from, at - MAX_HEAD), at)) });
      if (isExtern) externs++;
    } else if (token === '}' && braces.pop()?.isExtern) {
      externs--;
    }
    from = at + 1;
    saysExtern = false;
    start = -1;
  }
  return found;
}

/** The kernels that can be named without arguments: defined, no templates, and no overloads. Each once. */
export function namedOnce(text: string, functions: readonly GlobalFunction[]): GlobalFunction[] {
  const definitions = new Map<string, number>();
  for (const one of functions) definitions.set(one.path, (definitions.get(one.path) ?? 0) + (isDefinition(text, one) ? 1 : 0));
  const seen = new Set<string>();
  return functions.filter(({ path, template, isExternC }) => {
    const count = definitions.get(path)!;
    const isLeft = template !== undefined || count === 0 || (!isExternC && count > 1) || seen.has(path);
    seen.add(path);
    return !isLeft;
  });
}

/** Whether a body follows the parameter list. */
function isDefinition(text: string, { open }: GlobalFunction): boolean {
  const from = behindAttributes(text, listEnd(text, open));
  return /^[\w\s]*\{/.test(text.slice(from, from + MAX_HEAD));
}

/** Whether the list that ends here is of a macro of attributes, such as `BOUNDS(128)`: the rest of the head follows, not a body. */
function isHeadBehind(text: string, end: number): boolean {
  const from = behindAttributes(text, end);
  return /[\w$]/.test(text[from] ?? '') && !/^[\w\s]+[{;]/.test(text.slice(from, from + MAX_HEAD));
}

/** Offset just after the parenthesis that closes the list which `open` is in. */
function listEnd(text: string, open: number): number {
  let depth = 1;
  let at = open;
  for (; at < Math.min(text.length, open + MAX_LIST) && depth > 0; at++) {
    if (text[at] === '(') depth++;
    else if (text[at] === ')') depth--;
  }
  return at;
}

/** Offset of what follows spaces and attributes. */
function behindAttributes(text: string, from: number): number {
  let at = from;
  for (;;) {
    while (at < text.length && /\s/.test(text[at]!)) at++;
    const word = /^\w+/.exec(text.slice(at, at + MAX_WORD))?.[0] ?? '';
    if (!TRAILING.includes(word)) return at;
    at += word.length;
    while (at < text.length && /\s/.test(text[at]!)) at++;
    if (text[at] === '(') at = listEnd(text, at + 1);
  }
}

/** `a::b::` of `namespace a::b`; empty for what opens no namespace, or one without a name. */
function namespacePath(head: string): string {
  const name = /\bnamespace\s+([A-Za-z_][\w:\s]*?)\s*$/.exec(head)?.[1];
  return name === undefined ? '' : `${name.replace(/\s+|\binline\b/g, '')}::`;
}

/** The names of the last template's parameters in the head of a declaration; undefined without one. */
function templateNames(head: string): string[] | undefined {
  const at = head.lastIndexOf('template');
  const list = at < 0 ? undefined : /^template\s*<([\s\S]*)>/.exec(head.slice(at))?.[1];
  // The name of each ends its part, or precedes a default; names inside of types do no harm.
  return list?.match(/[A-Za-z_]\w*/g)?.map(String) ?? (list === undefined ? undefined : []);
}

/** The word that ends before `to`, ignoring spaces, and starts after `from`. */
function wordBefore(text: string, to: number, from: number): string {
  let end = to;
  while (end > from && /\s/.test(text[end - 1]!)) end--;
  let begin = end;
  while (begin > from && /[\w$]/.test(text[begin - 1]!)) begin--;
  return text.slice(begin, end);
}

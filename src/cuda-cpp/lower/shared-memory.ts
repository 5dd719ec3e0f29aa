// Finds, by tokens, the shared memory that functions declare, and the atomic functions that operate on it. Those need no atomic
// instruction, because a block never leaves its pool thread (the shim's block_atomics.h).
import { BodyText } from '../read/variable-changes.js';
import type { Edit } from '../read/source-edits.js';
import { functionsOf, type FunctionTokens } from '../read/functions.js';
import { declarationOf } from '../read/statements.js';
import { closing, type Token } from '../read/tokens.js';

export interface SharedVariable {
  readonly name: string;
  /** An array's extents as spelled; empty for a scalar. */
  readonly sizes: readonly string[];
  /** Whether it has a built-in type other than a pointer, so that an element of it lies in shared memory. */
  readonly isPlain: boolean;
}

const ATOMIC = /^atomic(?:Add|Sub|And|Or|Xor|Min|Max|Inc|Dec|Exch|CAS)$/;
const PLAIN_TYPE =
  /^(?:(?:unsigned|signed|long|short|int|char|float|double|bool|size_t|u?int(?:8|16|32|64)_t|(?:u?(?:char|short|int|long|longlong)|float|double)[1-4])(?: |$))+$/;

/** The variables that [from, to] declares; empty when it is not understood. */
export function sharedBy(tokens: readonly Token[], from: number, to: number): SharedVariable[] {
  const rest = withoutSpecifiers(tokens, from, to);
  const declaration = rest.length > 0 ? declarationOf(rest, 0, rest.length - 1) : undefined;
  if (declaration === undefined) return [];
  const type = words(rest.slice(declaration.type.from, declaration.type.to + 1));
  return declaration.declarators.map(({ name, prefix, suffix }) => ({
    name,
    sizes:
      suffix === ''
        ? []
        : suffix
            .slice(1, -1)
            .split('][')
            .map((size) => size.trim()),
    isPlain: prefix === '' && PLAIN_TYPE.test(type),
  }));
}

/** The tokens of a shared memory declaration without storage specifiers and alignment. */
export function withoutSpecifiers(tokens: readonly Token[], from: number, to: number): Token[] {
  const rest: Token[] = [];
  for (let i = from; i <= to; i++) {
    const { text } = tokens[i]!;
    if (text === '__align__' || text === 'alignas' || text === '__attribute__') i = closing(tokens, i + 1);
    else if (text !== 'extern' && text !== 'static' && text !== '__shared__') rest.push(tokens[i]!);
  }
  return rest;
}

function words(tokens: readonly Token[]): string {
  return tokens.map(({ text }) => text).join(' ');
}

/** Renames atomic functions on the source's shared memory to their block-scope versions. */
export function sharedAtomics(tokens: readonly Token[]): Edit[] {
  if (!tokens.some(({ text }) => text === '__shared__') || !tokens.some(({ text }) => ATOMIC.test(text))) return [];
  const functions = functionsOf(tokens);
  const own = new Set(functions.map(({ name }) => name));
  const lambdas = functions.filter(({ kind }) => kind === 'lambda');
  return functions.flatMap((fn) => {
    const isPlainFunction = fn.kind === 'function' && fn.bodyOpen >= 0 && fn.bodyEnd < tokens.length;
    // A lambda's parameter may hide the shared variable.
    if (!isPlainFunction || lambdas.some(({ at }) => at > fn.bodyOpen && at < fn.bodyEnd)) return [];
    return atomicsOn(tokens, fn, sharedIn(tokens, fn))
      .filter((at) => !own.has(tokens[at]!.text))
      .map((at) => ({ start: tokens[at]!.end, end: tokens[at]!.end, text: '_block' }));
  });
}

/** The shared variables of a function whose names have no other meaning in it. */
export function sharedIn(tokens: readonly Token[], fn: FunctionTokens): Map<string, SharedVariable> {
  const found = new Map<string, SharedVariable>();
  const body = new BodyText(tokens, fn);
  for (let i = fn.bodyOpen + 1; i < fn.bodyEnd; i++) {
    if (tokens[i]!.text !== '__shared__') continue;
    let first = i;
    while (!';{}'.includes(tokens[first - 1]!.text)) first--;
    let last = i;
    while (last < fn.bodyEnd && tokens[last]!.text !== ';') last++;
    for (const one of sharedBy(tokens, first, last - 1)) {
      const isOne = !found.has(one.name) && isAlwaysOne(tokens, body, fn, one.name, first, last);
      found.set(one.name, isOne ? one : { ...one, isPlain: false });
    }
    i = last;
  }
  return found;
}

/** Whether the name refers to the declaration in [first, last] throughout the function. */
function isAlwaysOne(tokens: readonly Token[], body: BodyText, fn: FunctionTokens, name: string, first: number, last: number): boolean {
  let declaration: number | undefined;
  for (let i = fn.open + 1; i < fn.bodyEnd; i++) {
    if (tokens[i]!.text !== name || body.isMember(i)) continue;
    const variable = body.variableAt(i);
    if (variable === undefined) return false;
    declaration ??= variable.at;
    if (variable.at !== declaration || declaration < first || declaration > last) return false;
  }
  return true;
}

/** Tokens of the atomic functions whose first argument is the address of an element of `shared`. */
export function atomicsOn(tokens: readonly Token[], fn: FunctionTokens, shared: ReadonlyMap<string, SharedVariable>): number[] {
  const found: number[] = [];
  for (let i = fn.bodyOpen + 1; i < fn.bodyEnd; i++) {
    if (!ATOMIC.test(tokens[i]!.text) || tokens[i + 1]!.text !== '(' || '.>:'.includes(tokens[i - 1]!.text)) continue;
    if (isElement(tokens, i + 2, shared)) found.push(i);
  }
  return found;
}

/** Matches `&name[i][j],`, `&name,`, `name,` and `name + ...,`. */
function isElement(tokens: readonly Token[], from: number, shared: ReadonlyMap<string, SharedVariable>): boolean {
  const hasAmpersand = tokens[from]!.text === '&';
  let at = hasAmpersand ? from + 1 : from;
  const variable = shared.get(tokens[at]!.text);
  if (!variable?.isPlain) return false;
  const dimensions = variable.sizes.length;
  if (!hasAmpersand) {
    if (dimensions !== 1 || !',+'.includes(tokens[at + 1]!.text)) return false;
    for (at++; tokens[at]!.text !== ','; at++) {
      if ('?=&|<>;'.includes(tokens[at]!.text)) return false;
      if (tokens[at]!.text === '(' || tokens[at]!.text === '[') at = closing(tokens, at);
      if (at + 1 >= tokens.length) return false;
    }
    return true;
  }
  for (let n = 0; n < dimensions; n++) {
    if (tokens[at + 1]?.text !== '[') return false;
    at = closing(tokens, at + 1);
  }
  return tokens[at + 1]?.text === ',';
}

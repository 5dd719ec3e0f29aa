// Lists the variables that CUDA C++ source declares outside functions, and their types, by scanning tokens. What tokens do not tell
// (macros, typedefs, templates) stays undefined, and the compiled image decides.
import { DTYPES, type DType } from '../../core/elements/dtype.js';
import { ATTRIBUTES } from './attributes.js';
import { withoutDirectives } from './directives.js';
import { wordsOf } from './tokens.js';
import { dtypeOfWords } from './type-words.js';

export type VariableSpace = 'device' | 'constant';

export interface SourceVariable {
  /** The name that callers pass: qualified with its namespaces (`physics::gravity`), or unqualified when it has C linkage. */
  readonly name: string;
  /** The C++ name, qualified with its namespaces, as valid at the end of the source. */
  readonly path: string;
  readonly space: VariableSpace;
  /** Whether the variable is read-only. */
  readonly isConst: boolean;
  /** Whether it is declared here and defined elsewhere. */
  readonly isExtern: boolean;
  /** Whether it is static in a namespace, or in an unnamed namespace: compilers then choose an unpredictable symbol name. */
  readonly isHidden: boolean;
  /** `float weights[9]`. */
  readonly text: string;
  /** The element type; undefined when the words are not a known scalar type. */
  readonly dtype: DType | undefined;
  /** Undefined when tokens do not tell the size. */
  readonly byteLength: number | undefined;
}

const OF_DEVICE: ReadonlySet<string> = new Set(['__device__', '__constant__']);
/** Words that specify storage, not type. */
const STORAGE: ReadonlySet<string> = new Set([
  ...OF_DEVICE,
  'static',
  'extern',
  'inline',
  'constexpr',
  'constinit',
  'const',
  'volatile',
  '__restrict__',
  '__restrict',
  'struct',
  'class',
  'union',
  'enum',
  '"C"',
  '"C++"',
]);
const DEFINES_TYPE: ReadonlySet<string> = new Set(['struct', 'class', 'union', 'enum']);
const WITH_PARENTHESES: ReadonlySet<string> = new Set([...ATTRIBUTES, 'decltype']);
const BEHIND_PARAMETERS: ReadonlySet<string> = new Set(['const', 'volatile', 'noexcept', 'override', 'final', 'requires']);
const OPENING = '([{';
const CLOSING = ')]}';
const POINTER_BYTES = 8;
/** Stands for an unnamed namespace in the list of scopes. */
const NAMELESS = '{}';

/**
 * Variables at namespace scope. `text` has no comments and strings (see `withoutComments`); directives are skipped. `source` still has the
 * strings, which tell the language of an `extern`; without it, every enclosing `extern` block counts as C linkage.
 */
export function variablesOf(text: string, source: string = text): SourceVariable[] {
  const words = wordsOf(
    withoutDirectives(text).replace(/\bextern\b\s+/g, (word, at: number) => withLinkage(word, source.slice(at, at + word.length))),
  );
  const found: SourceVariable[] = [];
  /** The enclosing scopes: names of namespaces, and linkage strings in quotes. */
  const scopes: string[] = [];
  for (let at = 0; at < words.length; ) {
    if (words[at] === '}') {
      scopes.pop();
      at++;
      continue;
    }
    const [end, opens] = declarationEnd(words, at);
    const declaration = words.slice(at, end);
    if (opens) scopes.push(scopeOf(declaration));
    else if (isOfDevice(declaration)) found.push(...declared(declaration, scopes));
    at = end + 1;
  }
  return found;
}

/** Restores the linkage string of `word`, which is `extern` and the spaces that replaced the string. */
function withLinkage(word: string, given: string): string {
  const linkage = /^extern\s*("C(?:\+\+)?")/.exec(given)?.[1];
  return linkage === undefined ? word : `extern ${linkage} `;
}

function scopeOf(declaration: readonly string[]): string {
  if (!declaration.includes('namespace')) return declaration.includes('"C++"') ? '"C++"' : '"C"';
  return declaration.filter((word) => !['inline', 'namespace', 'extern'].includes(word)).join('') || NAMELESS;
}

/** Whether the declaration's own linkage, or else the innermost enclosing one, is C. */
function isOfC(declaration: readonly string[], scopes: readonly string[]): boolean {
  const linkage = declaration.findLast((word) => word.startsWith('"C')) ?? scopes.findLast((scope) => scope.startsWith('"C'));
  return linkage === '"C"';
}

/** Where a declaration ends: at its `;`, after a function's body, or at the brace of a scope that it opens. */
function declarationEnd(words: readonly string[], from: number): readonly [end: number, opens: boolean] {
  let isNamespace = false;
  let hasParameters = false;
  let hasValue = false;
  for (let at = from; at < words.length; at++) {
    const word = words[at]!;
    if (word === ';') return [at, false];
    // The brace closes the scope; the words before it are not a known declaration.
    if (word === '}') return [at - 1, false];
    if (word === 'namespace') isNamespace = true;
    if (word === 'operator') {
      at = operatorEnd(words, at);
      continue;
    }
    if (word === '=') hasValue = true;
    if (word === '(' && !WITH_PARENTHESES.has(words[at - 1] ?? '')) hasParameters = true;
    if (word === '{' && (isNamespace || words[at - 1] === 'extern' || words[at - 1]?.startsWith('"C'))) return [at, true];
    if (!OPENING.includes(word)) continue;
    at = closing(words, at);
    if (word === '{' && hasParameters && !hasValue) return [at, false];
  }
  return [words.length, false];
}

/** The last word of the name of an operator. The `=` of `operator+=` gives no value, and the first parentheses of `operator()` are its name. */
function operatorEnd(words: readonly string[], operator: number): number {
  let at = operator + (words[operator + 1] === '(' ? 2 : 1);
  while (at + 1 < words.length && words[at + 1] !== '(') at++;
  return at;
}

/** Ignores words inside brackets, because a class may have `__device__` members. */
function isOfDevice(declaration: readonly string[]): boolean {
  for (let at = 0; at < declaration.length; at++) {
    if (OF_DEVICE.has(declaration[at]!)) return true;
    if (OPENING.includes(declaration[at]!)) at = closing(declaration, at);
  }
  return false;
}

function closing(words: readonly string[], open: number): number {
  let depth = 0;
  for (let at = open; at < words.length; at++) {
    if (OPENING.includes(words[at]!)) depth++;
    else if (CLOSING.includes(words[at]!) && --depth === 0) return at;
  }
  return words.length;
}

/** One name that a declaration declares. */
interface Declarator {
  /** The type (in the first declarator only), the stars and the name. */
  readonly words: readonly string[];
  /** The text inside each pair of square brackets. */
  readonly extents: readonly string[];
  readonly isFunction: boolean;
}

/** The type precedes the first name; stars and `const` precede each name. */
function declared(declaration: readonly string[], scopes: readonly string[]): SourceVariable[] {
  if (['template', 'typedef', 'using', 'friend'].includes(declaration[0]!)) return [];
  const [first, ...others] = declarators(declaration);
  const star = first.words.findIndex((word) => word === '*' || word === '&');
  const typeEnd = star < 0 ? first.words.length - 1 : star;
  const type = first.words.slice(0, typeEnd);
  const space = type.includes('__constant__') ? 'constant' : 'device';
  const isExtern = type.includes('extern') && !declaration.includes('=');
  const scope = scopes.filter((one) => !one.startsWith('"C') && one !== NAMELESS).join('::');
  const isHidden = scopes.includes(NAMELESS) || (scope !== '' && type.includes('static'));
  const hasPlainName = scope === '' || (!isHidden && isOfC(type, scopes));
  const plainType = type.filter((word) => !STORAGE.has(word));
  const valueType = dtypeOfWords(plainType.filter((word) => word !== 'std' && word !== '::'));
  const shownType = plainType.join(' ').replaceAll(' :: ', '::').replaceAll(' <', '<');
  return [{ ...first, words: first.words.slice(typeEnd) }, ...others].flatMap(({ words, extents, isFunction }) => {
    const plain = words.at(-1) ?? '';
    if (isFunction || !/^[A-Za-z_]/.test(plain)) return [];
    const stars = words.filter((word) => word === '*').length;
    const isConst = stars > 0 ? words.lastIndexOf('const') > words.lastIndexOf('*') : type.includes('const');
    const dtype = stars > 0 ? undefined : valueType;
    const elementBytes = stars > 0 ? POINTER_BYTES : dtype && DTYPES[dtype].byteSize;
    const count = extents.reduce((product, extent) => product * countOf(extent), 1);
    return {
      name: hasPlainName ? plain : `${scope}::${plain}`,
      path: scope === '' ? plain : `${scope}::${plain}`,
      space,
      isConst: isConst || type.includes('constexpr'),
      isExtern,
      isHidden,
      text: `${shownType}${'*'.repeat(stars)} ${plain}${extents.map((extent) => `[${extent}]`).join('')}`,
      dtype,
      byteLength: elementBytes === undefined || Number.isNaN(count) ? undefined : elementBytes * count,
    };
  });
}

/** Evaluates products of integers; NaN for any other expression. */
function countOf(extent: string): number {
  const factors = extent.split('*').map((factor) =>
    factor
      .trim()
      .replaceAll("'", '')
      .replace(/[uUlL]+$/, ''),
  );
  return factors.reduce((product, factor) => product * (/^(?:\d+|0[xX][\da-fA-F]+)$/.test(factor) ? Number(factor) : Number.NaN), 1);
}

/** Splits at commas; omits attributes, initial values, template arguments and the bodies of types. */
function declarators(declaration: readonly string[]): [Declarator, ...Declarator[]] {
  const found: Declarator[] = [];
  let words: string[] = [];
  let extents: string[] = [];
  let isFunction = false;
  let hasValue = false;
  let hasBody = false;
  const end = (): void => {
    found.push({ words, extents, isFunction });
    [words, extents, isFunction, hasValue] = [[], [], false, false];
  };
  for (let at = 0; at < declaration.length; at++) {
    const word = declaration[at]!;
    if (word === ',') end();
    else if (word === 'operator') {
      isFunction = true;
      at = operatorEnd(declaration, at);
    } else if (WITH_PARENTHESES.has(word)) at = closing(declaration, at + 1);
    else if (OPENING.includes(word)) {
      const close = closing(declaration, at);
      // A macro's call may precede a declaration without ending one itself.
      if (word === '(' && !hasValue && isMacroCall(declaration[close + 1])) [words, extents] = [[], []];
      else if (word === '(' && !hasValue) isFunction = true;
      if (word === '[' && !hasValue) extents.push(declaration.slice(at + 1, close).join(' '));
      // Distinguishes `struct S { ... } s` from `S s { ... }`.
      if (word === '{' && !hasValue) hasValue = hasBody || !(hasBody = isBodyOfType(words));
      at = close;
    } else if (word === '<' && !hasValue) {
      words.push('<...>');
      at = closingAngle(declaration, at);
    } else if (word === '=') hasValue = true;
    else if (!hasValue) words.push(word);
  }
  end();
  return found as [Declarator, ...Declarator[]];
}

/** Whether a parenthesised list that `next` follows belongs to a macro call rather than to a function. */
function isMacroCall(next: string | undefined): boolean {
  return next !== undefined && /^[A-Za-z_]/.test(next) && !BEHIND_PARAMETERS.has(next);
}

function isBodyOfType(words: readonly string[]): boolean {
  const at = words.findIndex((word) => DEFINES_TYPE.has(word));
  return at >= 0 && words.slice(at + 1).filter((word) => !STORAGE.has(word)).length <= 1;
}

function closingAngle(words: readonly string[], open: number): number {
  let depth = 0;
  for (let at = open; at < words.length; at++) {
    if (words[at] === '<') depth++;
    else if (words[at] === '>' && --depth === 0) return at;
  }
  return words.length;
}

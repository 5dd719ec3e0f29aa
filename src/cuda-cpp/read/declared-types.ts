// Collects the types that CUDA C++ source declares in the global namespace, by scanning tokens: aliases, macros that stand for types,
// structs and enums. A name with several meanings, or whose meaning depends on the preprocessor, maps to undefined.

import { ATTRIBUTES } from './attributes.js';
import { directivesOf, macroOf } from './directives.js';
import { fieldsOf, type SourceField } from './struct-fields.js';
import { wordsOf } from './tokens.js';

/** The meaning of a type name. */
export type TypeMeaning =
  | { readonly kind: 'alias'; readonly words: readonly string[]; readonly isMacro?: boolean }
  /** `fields` is undefined when only the compiler knows them; a declaration without a body comes before the definition. */
  | { readonly kind: 'struct'; readonly fields?: readonly SourceField[]; readonly isForward?: boolean }
  /** `words` is the underlying type; undefined when the compiler chooses it. */
  | { readonly kind: 'enum'; readonly words: readonly string[] | undefined };

/** The value is undefined when the name's meaning is ambiguous. */
export type DeclaredTypes = ReadonlyMap<string, TypeMeaning | undefined>;

const TAGS: ReadonlySet<string> = new Set(['struct', 'class', 'union', 'enum']);
const NAME = /^[A-Za-z_$][\w$]*$/;
/** Placeholder words for the start and the end of a conditional group. */
const IF = '\u0001';
const ENDIF = '\u0002';
/** Placeholder words for a braced body and a parenthesised list. */
const BODY = '{}';
const PARENTHESES = '()';

/** `text` must have no comments and strings (see `withoutComments`). */
export function declaredTypes(text: string): DeclaredTypes {
  const found = new Map<string, TypeMeaning | undefined>();
  const add = (name: string, meaning: TypeMeaning | undefined): void => {
    const earlier = found.get(name);
    if (isForward(meaning) && earlier?.kind === 'struct') return;
    if (found.has(name) && !isForward(earlier) && JSON.stringify(earlier) !== JSON.stringify(meaning)) meaning = undefined;
    if (isForward(earlier) && meaning?.kind !== 'struct') meaning = undefined;
    found.set(name, meaning);
  };
  const rest = withMarkedConditions(text, add);
  for (const { words, body, isConditional } of declarationsOf(wordsOf(rest))) {
    for (const [name, meaning] of namedBy(words, body)) add(name, isConditional ? undefined : meaning);
  }
  return found;
}

function isForward(meaning: TypeMeaning | undefined): boolean {
  return meaning?.kind === 'struct' && meaning.isForward === true;
}

/** Removes directives: passes the macros to `add`, and marks conditional groups with IF and ENDIF. */
function withMarkedConditions(text: string, add: (name: string, meaning: TypeMeaning | undefined) => void): string {
  let depth = 0;
  let made = '';
  let from = 0;
  for (const { name: directive, rest, start, end } of directivesOf(text)) {
    made += text.slice(from, start);
    from = end;
    if (directive.startsWith('if')) {
      depth++;
      made += IF;
    } else if (directive === 'endif') {
      depth = Math.max(0, depth - 1);
      made += ENDIF;
    } else if (directive === 'define' || directive === 'undef') {
      const macro = macroOf(rest);
      if (macro === undefined) continue;
      const words = wordsOf(macro.body);
      const isType = directive === 'define' && depth === 0 && macro.parameters === undefined && words.length > 0 && isTypeName(words);
      add(macro.name, isType ? { kind: 'alias', words, isMacro: true } : undefined);
    }
  }
  return made + text.slice(from);
}

function isTypeName(words: readonly string[]): boolean {
  return words.every((word) => word === '*' || word === '::' || NAME.test(word));
}

interface Declaration {
  readonly words: readonly string[];
  /** The words of its first braced body. */
  readonly body: readonly string[];
  readonly isConditional: boolean;
}

/** Declarations of the global namespace that end with `;`. Each body and each parenthesised list is one word. */
function declarationsOf(words: readonly string[]): Declaration[] {
  const found: Declaration[] = [];
  let held: string[] = [];
  let body: readonly string[] = [];
  let conditions = 0;
  let isConditional = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (word === IF || word === ENDIF) {
      conditions = Math.max(0, conditions + (word === IF ? 1 : -1));
      if (held.length > 0) isConditional = true;
      continue;
    }
    if (held.length === 0) isConditional = conditions > 0;
    if (word === ';' || word === '}') {
      if (word === ';' && held.length > 0) found.push({ words: held, body, isConditional });
      held = [];
    } else if (word === '{' && held.length === 1 && held[0] === 'extern') {
      held = [];
    } else if (word === '{' || word === '(') {
      const end = closingOf(words, at);
      if (word === '{' && !held.includes(BODY)) body = words.slice(at + 1, end);
      for (; at < end; at++) {
        if (words[at] === IF || words[at] === ENDIF) conditions = Math.max(0, conditions + (words[at] === IF ? 1 : -1));
      }
      const isFunction = word === '{' && (held[0] === 'namespace' || held[1] === 'namespace' || endsParameters(held));
      if (isFunction) held = [];
      else held.push(word === '{' ? BODY : PARENTHESES);
    } else {
      held.push(word);
    }
  }
  return found;
}

/** Whether a body that follows these words is a function's body. */
function endsParameters(words: readonly string[]): boolean {
  const last = words.findLastIndex((word) => !['const', 'noexcept', 'volatile'].includes(word));
  return words[last] === PARENTHESES && !ATTRIBUTES.includes(words[last - 1] ?? '');
}

function closingOf(words: readonly string[], open: number): number {
  const [opening, closing] = words[open] === '{' ? ['{', '}'] : ['(', ')'];
  let depth = 0;
  for (let at = open; at < words.length; at++) {
    if (words[at] === opening) depth++;
    else if (words[at] === closing && --depth === 0) return at;
  }
  return words.length;
}

type Named = readonly [name: string, meaning: TypeMeaning | undefined];

function namedBy(given: readonly string[], body: readonly string[]): Named[] {
  const words = given.filter(
    (word, at) => !ATTRIBUTES.includes(word) && !(word === PARENTHESES && ATTRIBUTES.includes(given[at - 1] ?? '')),
  );
  const isAligned = words.length !== given.length;
  if (words[0] === 'typedef') return namedByTypedef(words.slice(1), isAligned ? undefined : body);
  if (words[0] === 'using') {
    const [, name = '', equals] = words;
    if (equals !== '=') return [];
    const type = words.slice(3);
    return [[name, isTypeName(type) ? { kind: 'alias', words: type } : undefined]];
  }
  if (!TAGS.has(words[0] ?? '')) return [];
  const { tag, meaning } = taggedType(words, isAligned ? undefined : body);
  return tag === undefined ? [] : [[tag, meaning]];
}

/**
 * Reads `struct S { ... }` and `enum class E : int { ... }`. `fields` are the words of its body; undefined if they do not tell the layout.
 * `next` is the index of the first declarator.
 */
function taggedType(
  words: readonly string[],
  fields: readonly string[] | undefined,
): { tag: string | undefined; meaning: TypeMeaning; next: number } {
  const isEnum = words[0] === 'enum';
  const isScoped = isEnum && (words[1] === 'class' || words[1] === 'struct');
  const from = isScoped ? 2 : 1;
  const tag = NAME.test(words[from] ?? '') ? words[from] : undefined;
  const body = words.indexOf(BODY);
  const colon = words.indexOf(':');
  const end = body >= 0 ? body : words.length;
  const stated = colon >= 0 && colon < end ? words.slice(colon + 1, end) : isScoped ? ['int'] : undefined;
  return {
    tag,
    meaning: isEnum ? { kind: 'enum', words: stated } : structOf(words, body, colon >= 0 && colon < end ? undefined : fields),
    next: body >= 0 ? body + 1 : from + (tag === undefined ? 0 : 1),
  };
}

function structOf(words: readonly string[], body: number, fields: readonly string[] | undefined): TypeMeaning {
  if (body < 0) return { kind: 'struct', isForward: true };
  const read = words[0] === 'union' || fields === undefined ? undefined : fieldsOf(fields);
  return read === undefined ? { kind: 'struct' } : { kind: 'struct', fields: read };
}

function namedByTypedef(words: readonly string[], body: readonly string[] | undefined): Named[] {
  const found: Named[] = [];
  let base: readonly string[] | undefined;
  let own: TypeMeaning | undefined;
  let declarators: readonly string[];
  if (TAGS.has(words[0] ?? '') && words.includes(BODY)) {
    const { tag, meaning, next } = taggedType(words, body);
    if (tag !== undefined) found.push([tag, meaning]);
    own = meaning;
    declarators = words.slice(next);
  } else {
    // The type ends before the stars and the name of the first declarator.
    const comma = words.indexOf(',');
    const first = comma < 0 ? words : words.slice(0, comma);
    const star = first.indexOf('*');
    const typeEnd = star >= 0 ? star : first.length - 1;
    base = words.slice(0, Math.max(0, typeEnd));
    if (!isTypeName(base)) return found;
    declarators = words.slice(typeEnd);
  }
  for (const declarator of splitAtCommas(declarators)) {
    const name = declarator.at(-1) ?? '';
    const before = declarator.slice(0, -1);
    if (!NAME.test(name) || !isTypeName(before)) continue;
    // `typedef struct P P;` gives no new name.
    if (base?.at(-1) === name && TAGS.has(base[0] ?? '') && before.length === 0) continue;
    if (base) found.push([name, { kind: 'alias', words: [...base, ...before] }]);
    else found.push([name, before.length === 0 ? own : undefined]);
  }
  return found;
}

function splitAtCommas(words: readonly string[]): string[][] {
  const parts: string[][] = [[]];
  for (const word of words) {
    if (word === ',') parts.push([]);
    else parts.at(-1)!.push(word);
  }
  return parts;
}

// Reads the parameter list of a `__global__` function from CUDA C++ source, by scanning tokens. It reports what it cannot resolve without a
// C++ parser (templates, types from headers, macros with arguments) as unknown, and leaves those checks to the compiler.
import type { DType } from '../../core/elements/dtype.js';
import { declaredTypes, type DeclaredTypes } from './declared-types.js';
import type { GlobalFunction } from './global-functions.js';
import type { SourceField } from './struct-fields.js';
import { wordsOf } from './tokens.js';
import { isTypeWord, meaningOf } from './type-words.js';

/** A type in the source, as far as tokens tell. */
export interface SourceType {
  /** The element type; undefined when tokens do not tell it, or when the type has none. */
  readonly dtype: DType | undefined;
  /** Also false when tokens do not tell. */
  readonly isPointer: boolean;
  /** Whether the pointee is const. */
  readonly isConst: boolean;
  /**
   * Set when there is no element type: a struct (CUDA's vectors are structs), a pointer to a struct, to `void` or to a pointer, or a texture
   * or surface.
   */
  readonly other?: 'struct' | 'void' | 'pointer' | 'texture' | 'surface';
  /** The fields of a struct, if the source shows them. */
  readonly fields?: readonly SourceField[];
  /** The name of CUDA's vector. */
  readonly vector?: string;
  /** An enum whose underlying type the compiler chooses; `dtype` is the usual one. */
  readonly isOpenEnum?: boolean;
  /** Whether the source names the type by an alias rather than C++'s own name. */
  readonly isNamed?: boolean;
}

export interface SourceParameter extends SourceType {
  /** As spelled in the source. */
  readonly text: string;
}

export interface SourceEntry {
  readonly isExternC: boolean;
  /** The C++ name at the end of the source, without template arguments. */
  readonly path: string;
  readonly isTemplate: boolean;
  /** The names of the parameters of its template. */
  readonly template?: readonly string[];
  /** Undefined when the list cannot be read. */
  readonly parameters: readonly SourceParameter[] | undefined;
  /** The types that the source declares before it. */
  readonly types: DeclaredTypes;
  /** Offset of the list in the source. */
  readonly at: number;
}

const NO_TYPES: DeclaredTypes = new Map();
const QUALIFIER = /^(?:const|volatile|__restrict(?:__)?|restrict|__grid_constant__|struct|class|union|enum|typename)$/;

/** Reads one parameter of a list. `types` are the types that the source declares before it. */
export function readParameter(text: string, types: DeclaredTypes = NO_TYPES): SourceParameter {
  const plain = text
    .split('=')[0]!
    .trim()
    .replace(/\bstd\s*::\s*/g, '');
  const shown = plain.replace(/\s+/g, ' ');
  const extents = /(?:\[[^\]]*\]\s*)+$/.exec(plain)?.[0] ?? '';
  const words = wordsOf(plain.slice(0, plain.length - extents.length));
  const unknown: SourceParameter = { text: shown, dtype: undefined, isPointer: false, isConst: false };
  if (!words.every((word) => word === '*' || /^[A-Za-z_]\w*$/.test(word))) {
    return { ...unknown, isPointer: extents !== '' || (words.includes('*') && !/[<>(){}]/.test(plain)) };
  }
  const star = words.lastIndexOf('*');
  // Without a star, the last word is the parameter's name, unless the list gives only types.
  const count = words.filter((word) => !QUALIFIER.test(word)).length;
  const isNamed = star < 0 && count > 1 && !isTypeWord(words.at(-1)!);
  const type = star >= 0 ? words.slice(0, star + 1) : isNamed ? words.slice(0, -1) : words;
  return { text: shown, ...sourceType(type, extents.match(/\[/g)?.length ?? 0, types) };
}

/** The type that the words name, with this many pointers more. */
export function sourceType(words: readonly string[], more: number, types: DeclaredTypes): SourceType {
  const { dtype, other, stars, isConst, ...meaning } = meaningOf(words, types);
  const pointers = stars + more;
  return {
    dtype: pointers > 1 ? undefined : dtype,
    isPointer: pointers > 0,
    isConst,
    ...(pointers > 1 ? { other: 'pointer' } : other && { other }),
    ...(meaning.fields && { fields: meaning.fields }),
    ...(meaning.vector !== undefined && { vector: meaning.vector }),
    ...(meaning.isOpenEnum && { isOpenEnum: true }),
    ...(meaning.isNamed && { isNamed: true }),
  };
}

/** Splits at commas outside brackets; undefined when brackets are unbalanced. */
function splitList(list: string): string[] | undefined {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < list.length; at++) {
    if ('([{<'.includes(list[at]!)) depth++;
    else if (')]}>'.includes(list[at]!)) depth--;
    else if (list[at] === ',' && depth === 0) {
      parts.push(list.slice(from, at));
      from = at + 1;
    }
    if (depth < 0) return undefined;
  }
  parts.push(list.slice(from));
  const trimmed = parts.map((part) => part.trim());
  if (trimmed.length === 1 && (trimmed[0] === '' || trimmed[0] === 'void')) return [];
  return trimmed;
}

/**
 * The kernel `name`, with or without its namespaces; undefined when the source has no such kernel. `text` must have no comments. Without
 * namespaces, a kernel of the global namespace counts before others.
 */
export function findEntry(text: string, functions: readonly GlobalFunction[], name: string): SourceEntry | undefined {
  const named = name.replace(/^::/, '');
  const exact = functions.filter(({ path }) => path === named);
  const [found, ...others] = exact.length > 0 ? exact : functions.filter((one) => one.name === named || one.path.endsWith(`::${named}`));
  if (!found) return undefined;
  const { start, open, isExternC, path, template } = found;
  let depth = 1;
  let close = open;
  for (; close < text.length && depth > 0; close++) {
    if (text[close] === '(') depth++;
    else if (text[close] === ')') depth--;
  }
  const list = depth === 0 ? splitList(text.slice(open, close - 1)) : undefined;
  // Only the preprocessor knows which of several definitions is compiled.
  const isUnclear = text.slice(open, close).includes('#') || (others.length > 0 && /^[ \t]*#[ \t]*if/m.test(text));
  const types = isUnclear || !list ? NO_TYPES : withUnknown(declaredTypes(text.slice(0, start)), template ?? []);
  const parameters = isUnclear ? undefined : list?.map((one) => readParameter(one, types));
  return { isExternC, path, isTemplate: template !== undefined, ...(template && { template }), parameters, types, at: open };
}

/** The parameters of a template hide types of the same names. */
function withUnknown(types: DeclaredTypes, names: readonly string[]): DeclaredTypes {
  return names.length === 0 ? types : new Map([...types, ...names.map((name) => [name, undefined] as const)]);
}

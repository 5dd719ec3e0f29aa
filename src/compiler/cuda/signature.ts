// Reads the parameter list of a `__global__` function out of CUDA C++ text, as far as tokens tell.
//
// It is no C++ parser: what it cannot read (templates, typedefs, structs, macros) it calls unknown, and leaves to the
// real compiler. What it can read, it reads right.
import type { GlobalFunction } from './text.js';
import type { DType } from '../../core/elements/dtype.js';

export interface TextParameter {
  /** As it stands in the text. */
  readonly text: string;
  /** Its element type; undefined when the words are not one of the known scalar types. */
  readonly dtype: DType | undefined;
  readonly isPointer: boolean;
  /** What is pointed to is const. */
  readonly isConst: boolean;
}

export interface TextEntry {
  readonly isExternC: boolean;
  /** undefined when the list cannot be read. */
  readonly parameters: readonly TextParameter[] | undefined;
  /** Offset of the list in the text. */
  readonly at: number;
}

const SCALARS: Readonly<Record<string, DType>> = {
  bool: 'bool',
  float: 'f32',
  double: 'f64',
  __half: 'f16',
  half: 'f16',
  int8_t: 'i8',
  uint8_t: 'u8',
  int16_t: 'i16',
  uint16_t: 'u16',
  int32_t: 'i32',
  uint32_t: 'u32',
  int64_t: 'i64',
  uint64_t: 'u64',
  size_t: 'u64',
};
const INTEGER_WORDS: readonly string[] = ['signed', 'unsigned', 'char', 'short', 'int', 'long'];
const QUALIFIERS: readonly string[] = ['const', 'volatile', '__restrict__', '__restrict', 'restrict', '__grid_constant__', 'struct'];

/** The element type that words of the text name: `unsigned long long`, `uint8_t`. */
export function dtypeOfWords(words: readonly string[]): DType | undefined {
  if (words.length === 1 && Object.hasOwn(SCALARS, words[0]!)) return SCALARS[words[0]!];
  if (words.length === 0 || !words.every((word) => INTEGER_WORDS.includes(word))) return undefined;
  const isUnsigned = words.includes('unsigned');
  if (words.includes('char')) return isUnsigned ? 'u8' : 'i8';
  if (words.includes('short')) return isUnsigned ? 'u16' : 'i16';
  if (words.includes('long')) return isUnsigned ? 'u64' : 'i64';
  return isUnsigned ? 'u32' : 'i32';
}

/** One parameter; undefined type when its words are unknown. */
export function readParameter(text: string): TextParameter {
  const plain = text
    .split('=')[0]!
    .trim()
    .replace(/\bstd\s*::\s*/g, '');
  const shown = plain.replace(/\s+/g, ' ');
  const pointers = plain.split('*').length - 1 + (/\[\s*\d*\s*\]\s*$/.test(plain) ? 1 : 0);
  const unknown: TextParameter = { text: shown, dtype: undefined, isPointer: pointers > 0, isConst: false };
  if (pointers > 1 || /[<>()&{}]/.test(plain)) return unknown;
  const target = plain.split('*')[0]!;
  const words = (target.match(/[A-Za-z_]\w*/g) ?? []).filter((word) => !QUALIFIERS.includes(word));
  // Without a star the last word is the parameter's name, unless the list gives only types.
  const isNamed =
    !plain.includes('*') && words.length > 1 && !INTEGER_WORDS.includes(words.at(-1)!) && !Object.hasOwn(SCALARS, words.at(-1)!);
  const dtype = dtypeOfWords(isNamed ? words.slice(0, -1) : words);
  return { text: shown, dtype, isPointer: pointers === 1, isConst: /\bconst\b/.test(target) };
}

/** Splits at commas outside brackets; undefined when the brackets do not match. */
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

/** What a kernel named so has for a list; undefined when the text has none. Text must have its comments taken out. */
export function findEntry(text: string, functions: readonly GlobalFunction[], name: string): TextEntry | undefined {
  const [found, ...others] = functions.filter((one) => one.name === name);
  if (!found) return undefined;
  const { open, isExternC } = found;
  let depth = 1;
  let close = open;
  for (; close < text.length && depth > 0; close++) {
    if (text[close] === '(') depth++;
    else if (text[close] === ')') depth--;
  }
  const list = depth === 0 ? splitList(text.slice(open, close - 1)) : undefined;
  // Which of several definitions counts, only the preprocessor knows.
  const isUnclear = text.slice(open, close).includes('#') || (others.length > 0 && /^[ \t]*#[ \t]*if/m.test(text));
  return { isExternC, parameters: isUnclear ? undefined : list?.map(readParameter), at: open };
}

// Resolves the words of a C++ type, using the types that the source declares.
import type { DType } from '../../core/elements/dtype.js';
import type { DeclaredTypes } from './declared-types.js';
import type { SourceField } from './struct-fields.js';

const SCALARS: Readonly<Record<string, DType>> = {
  bool: 'bool',
  float: 'f32',
  double: 'f64',
  __half: 'f16',
  half: 'f16',
  __nv_bfloat16: 'bf16',
  nv_bfloat16: 'bf16',
  int8_t: 'i8',
  uint8_t: 'u8',
  int16_t: 'i16',
  uint16_t: 'u16',
  int32_t: 'i32',
  uint32_t: 'u32',
  int64_t: 'i64',
  uint64_t: 'u64',
  size_t: 'u64',
  ptrdiff_t: 'i64',
  intptr_t: 'i64',
  uintptr_t: 'u64',
  uchar: 'u8',
  ushort: 'u16',
  uint: 'u32',
  ulong: 'u64',
};
const INTEGER_WORDS: readonly string[] = ['signed', 'unsigned', 'char', 'short', 'int', 'long'];
const OWN_WORDS: readonly string[] = [...INTEGER_WORDS, 'bool', 'float', 'double'];
const TAGS: readonly string[] = ['struct', 'class', 'union', 'enum'];
const QUALIFIERS: readonly string[] = [
  'const',
  'volatile',
  '__restrict__',
  '__restrict',
  'restrict',
  '__grid_constant__',
  'typename',
  ...TAGS,
];
/** Struct types of CUDA's headers. */
const VECTOR = /^(?:(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]|(?:__)?half2|(?:__)?nv_bfloat162|dim3)$/;
const HANDLES: Readonly<Record<string, 'texture' | 'surface'>> = {
  cudaTextureObject_t: 'texture',
  CUtexObject: 'texture',
  cudaSurfaceObject_t: 'surface',
  CUsurfObject: 'surface',
};
const MAX_STEPS = 64;
const MAX_WORDS = 64;

/** The element type that the words name: `unsigned long long`, `uint8_t`. */
export function dtypeOfWords(words: readonly string[]): DType | undefined {
  if (words.length === 1 && Object.hasOwn(SCALARS, words[0]!)) return SCALARS[words[0]!];
  if (words.length === 0 || !words.every((word) => INTEGER_WORDS.includes(word))) return undefined;
  const isUnsigned = words.includes('unsigned');
  if (words.includes('char')) return isUnsigned ? 'u8' : 'i8';
  if (words.includes('short')) return isUnsigned ? 'u16' : 'i16';
  if (words.includes('long')) return isUnsigned ? 'u64' : 'i64';
  return isUnsigned ? 'u32' : 'i32';
}

/** Whether a word can only be part of a type, and so is not a parameter's name. */
export function isTypeWord(word: string): boolean {
  return INTEGER_WORDS.includes(word) || QUALIFIERS.includes(word) || Object.hasOwn(SCALARS, word);
}

export interface WordsMeaning {
  /** The scalar's type; for a pointer, the pointee's type. */
  readonly dtype?: DType;
  /** Set when the type is not a scalar: a struct or vector, the `void` of a pointer, or CUDA's handle of a texture or surface. */
  readonly other?: 'struct' | 'void' | 'texture' | 'surface';
  readonly stars: number;
  /** With `other: 'struct'`: the fields, if the source shows them. */
  readonly fields?: readonly SourceField[];
  /** With `other: 'struct'`: the name of CUDA's vector. */
  readonly vector?: string;
  /** Whether the pointee is const. */
  readonly isConst: boolean;
  /** Whether the compiler chooses the signedness and width of the enum's underlying type. */
  readonly isOpenEnum: boolean;
  /** Whether the words are an alias rather than C++'s own name of the type. */
  readonly isNamed: boolean;
}

/** `words` are names and stars. The result omits what they do not tell. */
export function meaningOf(given: readonly string[], types: DeclaredTypes): WordsMeaning {
  let words = given;
  let isOpenEnum = false;
  let isNamed = false;
  let isStruct = false;
  let fields: readonly SourceField[] | undefined;
  for (let steps = 0; ; steps++) {
    const at = words.findIndex((word) => types.get(word) !== undefined);
    if (at < 0) break;
    const meaning = types.get(words[at]!)!;
    isNamed = true;
    if (meaning.kind === 'struct') {
      isStruct = true;
      fields = meaning.fields;
      break;
    }
    isOpenEnum ||= meaning.kind === 'enum' && meaning.words === undefined;
    const put = meaning.words ?? ['int'];
    // A const before or after a pointer's alias applies to the pointer itself. A macro expands to its words, so its const does not.
    const isPointer = put.includes('*') && !(meaning.kind === 'alias' && meaning.isMacro);
    const star = words.indexOf('*', at);
    const ends = star < 0 ? words.length : star;
    const isOwn = (word: string, other: number): boolean => isPointer && word === 'const' && other < ends;
    words = words.flatMap((word, other) => (other === at ? put : isOwn(word, other) ? [] : [word]));
    if (steps > MAX_STEPS || words.length > MAX_WORDS) return { stars: 0, isConst: false, isOpenEnum: false, isNamed };
  }
  const stars = words.filter((word) => word === '*').length;
  const star = words.indexOf('*');
  const target = star < 0 ? words : words.slice(0, star);
  const names = target.filter((word) => !QUALIFIERS.includes(word));
  const found = {
    stars,
    isConst: target.includes('const'),
    isOpenEnum,
    isNamed: isNamed || !names.every((name) => OWN_WORDS.includes(name)),
  };
  if (isStruct) return names.length === 1 ? { ...found, other: 'struct', ...(fields && { fields }) } : found;
  if (names.length !== 1) {
    const dtype = dtypeOfWords(names);
    return dtype === undefined ? found : { ...found, dtype };
  }
  const [name] = names as [string];
  // The source declares the name, with an ambiguous meaning.
  if (types.has(name)) return found;
  const dtype = dtypeOfWords(names);
  if (dtype !== undefined) return { ...found, dtype };
  if (name === 'void') return { ...found, other: 'void' };
  const handle = HANDLES[name];
  if (handle !== undefined) return { ...found, other: handle };
  const isTagged = target.some((word) => TAGS.includes(word) && word !== 'enum');
  if (VECTOR.test(name)) return { ...found, other: 'struct', vector: name };
  return isTagged ? { ...found, other: 'struct' } : found;
}

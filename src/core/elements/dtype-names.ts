// What other libraries call the element types. Calls refuse these names and say which one was meant: `array.dtype` has one spelling.
import { badArgument, show } from '../base/arguments.js';
import { DTYPES, type DType, type DTypeLike, dtypeOfHost, isDType } from './dtype.js';

/** Names of C, CUDA, NumPy and PyTorch that do not contain their size. Two types: the libraries differ. */
const WORDS: Readonly<Record<string, readonly DType[]>> = {
  half: ['f16'],
  single: ['f32'],
  double: ['f64'],
  float: ['f32', 'f64'],
  number: ['f32', 'f64'],
  bfloat: ['bf16'],
  char: ['i8'],
  byte: ['u8', 'i8'],
  uchar: ['u8'],
  ubyte: ['u8'],
  short: ['i16'],
  ushort: ['u16'],
  int: ['i32', 'i64'],
  integer: ['i32', 'i64'],
  uint: ['u32', 'u64'],
  unsigned: ['u32'],
  long: ['i64'],
  ulong: ['u64'],
  longlong: ['i64'],
  ulonglong: ['u64'],
  size: ['u64'],
  bigint: ['i64'],
  biguint: ['u64'],
  boolean: ['bool'],
  bool: ['bool'],
  '?': ['bool'],
  b1: ['bool'],
  uint8clamped: ['u8'],
};
/** The same without their size. */
const LETTERS: Readonly<Record<string, string>> = {
  float: 'f',
  fp: 'f',
  bfloat: 'bf',
  int: 'i',
  bigint: 'i',
  s: 'i',
  uint: 'u',
  biguint: 'u',
};
const LONGEST = 40;

/** The element types that a value probably means: a name of another library, a class of typed arrays, a typed array, a NumPy dtype string. */
function meantBy(value: unknown): readonly DType[] {
  const host = dtypeOfHost(value);
  if (host !== undefined) return [host];
  const text = typeof value === 'function' ? value.name : value;
  if (typeof text !== 'string' || text.length > LONGEST) return [];
  const name = text
    .trim()
    .toLowerCase()
    .replace(/^(?:np|numpy|cp|cupy|torch|wp|warp|jnp|tf)\.|^__(?:nv_)?/, '')
    .replace(/(?:array|_t|tensor|_)$/, '')
    .replace(/^unsigned +/, 'u')
    .replaceAll(' ', '');
  // NumPy's strings count bytes.
  const [, order, kind, bytes] = /^([<=|]?)([iuf])([1248])$/.exec(name) ?? [];
  if (kind !== undefined && (order !== '' || !isDType(name))) return known(`${kind}${8 * Number(bytes)}`);
  const bare = name.replace(/^[<=|](?=\?|b1)/, '');
  if (Object.hasOwn(WORDS, bare)) return WORDS[bare] as readonly DType[];
  const [, word = '', bits] = /^([a-z]+)(\d+)$/.exec(name) ?? [];
  return known(`${LETTERS[word] ?? word}${bits}`);
}

function known(name: string): readonly DType[] {
  return isDType(name) ? [name] : [];
}

/** " (did you mean 'f32'?)"; empty if no element type is near. */
export function didYouMeanDType(value: unknown): string {
  const types = meantBy(value);
  return types.length === 0 ? '' : ` (did you mean ${types.map((type) => `'${type}'`).join(' or ')}?)`;
}

/** How to declare the type in a kernel or graph, which takes values such as `f32` and no names; empty if no element type is near. */
export function passTheType(value: unknown): string {
  const types = isDType(value) ? [value] : meantBy(value);
  return types.length === 0 ? '' : `: pass ${types.join(' or ')}, which millrace exports, without quotes`;
}

/** The element type of a name or a scalar type. Throws ArgumentError, with the right spelling, for other values. */
export function checkDType<D extends DType>(dtype: DTypeLike<D> | undefined, fallback: DType = 'f32'): D {
  if (dtype === undefined) return fallback as D;
  const name = typeof dtype === 'object' && dtype !== null && 'dtype' in dtype ? dtype.dtype : dtype;
  if (isDType(name)) return name;
  const options = typeof dtype === 'object' && dtype !== null && ('device' in dtype || 'stream' in dtype);
  const hint = options
    ? ': options come after the dtype'
    : typeof dtype === 'number'
      ? ': a shape of several dimensions is a list, [2, 3]'
      : didYouMeanDType(name);
  throw badArgument('dtype', dtype, `The dtype (${show(dtype)}) is none of ${Object.keys(DTYPES).join(', ')}${hint}.`);
}

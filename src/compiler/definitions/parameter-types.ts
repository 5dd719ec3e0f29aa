// Compares a declared parameter of a CUDA C++ kernel, or a field of its struct, with the type that the source gives it.
import type { FieldCheck, ValueCheck } from '../../core/channel/build-spec.js';
import { is16BitFloat, type DType, DTYPES } from '../../core/elements/dtype.js';
import type { SurfaceParam, TextureParam } from '../../core/kernels/params.js';
import { type Field, spaceOf, type StructParam, type ValueParam } from '../../core/kernels/value-params.js';
import type { DeclaredTypes } from '../../cuda-cpp/read/declared-types.js';
import { macrosIn } from '../../cuda-cpp/read/directives.js';
import { type SourceType, sourceType } from '../../cuda-cpp/read/signature.js';
import type { SourceField } from '../../cuda-cpp/read/struct-fields.js';
import { shortened } from './arguments.js';

/** The components of CUDA's vectors, by the names without their sizes. */
const COMPONENTS: Readonly<Record<string, DType>> = {
  char: 'i8',
  uchar: 'u8',
  short: 'i16',
  ushort: 'u16',
  int: 'i32',
  uint: 'u32',
  long: 'i64',
  ulong: 'u64',
  longlong: 'i64',
  ulonglong: 'u64',
  float: 'f32',
  double: 'f64',
  half: 'f16',
  __half: 'f16',
  __nv_bfloat16: 'bf16',
};
const NAMES: Readonly<Partial<Record<DType, string>>> = {
  i8: 'char',
  u8: 'uchar',
  i16: 'short',
  u16: 'ushort',
  i32: 'int',
  u32: 'uint',
  i64: 'longlong',
  u64: 'ulonglong',
  f16: '__half',
  bf16: '__nv_bfloat16',
  f32: 'float',
  f64: 'double',
};
/** Most fields of a struct that the compiler compares, counted with those of structs in it. */
const MAX_FIELD_CHECKS = 256;
const KEYWORDS: ReadonlySet<string> = new Set(
  (
    'alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default delete do double else enum ' +
    'explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not nullptr operator or ' +
    'private protected public register return short signed sizeof static struct switch template this throw true try typedef typeid ' +
    'typename union unsigned using virtual void volatile while xor'
  ).split(' '),
);

/** How messages describe a declared type. */
export function described(field: Field): string {
  switch (field.kind) {
    case 'scalar':
      return field.dtype;
    case 'array':
      return `${field.dtype}*`;
    case 'optional':
      return `${field.array.dtype}*`;
    case 'vector':
      return `${NAMES[field.dtype]}${field.size}`;
    case 'dim3':
    case 'texture':
    case 'surface':
      return field.kind;
    case 'fixed':
      return `${described(field.element)}[${field.length}]`;
    default:
      return field.kind === 'struct' ? `struct of ${sizeText(field.byteSize)}` : `bytes(${field.byteSize})`;
  }
}

function sizeText(bytes: number): string {
  return bytes === 1 ? '1 byte' : `${bytes} bytes`;
}

/** What is wrong with the declaration; undefined if tokens show no difference. */
export function mismatch(field: Field, text: SourceType, types: DeclaredTypes): string | undefined {
  if (field.kind === 'texture' || field.kind === 'surface') return handleMismatch(field, text);
  if (!text.isPointer && (text.other === 'texture' || text.other === 'surface')) return `a ${text.other} is declared with ${text.other}`;
  switch (field.kind) {
    case 'scalar':
      return scalarMismatch(field.dtype, text);
    case 'array':
      return arrayMismatch(field, text);
    case 'optional':
      return arrayMismatch(field.array, text);
    case 'fixed':
      return text.dtype === undefined && text.other === undefined ? undefined : 'it is not an array there';
    default:
      return valueMismatch(field, text, types);
  }
}

function handleMismatch({ kind }: TextureParam | SurfaceParam, { dtype, other, isPointer }: SourceType): string | undefined {
  if (other === kind && !isPointer) return undefined;
  if ((other === 'texture' || other === 'surface') && !isPointer) return `it is a ${other} there`;
  // CUDA's types are names of this one.
  if (dtype === 'u64' && !isPointer) return undefined;
  return dtype === undefined && other === undefined && !isPointer
    ? undefined
    : `a ${kind} needs a ${kind === 'texture' ? 'cudaTextureObject_t' : 'cudaSurfaceObject_t'}`;
}

function scalarMismatch(declared: DType, text: SourceType): string | undefined {
  if (text.isPointer) return 'a scalar cannot be a pointer';
  if (text.vector !== undefined) return `a vector passed by value is declared with ${howToDeclare(text.vector)}`;
  if (text.other !== undefined) return 'a struct passed by value is declared with struct({ ... }) or bytes(n)';
  return elementMismatch(declared, text);
}

function howToDeclare(vector: string): string {
  if (vector === 'dim3') return vector;
  const found = componentsOf(vector);
  return found === undefined ? 'bytes(n)' : `vec(${found.dtype}, ${found.size})`;
}

function arrayMismatch({ dtype, access }: { readonly dtype: DType; readonly access: string }, text: SourceType): string | undefined {
  if (!text.isPointer && (text.dtype !== undefined || text.other !== undefined)) return 'an array needs a pointer';
  const problem = elementMismatch(dtype, text);
  if (problem !== undefined) return problem;
  return access !== 'in' && text.isConst && text.dtype !== undefined ? `an ${access} array cannot be const` : undefined;
}

function elementMismatch(declared: DType, { dtype, isOpenEnum, isNamed }: SourceType): string | undefined {
  if (dtype === undefined || areSame(declared, dtype) || (isOpenEnum && /^[iu](?:32|64)$/.test(declared))) return undefined;
  return isNamed ? `the element type there is ${dtype}` : 'the element type differs';
}

function valueMismatch(field: ValueParam, text: SourceType, types: DeclaredTypes): string | undefined {
  if (text.isPointer) return 'a value cannot be a pointer: declare an array';
  if (field.kind === 'bytes') {
    const components = componentsOf(text.vector);
    const own = components === undefined ? undefined : spaceOfVector(components);
    const size = text.dtype === undefined || text.isOpenEnum ? own : DTYPES[text.dtype].byteSize;
    return size === undefined || size === field.byteSize ? undefined : `its size there is ${sizeText(size)}`;
  }
  if (text.dtype !== undefined) return `it is a scalar there: declare it with ${text.dtype}`;
  if (field.kind === 'struct') return text.fields && fieldsMismatch(field, text.fields, types);
  const declared = field.kind === 'dim3' ? ({ dtype: 'u32', size: 3 } as const) : field;
  const found = componentsOf(text.vector);
  if (found === undefined || (found.size === declared.size && found.dtype === declared.dtype)) return undefined;
  return `it is ${text.vector} there`;
}

function componentsOf(vector: string | undefined): { readonly dtype: DType; readonly size: number } | undefined {
  if (vector === 'dim3') return { dtype: 'u32', size: 3 };
  const dtype = COMPONENTS[vector?.slice(0, -1) ?? ''];
  return dtype && { dtype, size: Number(vector!.at(-1)) };
}

function spaceOfVector({ dtype, size }: { readonly dtype: DType; readonly size: number }): number {
  return DTYPES[dtype].byteSize * size;
}

/** Fields are compared in their order, as the parameters of kernels are. */
function fieldsMismatch({ fields }: StructParam, texts: readonly SourceField[], types: DeclaredTypes): string | undefined {
  const own = Object.entries(fields);
  for (const [at, [name, field]] of own.entries()) {
    const text = texts[at];
    if (text === undefined) break;
    if (text.name !== name && texts.some((other) => other.name === name))
      return `its field '${name}' is field ${at + 1} of the declaration and field ${texts.findIndex((other) => other.name === name) + 1} of the source`;
    const problem = fieldMismatch(field, text, types);
    if (problem === undefined) continue;
    const shown = shortened(`${text.words.join(' ')} ${text.name}${text.count === 1 ? '' : `[${text.count ?? ''}]`}`);
    return `its field '${name}' (${described(field)}) is '${shown}' there: ${problem}`;
  }
  if (own.length === texts.length) return undefined;
  return `it has ${own.length} fields in the declaration and ${texts.length} in the source (${shortened(texts.map(({ name }) => name).join(', '))})`;
}

function fieldMismatch(field: Field, { words, count }: SourceField, types: DeclaredTypes): string | undefined {
  const text = sourceType(words, 0, types);
  // An alias of an array is unknown to tokens.
  if (count === undefined || (text.dtype === undefined && text.other === undefined && !text.isPointer)) return undefined;
  let [element, declared]: [Field, number] = [field, 1];
  while (element.kind === 'fixed') [element, declared] = [element.element, declared * element.length];
  if (element.kind === 'bytes' && text.dtype !== undefined && !text.isPointer) {
    const size = DTYPES[text.dtype].byteSize * count;
    return text.isOpenEnum || size === element.byteSize * declared ? undefined : `its size there is ${sizeText(size)}`;
  }
  if (declared !== count) return count === 1 ? 'it is not an array there' : `it has ${count} elements there`;
  return mismatch(element, text, types);
}

/** Types of the same size that sources use for each other: bool for a byte, 16-bit floats for their bits. */
export function areSame(declared: DType, text: DType): boolean {
  if (declared === text) return true;
  if (text === 'bf16') return declared === 'u16';
  return (declared === 'bool' && text === 'u8') || (is16BitFloat(declared) && text === 'u16');
}

/** What the compiler compares. `text` is the source without comments: its macros may have the names of fields. */
export function valueCheck(param: ValueParam, text: string): ValueCheck {
  const { byteSize, align, kind } = param;
  const fields: FieldCheck[] = [];
  if (kind === 'struct') addFields(param, '', 0, new Set(macrosIn(text).map(({ name }) => name)), fields);
  return { byteSize, align: kind === 'bytes' ? undefined : align, fields };
}

function addFields({ fields, offsets }: StructParam, prefix: string, base: number, macros: ReadonlySet<string>, into: FieldCheck[]): void {
  for (const [name, field] of Object.entries(fields)) {
    if (into.length >= MAX_FIELD_CHECKS) return;
    if (KEYWORDS.has(name) || macros.has(name)) continue;
    const path = `${prefix}${name}`;
    const offset = base + (offsets[name] as number);
    const isPointer = field.kind === 'array' || field.kind === 'optional';
    const type = field.kind === 'scalar' ? field.dtype : isPointer ? 'pointer' : undefined;
    into.push({ path, offset, byteSize: spaceOf(field).byteSize, type });
    if (field.kind === 'struct') addFields(field, `${path}.`, offset, macros, into);
  }
}

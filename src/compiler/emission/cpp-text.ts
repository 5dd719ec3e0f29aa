// Building blocks of C++ source: types, names, literals and parentheses.
import { type DType, is16BitFloat } from '../../core/elements/dtype.js';
import type { ScalarType } from '../ir/ir.js';

export const CPP_TYPE: Readonly<Record<ScalarType, string>> = {
  bool: 'bool',
  i32: 'int',
  u32: 'unsigned',
  i64: 'long long',
  u64: 'unsigned long long',
  f32: 'float',
  f64: 'double',
};

/** The storage type of an element. bool is one byte: zero is false, anything else is true. */
const STORAGE_TYPE: { readonly [D in DType]: string } = {
  bool: 'unsigned char',
  i8: 'signed char',
  u8: 'unsigned char',
  i16: 'short',
  u16: 'unsigned short',
  i32: 'int',
  u32: 'unsigned',
  i64: 'long long',
  u64: 'unsigned long long',
  // Raw bits.
  f16: 'unsigned short',
  bf16: 'unsigned short',
  f32: 'float',
  f64: 'double',
};

export function storageType(dtype: DType): string {
  return STORAGE_TYPE[dtype];
}

/** A line of the emitted source, and the offset in the function's source that it comes from; -1 for none. */
export interface Line {
  readonly text: string;
  readonly at: number;
}

export function generated(lines: readonly string[]): Line[] {
  return lines.map((text) => ({ text, at: -1 }));
}
export function nested(lines: readonly Line[]): Line[] {
  return lines.map(({ text, at }) => ({ text: `  ${text}`, at }));
}

export function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

/** Removes one pair of parentheses around the whole expression. */
export function stripped(text: string): string {
  if (!text.startsWith('(') || !text.endsWith(')')) return text;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(') depth++;
    else if (text[at] === ')') depth--;
    if (depth === 0 && at < text.length - 1) return text;
  }
  return text.slice(1, -1);
}

/** Converts a JavaScript identifier to a C identifier: characters that C does not allow become their hexadecimal code. */
export function sanitized(name: string): string {
  return name.replace(/[^A-Za-z0-9_]/g, (char) => `_${char.charCodeAt(0).toString(16)}`);
}

export function funcName(name: string): string {
  return `mr_fn_${sanitized(name)}`;
}

/** The fewest digits that parse back to the same float. */
export function shortestSingle(value: number): string {
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value);
  for (let digits = 1; digits < 9; digits++) {
    const text = String(Number(value.toPrecision(digits)));
    if (Math.fround(Number(text)) === value) return text;
  }
  return String(Number(value.toPrecision(9)));
}

/** Element types whose storage type is their register type. */
const PLAIN: readonly DType[] = ['i32', 'u32', 'i64', 'u64', 'f32', 'f64'];

/** Converts a stored element or argument to its register type. `mr_from_f16` and `mr_from_bf16` are helper functions. */
export function fromStorage(dtype: DType, element: string): string {
  if (dtype === 'bool') return `(${element} != 0)`;
  if (is16BitFloat(dtype)) return `mr_from_${dtype}(${element})`;
  return PLAIN.includes(dtype) ? element : `(int)${element}`;
}

/** A parameter of an emitted function. */
export interface Parameter {
  readonly type: string;
  readonly name: string;
}

export function declaration({ type, name }: Parameter): string {
  return `${type} ${name}`;
}

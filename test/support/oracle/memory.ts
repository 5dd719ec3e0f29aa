// The arrays of the interpreter: typed arrays, whose elements are values of the language.
import type { ArrayRef, AtomicOp, ScalarType } from '../../../src/compiler/ir/ir.js';
import { arithmetic, Unspecified, type Value } from './arithmetic.js';
import { BFLOAT16, narrowed, widened } from '../half-numbers.js';
import { halfFromBits, halfToBits } from './rounding.js';

export type Memory = Exclude<NodeJS.TypedArray, Uint8ClampedArray>;

export const MADE = {
  bool: Uint8Array,
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;
type Dtype = keyof typeof MADE;

export function memoryFor(arrays: readonly ArrayRef[]): [string, Memory][] {
  return arrays.map(({ name, dtype, extents }) => [name, new MADE[dtype](extents.reduce((a, b) => a * b, 1))]);
}

export function loaded(memory: Memory, dtype: Dtype, at: number): Value {
  const value = memory[at]!;
  if (dtype === 'bool') return value !== 0;
  if (dtype === 'bf16') return widened(BFLOAT16, value as number);
  return dtype === 'f16' ? halfFromBits(value as number) : value;
}

export function stored(memory: Memory, dtype: Dtype, at: number, value: Value): void {
  const bits =
    dtype === 'f16'
      ? halfToBits(value as number)
      : dtype === 'bf16'
        ? narrowed(BFLOAT16, value as number)
        : dtype === 'bool'
          ? Number(value)
          : value;
  if (bits === undefined) throw new Unspecified('bits of what is no number');
  (memory as unknown as Value[])[at] = bits;
}

/** What an atomic leaves in its place; `given` are its arguments behind the index. */
export function afterAtomic(op: AtomicOp, type: ScalarType, old: Value, given: readonly Value[]): Value {
  const [value, other] = given as [Value, Value];
  switch (op) {
    case 'add':
    case 'sub':
      return type === 'f32' || type === 'f64' ? normal(type, arithmetic('+', type, old, value), old, value) : wrapped(op, type, old, value);
    case 'min':
      return value < old ? value : old;
    case 'max':
      return value > old ? value : old;
    case 'and':
      return arithmetic('&', type, old, value);
    case 'or':
      return arithmetic('|', type, old, value);
    case 'xor':
      return arithmetic('^', type, old, value);
    case 'exchange':
      return value;
    case 'cas':
      return old === value ? other : old;
  }
}

/** Whole numbers wrap, those with a sign too. */
function wrapped(op: 'add' | 'sub', type: ScalarType, old: Value, value: Value): Value {
  if (typeof old === 'bigint') {
    const sum = op === 'add' ? old + (value as bigint) : old - (value as bigint);
    return type === 'i64' ? BigInt.asIntN(64, sum) : BigInt.asUintN(64, sum);
  }
  const sum = op === 'add' ? (old as number) + (value as number) : (old as number) - (value as number);
  return type === 'i32' ? sum | 0 : sum >>> 0;
}

/** Atomics of CUDA take f32 below 2^-126 for 0, in memory of the device. */
function normal(type: 'f32' | 'f64', sum: Value, ...from: readonly Value[]): Value {
  const isSmall = (value: Value): boolean => value !== 0 && Math.abs(value as number) < 2 ** -126;
  if (type === 'f32' && [sum, ...from].some(isSmall)) throw new Unspecified('an atomic of less than 2^-126');
  return sum;
}

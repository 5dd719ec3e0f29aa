// What operators, casts and builtins of the kernel language give, by its rules and exactly: the other opinion, beside the
// compilers'. Values are booleans, numbers (i32, u32, f32, f64) and bigints (i64, u64).
import type { ArithmeticOp, ComparisonOp, ScalarType } from '../../../src/compiler/ir/ir.js';
import { F32, F64, fused, nearest } from './rounding.js';
import { INEXACT, inexact } from './tolerance.js';

export type Value = boolean | number | bigint;

/** The language leaves the value open: the program says nothing about a device. */
export class Unspecified extends Error {}

const words = new DataView(new ArrayBuffer(4));

export function arithmetic(op: ArithmeticOp, type: ScalarType, left: Value, right: Value): Value {
  if (type === 'i64' || type === 'u64') return arithmetic64(op, type, left as bigint, right as bigint);
  const [a, b] = [left as number, right as number];
  switch (type) {
    case 'i32':
      return signed(op, a, b);
    case 'u32':
      return unsigned(op, a, b);
    case 'f32':
      return Math.fround(float(op, a, b));
    default:
      return float(op, a, b);
  }
}

function float(op: ArithmeticOp, a: number, b: number): number {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    case '%':
      return a % b;
    default:
      throw new Error(`No ${op} of floats.`);
  }
}

function signed(op: ArithmeticOp, a: number, b: number): number {
  switch (op) {
    case '+':
    case '-':
    case '*':
      return op === '*' ? Math.imul(a, b) : float(op, a, b) | 0;
    case '%':
      return b === 0 || b === -1 ? 0 : (a % b) | 0;
    case '&':
      return a & b;
    case '|':
      return a | b;
    case '^':
      return a ^ b;
    case '<<':
      return a << b;
    case '>>':
      return a >> b;
    default:
      throw new Error(`No ${op} of i32.`);
  }
}

function unsigned(op: ArithmeticOp, a: number, b: number): number {
  switch (op) {
    case '+':
    case '-':
      return float(op, a, b) >>> 0;
    case '*':
      return Math.imul(a, b) >>> 0;
    case '%':
      return b === 0 ? 0 : a % b;
    case '>>':
      return a >>> b;
    default:
      return signed(op, a, b) >>> 0;
  }
}

function arithmetic64(op: ArithmeticOp, type: 'i64' | 'u64', a: bigint, b: bigint): bigint {
  const wrap = (value: bigint): bigint => (type === 'i64' ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value));
  switch (op) {
    case '+':
      return wrap(a + b);
    case '-':
      return wrap(a - b);
    case '*':
      return wrap(a * b);
    case '%':
      return b === 0n ? 0n : a % b;
    case '&':
      return a & b;
    case '|':
      return a | b;
    case '^':
      return a ^ b;
    case '<<':
      return type === 'i64' ? BigInt.asIntN(64, a << (b & 63n)) : BigInt.asUintN(64, a << (b & 63n));
    case '>>':
      return a >> (b & 63n);
    default:
      throw new Error(`No ${op} of ${type}.`);
  }
}

export function compare(op: ComparisonOp, a: Value, b: Value): boolean {
  switch (op) {
    case '<':
      return a < b;
    case '<=':
      return a <= b;
    case '>':
      return a > b;
    case '>=':
      return a >= b;
    case '==':
      return a === b;
    case '!=':
      return a !== b;
  }
}

export function negated(type: ScalarType, value: Value): Value {
  if (type === 'f32' || type === 'f64') return -(value as number);
  return arithmetic('-', type, typeof value === 'bigint' ? 0n : 0, value);
}
export function inverted(type: ScalarType, value: Value): Value {
  if (typeof value === 'bigint') return type === 'i64' ? ~value : BigInt.asUintN(64, ~value);
  return type === 'u32' ? ~(value as number) >>> 0 : ~(value as number);
}

const RANGES: { readonly [T in ScalarType]?: readonly [low: bigint, high: bigint] } = {
  i32: [-(2n ** 31n), 2n ** 31n - 1n],
  u32: [0n, 2n ** 32n - 1n],
  i64: [-(2n ** 63n), 2n ** 63n - 1n],
  u64: [0n, 2n ** 64n - 1n],
};

/** Whole numbers wrap, fractions are truncated and saturate, what is no number gives 0. */
export function cast(from: ScalarType, to: ScalarType, value: Value): Value {
  if (to === 'bool') return Boolean(value);
  if (typeof value === 'boolean') return cast('i32', to, Number(value));
  if (to === 'f64') return typeof value === 'bigint' ? nearest(value, 0, F64) : value;
  if (to === 'f32') return typeof value === 'bigint' ? nearest(value, 0, F32) : Math.fround(value);
  const isWide = to === 'i64' || to === 'u64';
  if (from === 'f32' || from === 'f64') {
    const [low, high] = RANGES[to]!;
    const number = value as number;
    if (Number.isNaN(number)) return isWide ? 0n : 0;
    const clamped = number >= Number(high) ? high : number <= Number(low) ? low : BigInt(Math.trunc(number));
    return isWide ? clamped : Number(clamped);
  }
  const big = BigInt(value);
  if (isWide) return to === 'i64' ? BigInt.asIntN(64, big) : BigInt.asUintN(64, big);
  return Number(to === 'i32' ? BigInt.asIntN(32, big) : BigInt.asUintN(32, big));
}

/** The least or the most. Of two zeros, or where one is no number, devices may give either. */
function extreme(isLeast: boolean, a: Value, b: Value): Value {
  const areZeros = a === 0 && b === 0 && !Object.is(a, b);
  if (areZeros || Number.isNaN(a) || Number.isNaN(b)) throw new Unspecified('an extreme of what has no order');
  return a < b === isLeast ? a : b;
}

export function builtin(name: string, type: ScalarType, args: readonly Value[]): Value {
  const [first, second, third] = args;
  const [a, b, c] = [first as number, second as number, third as number];
  const fit = type === 'f32' ? Math.fround : (value: number): number => value;
  switch (name) {
    case 'idiv':
      if (typeof first === 'bigint') return second === 0n ? 0n : whole(type, first / (second as bigint));
      return b === 0 ? 0 : whole(type, BigInt(Math.trunc(a / b)));
    case 'floordiv':
      return b === 0 ? 0 : whole(type, BigInt(Math.floor(a / b)));
    case 'imul':
      return Math.imul(a, b);
    case 'clz32':
      return Math.clz32(a);
    case 'popcount':
      return a.toString(2).replaceAll('0', '').length;
    case 'floatBits':
      if (Number.isNaN(a)) throw new Unspecified('bits of what is no number');
      words.setFloat32(0, a);
      return words.getUint32(0);
    case 'bitsFloat':
      words.setUint32(0, a);
      return words.getFloat32(0);
    case 'abs':
      return type === 'i32' && a === -(2 ** 31) ? a : Math.abs(a);
    case 'sign':
      return a > 0 ? 1 : a < 0 ? -1 : a;
    case 'min':
    case 'max':
      return args.reduce((one, other) => extreme(name === 'min', one, other));
    case 'clamp':
      return extreme(true, extreme(false, first!, second!), third!);
    case 'mix':
      return fit(a + fit(fit(b - a) * c));
    case 'floor':
      return Math.floor(a);
    case 'ceil':
      return Math.ceil(a);
    case 'trunc':
      return Math.trunc(a);
    case 'round':
      return Math.round(a);
    case 'wrapF32':
    case 'wrapF64':
      return a | 0;
    case 'sqrt':
      return fit(Math.sqrt(a));
    case 'fma':
      return fused(a, b, c, type === 'f32' ? F32 : F64);
    default: {
      const value = Object.hasOwn(INEXACT, name) ? inexact(name, type === 'f32' ? 'f32' : 'f64', a, b) : undefined;
      if (value === undefined) throw new Unspecified(`${name}(${a}, ${b})`);
      return value;
    }
  }
}

/** Only the least number of a signed type by -1 leaves the type, and stays what it is. */
function whole(type: ScalarType, value: bigint): Value {
  switch (type) {
    case 'i32':
      return Number(BigInt.asIntN(32, value));
    case 'i64':
      return BigInt.asIntN(64, value);
    default:
      return typeof value === 'bigint' && type === 'u64' ? value : Number(value);
  }
}

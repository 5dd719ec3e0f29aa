// What the operations of millrace/ops compute, in plain JavaScript, from docs/operations.md and NumPy's rules: one element, or one group of
// elements that a reduction folds.
import type { DType } from 'millrace';
import { bitsOf, cast, epsilonOf, isFloat, isTrue, promotedTypes, realType, rounded, type Value } from './element-model.js';
import { allowedUlps, INEXACT } from './oracle/tolerance.js';
import type { Target } from './target.js';

/** The type in which an operation on elements computes, and the type of its result. Undefined: it has none for such elements. */
export type Types = readonly [compute: DType, result: DType] | undefined;

export interface ElementModel {
  readonly arity: number;
  /** The type of the operands together, of which `of` gets each. */
  types(together: DType): Types;
  of(args: readonly Value[], compute: DType): Value;
  /** The function of the table of tolerances; exact without one. */
  readonly inexact?: string;
  /** Integers of two types are compared as they are, also where no integer type holds both. */
  readonly isExact?: boolean;
  /** Either zero will do, as in NumPy. */
  readonly looseZero?: boolean;
}

type OfBoth<T> = (a: T, b: T, type: DType) => T;
const BIT: readonly DType[] = ['bool'];
const computedIn = (dtype: DType): DType => (isFloat(dtype) && bitsOf(dtype) === 16 ? 'f32' : dtype);

/** An operation that keeps the type: by integers (bool as 0 and 1) and by floats. */
function same(
  arity: number,
  integer: OfBoth<bigint>,
  float: OfBoth<number>,
  opts: { readonly not?: readonly DType[]; readonly looseZero?: boolean; readonly inexact?: string } = {},
): ElementModel {
  const { not = [], ...rest } = opts;
  return {
    ...rest,
    arity,
    types: (together) => (not.includes(together) ? undefined : [together, together]),
    of: ([a, b = 0], type) =>
      isFloat(type) ? float(Number(a), Number(b), computedIn(type)) : cast(integer(BigInt(a!), BigInt(b), type), type),
  };
}

function compared(of: (a: Value, b: Value) => boolean): ElementModel {
  return { arity: 2, isExact: true, types: (together) => [together, 'bool'], of: ([a, b]) => (of(a!, b!) ? 1n : 0n) };
}

function logical(arity: number, of: (a: boolean, b: boolean) => boolean): ElementModel {
  return { arity, types: (together) => [together, 'bool'], of: ([a, b = 0n]) => (of(isTrue(a!), isTrue(b)) ? 1n : 0n) };
}

function real(
  name: string,
  arity: 1 | 2 = 1,
  of = (Math as unknown as Readonly<Record<string, (a: number, b: number) => number>>)[name]!,
): ElementModel {
  return {
    arity,
    types: (together) => [realType(together), realType(together)],
    of: ([a, b = 0]) => of(Number(a), Number(b)),
    ...(name in INEXACT && { inexact: name }),
  };
}

function quotient(arity: 1 | 2, of: (a: number, b: number) => number): ElementModel {
  const types = (together: DType): Types => (isFloat(together) ? [together, together] : ['f64', 'f64']);
  return { arity, types, of: ([a, b = 0], type) => rounded(computedIn(type), of(Number(a), Number(b))) };
}

const floorOf = (a: bigint, b: bigint): bigint => (b === 0n ? 0n : a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n));
const restOf = (a: bigint, b: bigint): bigint => (b === 0n ? 0n : a - floorOf(a, b) * b);

/** NumPy's `npy_divmod`. */
function divided(a: number, b: number, type: DType): readonly [quotient: number, rest: number] {
  const r = (value: number): number => rounded(type, value);
  let rest = a % b;
  if (b === 0) return [r(a / b), rest];
  let whole = r(r(a - rest) / b);
  if (rest === 0) rest = b < 0 ? -0 : 0;
  else if (b < 0 !== rest < 0) {
    rest = r(rest + b);
    whole = r(whole - 1);
  }
  if (whole === 0) return [a / b < 0 || Object.is(a / b, -0) ? -0 : 0, rest];
  const down = Math.floor(whole);
  return [whole - down > 0.5 ? r(down + 1) : down, rest];
}

function powerOf(a: bigint, b: bigint, type: DType): bigint {
  if (b < 0n) return 0n;
  let [result, base] = [1n, a];
  for (let rest = b; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = BigInt.asIntN(64, result * base);
    base = BigInt.asIntN(64, base * base);
  }
  return cast(result, type) as bigint;
}

/** C's `pow`: 1 to the power of anything, and -1 to the power of an infinity, is 1. */
const floatPower = (a: number, b: number): number => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b);

function even(x: number): number {
  const down = Math.floor(x);
  const rest = x - down;
  if (!Number.isFinite(x) || rest === 0) return x;
  const value = rest > 0.5 || (rest === 0.5 && down % 2 !== 0) ? down + 1 : down;
  return value === 0 && x < 0 ? -0 : value;
}

const lower: OfBoth<number> = (a, b) => (Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : Math.min(a, b));
const upper: OfBoth<number> = (a, b) => (Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : Math.max(a, b));
const lowerInt: OfBoth<bigint> = (a, b) => (a < b ? a : b);
const upperInt: OfBoth<bigint> = (a, b) => (a > b ? a : b);
const whole = (of: (x: number) => number): ElementModel => same(1, (a) => a, of);
const sizeOf = (a: bigint): bigint => (a < 0n ? -a : a);
const bits = (of: (a: bigint, b: bigint) => bigint): ElementModel => ({
  ...same(2, of, () => Number.NaN),
  types: (together) => (isFloat(together) ? undefined : [together, together]),
});

export const ELEMENT_MODELS: Readonly<Record<string, ElementModel>> = {
  add: same(
    2,
    (a, b) => a + b,
    (a, b, type) => rounded(type, a + b),
  ),
  subtract: same(
    2,
    (a, b) => a - b,
    (a, b, type) => rounded(type, a - b),
    { not: BIT },
  ),
  multiply: same(
    2,
    (a, b) => a * b,
    (a, b, type) => rounded(type, a * b),
  ),
  floorDivide: same(2, floorOf, (a, b, type) => divided(a, b, type)[0], { not: BIT }),
  remainder: same(2, restOf, (a, b, type) => divided(a, b, type)[1], { not: BIT }),
  power: same(2, powerOf, floatPower, { not: BIT, inexact: 'pow' }),
  minimum: same(2, lowerInt, lower, { looseZero: true }),
  maximum: same(2, upperInt, upper, { looseZero: true }),
  negative: same(
    1,
    (a) => -a,
    (a) => -a,
    { not: BIT },
  ),
  absolute: same(1, sizeOf, Math.abs),
  sign: same(1, (a) => (a > 0n ? 1n : a < 0n ? -1n : 0n), Math.sign, { not: BIT, looseZero: true }),
  square: same(
    1,
    (a) => a * a,
    (a, _b, type) => rounded(type, a * a),
    { not: BIT },
  ),
  floor: whole(Math.floor),
  ceil: whole(Math.ceil),
  trunc: whole(Math.trunc),
  round: whole(even),
  bitwiseAnd: bits((a, b) => a & b),
  bitwiseOr: bits((a, b) => a | b),
  bitwiseXor: bits((a, b) => a ^ b),
  divide: quotient(2, (a, b) => a / b),
  reciprocal: quotient(1, (a) => 1 / a),
  ...Object.fromEntries(
    [
      'sqrt',
      'cbrt',
      'exp',
      'expm1',
      'log',
      'log2',
      'log10',
      'log1p',
      'sin',
      'cos',
      'tan',
      'asin',
      'acos',
      'atan',
      'sinh',
      'cosh',
      'tanh',
    ].map((name) => [name, real(name)]),
  ),
  atan2: real('atan2', 2),
  hypot: real('hypot', 2),
  equal: compared((a, b) => a === b),
  notEqual: compared((a, b) => a !== b),
  less: compared((a, b) => a < b),
  lessEqual: compared((a, b) => a <= b),
  greater: compared((a, b) => a > b),
  greaterEqual: compared((a, b) => a >= b),
  logicalAnd: logical(2, (a, b) => a && b),
  logicalOr: logical(2, (a, b) => a || b),
  logicalXor: logical(2, (a, b) => a !== b),
  logicalNot: logical(1, (a) => !a),
  isNan: { arity: 1, types: (together) => [together, 'bool'], of: ([a]) => (Number.isNaN(a) ? 1n : 0n) },
  isFinite: { arity: 1, types: (together) => [together, 'bool'], of: ([a]) => (typeof a === 'bigint' || Number.isFinite(a) ? 1n : 0n) },
  clip: {
    arity: 3,
    looseZero: true,
    types: (together) => [together, together],
    of: ([a, low, high], type) =>
      isFloat(type)
        ? lower(upper(Number(a), Number(low), type), Number(high), type)
        : lowerInt(upperInt(BigInt(a!), BigInt(low!), type), BigInt(high!), type),
  },
  where: { arity: 3, types: (together) => [together, together], of: ([condition, a, b]) => (isTrue(condition!) ? a! : b!) },
  astype: { arity: 1, types: (together) => [together, together], of: ([a]) => a! },
};

/** How far from the exact value a result of this type may be, in units of its last place. */
export function ulpsOf({ inexact }: ElementModel, compute: DType, target: Target): number {
  if (inexact === undefined || !isFloat(compute)) return 0;
  return bitsOf(compute) === 16 ? 1 : allowedUlps(inexact, compute as 'f32' | 'f64', target);
}

/** The exact result of a reduction, and how far from it a float may be. */
export type Folded = readonly [exact: Value, slack: number];

export interface FoldModel {
  /** The type of the result without `dtype`. */
  type(dtype: DType): DType;
  /** `dtype` gives the type in which it computes. */
  readonly takesType?: boolean;
  readonly needsElements?: boolean;
  readonly takesDdof?: boolean;
  of(values: readonly Value[], type: DType, ddof: number): Folded;
}

/** Roundings of a sum in parts: each part is short, and partial sums of f32 grow only by their number's logarithm. */
const ROUNDINGS = 32;
/** Neumaier's sum, as exact as a reference of f64 must be. */
function total(values: readonly number[]): number {
  let [sum, lost] = [0, 0];
  for (const value of values) {
    const next = sum + value;
    lost += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
  }
  return Number.isFinite(sum) ? sum + lost : sum;
}
const numbers = (values: readonly Value[], type: DType): number[] => values.map((value) => Number(cast(value, computedIn(type))));
const sumType = (dtype: DType): DType => (isFloat(dtype) ? dtype : dtype === 'bool' || dtype.startsWith('i') ? 'i64' : 'u64');
const meanType = (dtype: DType): DType => (isFloat(dtype) ? dtype : 'f64');
const itself = (dtype: DType): DType => dtype;

function summed(list: readonly number[], type: DType): Folded {
  return [total(list), ROUNDINGS * epsilonOf(computedIn(type)) * total(list.map(Math.abs))];
}

function varied(values: readonly Value[], type: DType, ddof: number): Folded {
  const list = numbers(values, type);
  const [sum, slack] = summed(list, type);
  const mean = Number(sum) / list.length;
  const divisor = Math.max(0, list.length - ddof);
  const exact = total(list.map((value) => (value - mean) ** 2)) / divisor;
  const epsilon = ROUNDINGS * epsilonOf(computedIn(type));
  return [exact, epsilon * exact + ((slack / list.length) ** 2 * list.length) / divisor];
}

/** The root of a value that is off by so much. */
function rooted([exact, slack]: Folded, type: DType): Folded {
  const root = Math.sqrt(Number(exact));
  const least = Math.sqrt(Math.max(0, Number(exact) - slack));
  const most = Math.sqrt(Number(exact) + slack);
  return [root, Math.max(most - root, root - least) + 2 * epsilonOf(computedIn(type)) * root];
}

function extreme(isBetter: (a: Value, b: Value) => boolean): (values: readonly Value[]) => number {
  return (values) => {
    const nan = values.findIndex(Number.isNaN as (value: Value) => boolean);
    return nan >= 0 ? nan : values.reduce<number>((best, value, n) => (isBetter(value, values[best]!) ? n : best), 0);
  };
}
const least = extreme((a, b) => a < b);
const most = extreme((a, b) => a > b);

export const FOLD_MODELS: Readonly<Record<string, FoldModel>> = {
  sum: {
    type: sumType,
    takesType: true,
    of: (values, type) =>
      isFloat(type)
        ? summed(numbers(values, type), type)
        : [
            cast(
              values.reduce<bigint>((sum, value) => sum + (cast(value, type) as bigint), 0n),
              type,
            ),
            0,
          ],
  },
  prod: {
    type: sumType,
    takesType: true,
    of: (values, type) => {
      if (!isFloat(type))
        return [
          cast(
            values.reduce<bigint>((all, value) => BigInt.asIntN(64, all * (cast(value, type) as bigint)), 1n),
            type,
          ),
          0,
        ];
      const exact = numbers(values, type).reduce((all, value) => all * value, 1);
      return [exact, (values.length + 1) * epsilonOf(computedIn(type)) * Math.abs(exact)];
    },
  },
  mean: {
    type: meanType,
    takesType: true,
    of: (values, type) => {
      const [sum, slack] = summed(numbers(values, type), type);
      return [Number(sum) / values.length, slack / values.length];
    },
  },
  variance: { type: meanType, takesDdof: true, of: varied },
  standardDeviation: { type: meanType, takesDdof: true, of: (values, type, ddof) => rooted(varied(values, type, ddof), type) },
  norm: {
    type: meanType,
    of: (values, type) => {
      const list = numbers(values, type).map((value) => value * value);
      return rooted(summed(list, type), type);
    },
  },
  min: { type: itself, needsElements: true, of: (values) => [values[least(values)]!, 0] },
  max: { type: itself, needsElements: true, of: (values) => [values[most(values)]!, 0] },
  argmin: { type: () => 'i32', needsElements: true, of: (values) => [BigInt(least(values)), 0] },
  argmax: { type: () => 'i32', needsElements: true, of: (values) => [BigInt(most(values)), 0] },
  all: { type: () => 'bool', of: (values) => [values.every(isTrue) ? 1n : 0n, 0] },
  any: { type: () => 'bool', of: (values) => [values.some(isTrue) ? 1n : 0n, 0] },
};

export const together = (dtypes: readonly DType[]): DType => dtypes.reduce(promotedTypes);

// Reductions along axes, named as NumPy names them. docs/operations.md lists them with their types.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { type Fold, submitFold } from './fold.js';
import { arraysAmong, castText } from './fused.js';
import { checkAxis } from './layout.js';
import { integerRange, isFloat, promoted, type QuotientOf, quotientOf, type SumOf, sumOf } from './promotion.js';
import { isReal, isWide, type Result, type TypeOf } from './ready.js';
import { type OpOptions, targetOf } from './target.js';

/** Options of reductions. */
export interface ReductionOptions<D extends DType = DType> extends OpOptions<D> {
  /** The axis or axes to reduce, negative from the end; default all, which gives an array without dimensions. NumPy's `axis`. */
  readonly axis?: number | readonly number[];
  /** Whether reduced axes stay with an extent of 1, so that the result broadcasts against the operand. NumPy's `keepdims`. Default false. */
  readonly keepDims?: boolean;
}
/** Options of `variance` and `standardDeviation`. */
export interface VarianceOptions<D extends DType = DType> extends ReductionOptions<D> {
  /** Subtracted from the number of elements to get the divisor. Default 0. NumPy's `ddof`. */
  readonly ddof?: number;
}

const REDUCTION_OPTIONS = ['axis', 'keepDims'];

/** What a reduction of elements of a type is. */
interface Plan {
  readonly fold: Fold;
  /** The type of the result. */
  readonly dtype: DType;
  /** Whether there is no result of no elements. */
  readonly needsElements?: boolean;
}

type PlanOf = (dtype: DType, wanted: DType | undefined) => Plan;

/** Makes each plan once, so that launches are found by it. */
function remembered(planOf: PlanOf): PlanOf {
  const known: Map<string, Plan> = new Map();
  return (dtype, wanted) => {
    const key = wanted === undefined ? dtype : `${dtype}>${wanted}`;
    let plan = known.get(key);
    if (plan === undefined) known.set(key, (plan = planOf(dtype, wanted)));
    return plan;
  };
}

function axesOf(rank: number, axis: unknown): number[] {
  if (axis === undefined) return Array.from({ length: rank }, (_, at) => at);
  if (!Array.isArray(axis)) return [checkAxis(axis, rank)];
  const axes = axis.map((one) => checkAxis(one, rank));
  if (new Set(axes).size !== axes.length) throw badArgument('axis', axis, `The axes (${show(axis)}) name a dimension twice.`);
  return axes;
}

function reduce(
  name: string,
  operands: readonly DeviceArray[],
  opts: ReductionOptions | undefined,
  planOf: PlanOf,
  more: readonly string[] = [],
): DeviceArray {
  arraysAmong(name, operands);
  if (typeof opts === 'number')
    throw badArgument('opts', opts, `The options of ${name} (${String(opts)}) are not an object: pass { axis: ${String(opts)} }.`);
  const [a] = operands as readonly [DeviceArray];
  const target = targetOf(name, opts, operands, [...REDUCTION_OPTIONS, ...more]);
  const { shape } = a;
  const axes = axesOf(shape.length, opts?.axis);
  const keepDims: unknown = opts?.keepDims ?? false;
  if (typeof keepDims !== 'boolean')
    throw badArgument('keepDims', keepDims, `The option keepDims (${show(keepDims)}) is neither true nor false.`);
  let from = a.dtype;
  for (const operand of operands) from = promoted(from, operand.dtype);
  if (opts?.out !== undefined) target.typeOf(planOf(from, undefined).dtype);
  const { fold, dtype, needsElements } = planOf(from, target.dtype);
  const kept: number[] = [];
  let count = 1;
  for (let axis = 0; axis < shape.length; axis++) {
    const isReduced = axes.includes(axis);
    if (isReduced) count *= shape[axis]!;
    if (!isReduced) kept.push(shape[axis]!);
    else if (keepDims) kept.push(1);
  }
  if (needsElements === true && count === 0) throw badArgument('a', a, `The operation ${name} has no result of no elements (${a.label}).`);
  return target.write(kept, dtype, operands, (into) => submitFold(fold, operands, shape, axes, into, target));
}

/** A fold that carries one value. `of`: the text of the value of an element. */
function simple(
  name: string,
  from: DType,
  type: ScalarType,
  init: string,
  combine: string,
  more: Partial<Fold> & { readonly of?: (text: string) => string } = {},
): Fold {
  const { of = (text: string): string => text, ...rest } = more;
  return {
    name,
    key: `${name}:${from}:${type}`,
    carried: [{ type, init }],
    combine,
    leaf: (elements) => [of(castText(elements[0] as string, REGISTER_TYPE[from], type))],
    finish: () => 'v0',
    result: type,
    ...rest,
  };
}

const zeroOf = (type: ScalarType): string => `${type}(0)`;

/** A fold of numbers in the type of sums. */
const numberPlan = (name: string, init: 0 | 1, operator: '+' | '*'): PlanOf =>
  remembered((from, wanted) => {
    const dtype = wanted ?? sumOf(from);
    const type = REGISTER_TYPE[dtype] === 'bool' ? 'i64' : REGISTER_TYPE[dtype];
    return { dtype, fold: simple(name, from, type, `${type}(${init})`, `v0 = v0 ${operator} a0;`) };
  });
const sumPlan = numberPlan('sum', 0, '+');
const prodPlan = numberPlan('prod', 1, '*');

/**
 * The sum of the elements, 0 of none: `numpy.sum`. Integers are summed in i64 or u64 unless `dtype` says otherwise; read them as bigint.
 * @example const total = await sum(x).item(); // a number for f32
 */
export function sum<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, SumOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('sum', arguments, 2);
  return reduce('sum', [a], opts, sumPlan) as Result<O, SumOf<TypeOf<A>>>;
}

/** The sum of the products of the elements of two arrays. */
export function productOf(a: DType, b: DType, dtype: DType): Fold {
  const type = REGISTER_TYPE[dtype];
  const leaf = ([x, y]: readonly string[]): readonly string[] => [
    `${castText(x as string, REGISTER_TYPE[a], type)} * ${castText(y as string, REGISTER_TYPE[b], type)}`,
  ];
  return { ...simple('dot', dtype, type, zeroOf(type), 'v0 = v0 + a0;'), key: `dot:${a}:${b}:${dtype}`, leaf };
}

/** The product of the elements, 1 of none: `numpy.prod`. Types as of `sum`. */
export function prod<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, SumOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('prod', arguments, 2);
  return reduce('prod', [a], opts, prodPlan) as Result<O, SumOf<TypeOf<A>>>;
}

/** A sum of reals that `finish` makes the result of. */
function realPlan(name: string, of: (text: string) => string, finish: (count: string, type: ScalarType) => string): PlanOf {
  return remembered((from, wanted) => {
    const dtype = wanted ?? quotientOf(from);
    const type = REGISTER_TYPE[isFloat(dtype) ? dtype : 'f64'];
    return { dtype, fold: simple(name, from, type, zeroOf(type), 'v0 = v0 + a0;', { of, finish: (count) => finish(count, type) }) };
  });
}

const meanPlan = realPlan(
  'mean',
  (text) => text,
  (count, type) => `v0 / ${type}(${count})`,
);
const normPlan = realPlan(
  'norm',
  (text) => `${text} * ${text}`,
  () => 'Math.sqrt(v0)',
);

/** The mean of the elements, NaN of none: `numpy.mean`. f64 of integers. */
export function mean<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, QuotientOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('mean', arguments, 2);
  return reduce('mean', [a], opts, meanPlan) as Result<O, QuotientOf<TypeOf<A>>>;
}

/** The root of the sum of the squares: `numpy.linalg.norm` of a vector, of a matrix its Frobenius norm. f64 of integers. */
export function norm<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, QuotientOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('norm', arguments, 2);
  return reduce('norm', [a], opts, normPlan) as Result<O, QuotientOf<TypeOf<A>>>;
}

/** The mean of the squared distances from the mean: `numpy.var`. f64 of integers. */
export function variance<A extends DeviceArray, const O extends VarianceOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, QuotientOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('variance', arguments, 2);
  return spread('variance', a, opts, (text) => text) as Result<O, QuotientOf<TypeOf<A>>>;
}

/** The root of the variance: `numpy.std`. f64 of integers. */
export function standardDeviation<A extends DeviceArray, const O extends VarianceOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, QuotientOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('standardDeviation', arguments, 2);
  return spread('standardDeviation', a, opts, (text) => `Math.sqrt(${text})`) as Result<O, QuotientOf<TypeOf<A>>>;
}

function spread(name: string, a: DeviceArray, opts: VarianceOptions | undefined, finish: (text: string) => string): DeviceArray {
  const { ddof = 0, ...rest } = opts ?? {};
  if (!Number.isInteger(ddof)) throw badArgument('ddof', ddof, `The option ddof of ${name} (${show(ddof)}) is not a whole number.`);
  arraysAmong(name, [a]);
  const { stream, device, axis } = rest;
  const wanted = targetOf(name, opts, [a], [...REDUCTION_OPTIONS, 'ddof']).dtype ?? quotientOf(a.dtype);
  // The distances from the mean are too small, and their squares too large, for 16 bits.
  const dtype = REGISTER_TYPE[promoted(quotientOf(a.dtype), wanted)] === 'f32' ? 'f32' : 'f64';
  // Two passes: the squares of large numbers would lose the small differences.
  const wide = { dtype, ...(stream && { stream }), ...(device !== undefined && { device }) } as const;
  using middle = mean(a, { ...wide, ...(axis !== undefined && { axis }), keepDims: true });
  const plan = spreadPlan(name, ddof, a.dtype, dtype, wanted, finish);
  return reduce(name, [a, middle], rest, () => plan);
}

const spreads: Map<string, Plan> = new Map();

/** The fold of the squared distances, in the type `dtype`, of elements from their mean. */
function spreadPlan(name: string, ddof: number, from: DType, dtype: 'f32' | 'f64', wanted: DType, finish: (text: string) => string): Plan {
  const key = `${name}${ddof}:${from}:${dtype}:${wanted}`;
  let plan = spreads.get(key);
  if (plan === undefined) {
    const type = REGISTER_TYPE[isFloat(wanted) ? wanted : 'f64'];
    const distance = (elements: readonly string[]): string =>
      castText(`(${castText(elements[0] as string, REGISTER_TYPE[from], dtype)} - ${elements[1]})`, dtype, type);
    const fold = simple(name, dtype, type, zeroOf(type), 'v0 = v0 + a0;', {
      key,
      leaf: (elements) => [`${distance(elements)} * ${distance(elements)}`],
      finish: (count) => finish(`v0 / ${type}(${count} > ${ddof} ? ${count} - ${ddof} : 0)`),
    });
    spreads.set(key, (plan = { dtype: wanted, fold }));
  }
  return plan;
}

const extreme = (name: string, isBetter: (a: string, v: string) => string, worst: (dtype: DType) => string): PlanOf =>
  remembered((from, wanted) => {
    const type = REGISTER_TYPE[from];
    const isTest = type === 'bool';
    // Booleans are compared as 0 and 1.
    const carried: ScalarType = isTest ? 'i32' : type;
    return {
      dtype: wanted ?? from,
      needsElements: true,
      // NaN stays: no comparison with it is true.
      fold: simple(name, from, carried, worst(from), `v0 = ${isBetter('a0', 'v0')}${isReal(type) ? ' || a0 !== a0' : ''} ? a0 : v0;`),
    };
  });

function boundOf(dtype: DType, end: 0 | 1): string {
  const type = REGISTER_TYPE[dtype];
  if (isReal(type)) return `${type}(${end === 0 ? '-' : ''}Infinity)`;
  if (type === 'bool') return `i32(${end})`;
  const bound = integerRange(dtype)[end];
  return isWide(type) ? wideText(type, bound) : `${type}(${bound})`;
}

/** The language has no literal for the smallest i64. */
function wideText(type: ScalarType, value: bigint): string {
  return value < 0n ? `${type}(${value + 1n}n) - 1n` : `${type}(${value}n)`;
}

const minPlan = extreme(
  'min',
  (x, v) => `${x} < ${v}`,
  (dtype) => boundOf(dtype, 1),
);
const maxPlan = extreme(
  'max',
  (x, v) => `${x} > ${v}`,
  (dtype) => boundOf(dtype, 0),
);

/** The smallest element; NaN if any is: `numpy.min`. Throws ArgumentError for no elements. */
export function min<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(a: A, opts?: O): Result<O, TypeOf<A>> {
  if (arguments.length > 2) refuseSurplus('min', arguments, 2);
  return reduce('min', [a], opts, minPlan) as Result<O, TypeOf<A>>;
}

/** The largest element; NaN if any is: `numpy.max`. Throws ArgumentError for no elements. */
export function max<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(a: A, opts?: O): Result<O, TypeOf<A>> {
  if (arguments.length > 2) refuseSurplus('max', arguments, 2);
  return reduce('max', [a], opts, maxPlan) as Result<O, TypeOf<A>>;
}

/** Where an extreme is: the first of several, and the first NaN if there is one. */
const place = (name: string, sign: '<' | '>'): PlanOf =>
  remembered((from, wanted) => {
    const register = REGISTER_TYPE[from];
    const type: ScalarType = register === 'bool' ? 'i32' : register;
    // The first of several, and NaN before all others. What no element has given yet is worse than any.
    const isBetter = `a0 ${sign} v0 || (a0 === v0 && a1 < v1)${isReal(type) ? ' || (a0 !== a0 && (v0 === v0 || a1 < v1))' : ''}`;
    return {
      dtype: wanted ?? 'i32',
      needsElements: true,
      fold: {
        name,
        key: `${name}:${from}`,
        carried: [
          { type, init: boundOf(from, sign === '<' ? 1 : 0) },
          { type: 'i32', init: 'i32(2147483647)' },
        ],
        combine: `if (${isBetter}) { v0 = a0; v1 = a1; }`,
        leaf: (elements, number) => [castText(elements[0] as string, register, type), number],
        finish: () => 'v1',
        result: 'i32',
      },
    };
  });
const argminPlan = place('argmin', '<');
const argmaxPlan = place('argmax', '>');

/** The number, along the axis, of the smallest element, the first of several; of NaN if any is. i32 (NumPy: int64): `numpy.argmin`. */
export function argmin<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(a: A, opts?: O): Result<O, 'i32'> {
  if (arguments.length > 2) refuseSurplus('argmin', arguments, 2);
  return reduce('argmin', [a], opts, argminPlan) as Result<O, 'i32'>;
}

/** The number, along the axis, of the largest element, the first of several; of NaN if any is. i32 (NumPy: int64): `numpy.argmax`. */
export function argmax<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(a: A, opts?: O): Result<O, 'i32'> {
  if (arguments.length > 2) refuseSurplus('argmax', arguments, 2);
  return reduce('argmax', [a], opts, argmaxPlan) as Result<O, 'i32'>;
}

const truth = (name: string, init: 0 | 1): PlanOf =>
  remembered((from, wanted) => ({
    dtype: wanted ?? 'bool',
    fold: {
      ...simple(name, from, 'i32', `i32(${init})`, init === 1 ? 'v0 = v0 & a0;' : 'v0 = v0 | a0;'),
      leaf: (elements) => [`i32(${castText(elements[0] as string, REGISTER_TYPE[from], 'bool')} ? 1 : 0)`],
      finish: () => 'v0 !== 0',
      result: 'bool',
    },
  }));
const allPlan = truth('all', 1);
const anyPlan = truth('any', 0);

/** Whether all elements are other than 0; true of none: `numpy.all`. */
export function all<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(a: A, opts?: O): Result<O, 'bool'> {
  if (arguments.length > 2) refuseSurplus('all', arguments, 2);
  return reduce('all', [a], opts, allPlan) as Result<O, 'bool'>;
}

/** Whether any element is other than 0; false of none: `numpy.any`. */
export function any<A extends DeviceArray, const O extends ReductionOptions = Record<never, never>>(a: A, opts?: O): Result<O, 'bool'> {
  if (arguments.length > 2) refuseSurplus('any', arguments, 2);
  return reduce('any', [a], opts, anyPlan) as Result<O, 'bool'>;
}

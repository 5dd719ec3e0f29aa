// Operations on elements whose operands are of several types: a choice, limits, another type.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { checkDType } from '../core/elements/dtype-names.js';
import type { DType, DTypeLike } from '../core/elements/dtype.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { arraysAmong, Fused, type Operand, onlyArrays } from './fused.js';
import { common, compile, isReal, type Result, type Together, type TypeOf, type With } from './ready.js';
import { promoted } from './promotion.js';
import { type OpOptions, type Target, targetOf } from './target.js';

const choice = new Fused('where');
const limits = new Fused('clip');
const conversion = new Fused('astype');

/**
 * The elements of `a` where `condition` is other than 0, and those of `b` elsewhere, broadcast: `numpy.where`. The type is that of `a` and
 * `b` together. Throws as every operation does.
 * @example const positive = where(greater(x, 0), x, 0);
 */
export function where<A extends Operand, B extends Operand, const O extends OpOptions = Record<never, never>>(
  condition: Operand,
  a: A,
  b: B,
  opts?: O,
): Result<O, Together<A, B>> {
  if (arguments.length > 4) refuseSurplus('where', arguments, 4);
  const operands = [condition, a, b];
  const target = targetOf('where', opts, arraysAmong('where', operands));
  const own = common([a, b]);
  const dtype = wider(own, target);
  const type = REGISTER_TYPE[dtype];
  const compiled = compile(['c', 'a', 'b'], ['bool', type, type], 'c ? a : b', type);
  return choice.run(operands, compiled, target.typeOf(own), target) as Result<O, Together<A, B>>;
}

/**
 * The elements of `a`, but at least `low` and at most `high`, which are numbers or arrays; undefined is no limit: `numpy.clip`. NaN stays.
 * Throws ArgumentError without a limit, and as every operation does.
 */
export function clip<
  A extends DeviceArray,
  L extends Operand | undefined,
  H extends Operand | undefined,
  const O extends OpOptions = Record<never, never>,
>(a: A, low: L, high: H, opts?: O): Result<O, With<With<TypeOf<A>, L>, H>> {
  if (arguments.length > 4) refuseSurplus('clip', arguments, 4);
  if (low === undefined && high === undefined) throw badArgument('low', low, 'The operation clip has neither a low nor a high limit.');
  const named = { a, low, high };
  const names = (['a', 'low', 'high'] as const).filter((name) => named[name] !== undefined);
  const operands = names.map((name) => named[name] as Operand);
  const target = targetOf('clip', opts, arraysAmong('clip', operands));
  const own = common(operands);
  const dtype = wider(own, target);
  const type = REGISTER_TYPE[dtype];
  const text = `{ ${low === undefined ? 'const x = a;' : `const x = ${limited(type, 'a', '<', 'low')};`} return ${high === undefined ? 'x' : limited(type, 'x', '>', 'high')}; }`;
  const compiled = compile(
    names,
    names.map(() => type),
    text,
    type,
  );
  return limits.run(operands, compiled, target.typeOf(own), target) as Result<O, With<With<TypeOf<A>, L>, H>>;
}

/** The type of the operands, or that of the result if it is the wider one. */
function wider(dtype: DType, target: Target): DType {
  return target.dtype === undefined ? dtype : promoted(dtype, target.dtype);
}

/** NaN as a limit gives NaN, and the high limit wins over a higher low one, as in NumPy. */
function limited(type: ScalarType, value: string, sign: '<' | '>', limit: string): string {
  if (type === 'bool') return `${value} ${sign === '<' ? '||' : '&&'} ${limit}`;
  return `${value} ${sign} ${limit}${isReal(type) ? ` || ${limit} !== ${limit}` : ''} ? ${limit} : ${value}`;
}

/**
 * The elements as another type: `ndarray.astype`. Integers wrap; floats become integers by truncation, saturate at 32 or 64 bits, and NaN
 * gives 0; every value other than 0 is true. Always a new array, or `out`. Throws as every operation does.
 */
export function astype<D extends DType>(a: DeviceArray, dtype: DTypeLike<D>, opts?: Omit<OpOptions<D>, 'dtype'>): DeviceArray<D> {
  if (arguments.length > 3) refuseSurplus('astype', arguments, 3);
  if (dtype === undefined) throw badArgument('dtype', dtype, "The dtype of astype (undefined) is missing, as in astype(a, 'f64').");
  const to = checkDType<D>(dtype);
  onlyArrays('astype', [a]);
  if (opts !== undefined && 'dtype' in opts)
    throw badArgument('dtype', opts.dtype, `The option dtype (${show(opts.dtype)}) is given twice.`);
  const target = targetOf('astype', { ...opts, dtype: to }, [a]);
  const type = REGISTER_TYPE[a.dtype];
  return conversion.run([a], compile(['a'], [type], 'a', type), to, target) as DeviceArray<D>;
}

// The ready operations on elements: each is the text of a function, and the rule of its types.
import { badArgument } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { type DType, type DTypeLike, is16BitFloat } from '../core/elements/dtype.js';
import { bitsOf16, numberOf16 } from '../core/elements/half-bits.js';
import { ScalarSlot } from '../core/graphs/slots.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { lowerFunc } from '../compiler/lowering/lower.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { parseText } from '../compiler/source/parse.js';
import { arraysAmong, type Compiled, Fused, isArray, type Operand } from './fused.js';
import { QuickPlans } from './quick-plans.js';
import {
  besideNumber,
  type BesideNumber,
  floatOf,
  type FloatOf,
  type Promoted,
  promoted,
  quotientOf,
  type QuotientOf,
} from './promotion.js';
import { formsOf, type OpOptions, split, targetOf } from './target.js';

/** How the types of the operands give the type that an operation computes in, and that of its result. */
type Rule = 'same' | 'float' | 'quotient' | 'compare' | 'logical' | 'test';

/** The type of an operand, and of two operands together. */
export type TypeOf<A> = A extends DeviceArray<infer D> ? D : A extends ScalarSlot<infer D> ? D : never;
export type Together<A, B> = [TypeOf<A>] extends [never]
  ? [TypeOf<B>] extends [never]
    ? [A | B] extends [boolean]
      ? 'bool'
      : BesideNumber<'bool'>
    : With<TypeOf<B>, A>
  : With<TypeOf<A>, B>;
/** The type of an array's elements together with an operand, which may be a number, or absent. */
export type With<D extends DType, X> = X extends boolean | undefined
  ? D
  : [TypeOf<X>] extends [never]
    ? BesideNumber<D>
    : Promoted<D, TypeOf<X>>;
/** The result of an operation: `out`, or an array of the type that the options name, else of the operation's own type. */
export type Result<O, D extends DType> = O extends { readonly out: infer T extends DeviceArray }
  ? T
  : O extends { readonly dtype: DTypeLike<infer T extends DType> }
    ? DeviceArray<T>
    : DeviceArray<D>;
type Ruled<R extends Rule, D extends DType> = R extends 'same'
  ? D
  : R extends 'float'
    ? FloatOf<D>
    : R extends 'quotient'
      ? QuotientOf<D>
      : 'bool';

/** An operation on each element of one array. */
export type Unary<R extends Rule> = <A extends DeviceArray, const O extends OpOptions = Record<never, never>>(
  a: A,
  opts?: O,
) => Result<O, Ruled<R, TypeOf<A>>>;
/** An operation on each pair of elements of two arrays that broadcast, or of an array and a number. */
export type Binary<R extends Rule> = <A extends Operand, B extends Operand, const O extends OpOptions = Record<never, never>>(
  a: A,
  b: B & Beside<A>,
  opts?: O,
) => Result<O, Ruled<R, Together<A, B>>>;
/** What stands beside an operand: at least one of two is an array. */
export type Beside<A> = A extends DeviceArray ? unknown : DeviceArray;

/** The text of the function's result or, in braces, of its body, for operands of a type; undefined for types that it does not take. */
export type Text = (type: ScalarType, literal: (value: number) => string) => string | undefined;

export const isWide = (type: ScalarType): boolean => type === 'i64' || type === 'u64';
export const isReal = (type: ScalarType): boolean => type === 'f32' || type === 'f64';
/** A whole number as the language writes it beside values of a type. */
const literalOf =
  (type: ScalarType) =>
  (value: number): string =>
    isWide(type) ? `${value}n` : String(value);

/** The types in which operands of these types meet; a number has the type of the arrays if it can. */
export function common(operands: readonly Operand[]): DType {
  let whole: DType | undefined;
  for (const operand of operands) {
    if (isArray(operand) || operand instanceof ScalarSlot) whole = whole === undefined ? operand.dtype : promoted(whole, operand.dtype);
  }
  // Numbers alone are as numbers beside a condition.
  const beside = whole ?? 'bool';
  let result = beside;
  for (const operand of operands) {
    if (!isArray(operand) && !(operand instanceof ScalarSlot)) result = promoted(result, besideNumber(beside, operand));
  }
  return result;
}

const compiled: Map<string, Compiled> = new Map();

/** The function with this text and these types: one of the library's own, of which there are few. */
export function compile(params: readonly string[], types: readonly ScalarType[], text: string, result: ScalarType): Compiled {
  const key = `(${params.join()}:${types.join()})=>${text}:${result}`;
  let found = compiled.get(key);
  if (found === undefined) {
    const body = text.startsWith('{') ? text : `(${text})`;
    found = { key, params: types, result, func: lowerFunc('f', parseText(`(${params.join(', ')}) => ${body}`, compile), types, result) };
    compiled.set(key, found);
  }
  return found;
}

const PARAMS = ['a', 'b', 'c'];

export function unary<R extends Rule>(name: string, rule: R, text: Text): Unary<R> {
  return ready(name, 1, rule, text) as Unary<R>;
}

export function binary<R extends Rule>(name: string, rule: R, text: Text): Binary<R> {
  return ready(name, 2, rule, text) as Binary<R>;
}

/** Numbers of 16 bits are computed as f32, but a number beside them is one of them. */
export function inType(dtype: DType, operand: Operand): Operand {
  return typeof operand === 'number' && is16BitFloat(dtype) ? numberOf16(dtype, bitsOf16(dtype, operand)) : operand;
}

/** What an operation computes for operands that meet in a type. */
interface Plan {
  readonly compiled: Compiled;
  /** The type of its result unless the options say otherwise. */
  readonly own: DType;
  /** The type that it computes in. */
  readonly computed: DType;
}

/** The types of two operands of integers that no integer type holds together: u64 and signed ones. Comparisons of them are exact, as in NumPy 2. */
function mixedTypes(operands: readonly Operand[]): readonly [DType, DType] | undefined {
  const types = operands.map((operand) => (isArray(operand) || operand instanceof ScalarSlot ? operand.dtype : 'bool'));
  return types.includes('u64') && types.some((dtype) => dtype.startsWith('i')) ? (types as [DType, DType]) : undefined;
}

/** The text of a comparison `a < b` for a signed and an unsigned integer: a negative one is the smaller. */
function mixedText(text: string, left: ScalarType): string {
  const [, sign] = text.split(' ') as [string, string, string];
  if (left === 'i64') return sign.startsWith('<') || sign === '!==' ? `a < 0n || u64(a) ${sign} b` : `a >= 0n && u64(a) ${sign} b`;
  return sign.startsWith('>') || sign === '!==' ? `b < 0n || a ${sign} u64(b)` : `b >= 0n && a ${sign} u64(b)`;
}

/** An operation of `count` operands, which all meet in one type. */
function ready(name: string, count: 1 | 2, rule: Rule, text: Text): (...args: readonly unknown[]) => DeviceArray {
  const fused = new Fused(name);
  const isTest = rule === 'compare' || rule === 'test' || rule === 'logical';
  const plans: Map<string, Plan> = new Map();
  const planOf = (whole: DType, wanted: DType | undefined, mixed: readonly [DType, DType] | undefined): Plan => {
    if (mixed !== undefined) {
      const [left, right] = mixed.map((dtype) => (dtype === 'u64' ? 'u64' : 'i64')) as [ScalarType, ScalarType];
      return { compiled: compile(['a', 'b'], [left, right], mixedText(text('i64', String)!, left), 'bool'), own: 'bool', computed: whole };
    }
    const own = rule === 'float' ? floatOf(whole) : rule === 'quotient' ? quotientOf(whole) : rule === 'logical' ? 'bool' : whole;
    // A wider type of the result is also that of the calculation.
    const computed = isTest || wanted === undefined ? own : promoted(own, wanted);
    const type = REGISTER_TYPE[computed];
    const body = text(type, literalOf(type));
    if (body === undefined) throw badArgument('dtype', whole, `The operation ${name} is not defined for elements of ${whole}.`, whole);
    const types = Array.from({ length: count }, () => type);
    const found = compile(PARAMS.slice(0, count), types, body, isTest ? 'bool' : type);
    return { compiled: found, own: isTest ? 'bool' : own, computed };
  };
  const quick = new QuickPlans(count);
  return (...args) => {
    const result = quick.run(args);
    if (result !== undefined) return result;
    const [operands, opts] = split<Operand>(name, args, count);
    const target = targetOf(name, opts, arraysAmong(name, operands));
    const whole = common(operands);
    const mixed = rule === 'compare' && whole === 'f64' ? mixedTypes(operands) : undefined;
    const key = mixed !== undefined ? mixed.join() : target.dtype === undefined ? whole : `${whole}>${target.dtype}`;
    let plan = plans.get(key);
    if (plan === undefined) plans.set(key, (plan = planOf(whole, target.dtype, mixed)));
    const { compiled: found, own, computed } = plan;
    if (opts === undefined && operands.every(isArray))
      for (const form of formsOf(target)) quick.add(form, operands, fused.flatKernel(form, operands, found, own), own);
    return fused.run(
      operands.every(isArray) ? operands : operands.map((operand) => inType(computed, operand)),
      found,
      target.typeOf(own),
      target,
    );
  };
}

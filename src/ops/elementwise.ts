// elementwise(): a plain function of single elements, run over whole arrays.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import { ScalarSlot } from '../core/graphs/slots.js';
import { callSite, type ErrorSource, KernelTextError } from '../compiler/diagnostics/diagnostics.js';
import { reporting } from '../compiler/diagnostics/reporting.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { lowerFunc } from '../compiler/lowering/lower.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { type ParsedFunction, parseFunction, textOfFunction } from '../compiler/source/parse.js';
import { arraysAmong, type Compiled, Fused, isArray, type Operand } from './fused.js';
import { besideNumber, promoted } from './promotion.js';
import type { Result } from './ready.js';
import { type OpOptions, split, targetOf } from './target.js';

/** An operand of an operation: an array, a number, or in a capture the slot of a number. */
export type { Operand } from './fused.js';

/** What `elementwise` makes: call it with one operand per parameter of the function, at least one of them an array, and options. */
export type Elementwise<A extends readonly unknown[], D extends DType = DType> = <const O extends OpOptions = Record<never, never>>(
  ...args: [...{ [I in keyof A]: ArrayAt<A, I> }[number], opts?: O]
) => Result<O, D>;
type ArrayAt<A extends readonly unknown[], At> = { [I in keyof A]: I extends At ? DeviceArray : Operand };
/** Numbers do not tell the type that a function computes in; conditions do. */
type ResultOf<R> = [R] extends [boolean] ? 'bool' : DType;

/** The function's result may have any of these types; the first that it converts to without a cast is taken. */
const RESULTS: readonly ScalarType[] = ['bool', 'i32', 'u32', 'i64', 'u64', 'f32', 'f64'];

/**
 * Makes an operation of a plain function of numbers, which is compiled and never called: `cupy.fuse`, `cupyx.jit`, `numpy.frompyfunc`. The operation
 * runs the function over arrays of any shapes that broadcast and any strides, in one kernel on the current stream, and returns a new array
 * (or `out`). The function is written in the language of TypeScript kernels: `Math`, local variables and loops; outer names are not known.
 *
 * Each parameter has the type of its operand's elements (f16 and bf16 are computed as f32). The result has the type that NumPy gives the
 * operands if the function computes in it, else the type that the function computes in. Throws CompileError for a function outside of the
 * language, and when it is called with types that the function cannot combine; ArgumentError for operands that do not broadcast.
 * @example const axpb = elementwise((a, x, b) => a * x + b); const y = axpb(2, x, b);
 */
export function elementwise<A extends readonly number[], R extends number | boolean>(fn: (...args: A) => R): Elementwise<A, ResultOf<R>>;
export function elementwise<A extends readonly (number | bigint | boolean)[], R extends number | bigint | boolean>(
  fn: (...args: A) => R,
): Elementwise<A, ResultOf<R>>;
export function elementwise(fn: (...args: never[]) => unknown): unknown {
  if (arguments.length > 1) refuseSurplus('elementwise', arguments, 1, 'operands go to the function that it returns: elementwise(fn)(x).');
  if (typeof fn !== 'function')
    throw badArgument(
      'fn',
      fn,
      `The function given to elementwise (${show(fn)}) is not a function: pass it itself, as in elementwise((a, b) => a * b).`,
    );
  const site = callSite(elementwise);
  const name = fn.name !== '' ? fn.name : 'elementwise';
  const source: ErrorSource = { text: textOfFunction(fn), body: fn };
  const parsed = reporting(name, source, site, () => parseFunction(fn));
  const count = parsed.node.params.length;
  if (count === 0) throw badArgument('fn', fn, `The function given to elementwise (${show(fn)}) has no parameter.`);
  const fused = new Fused(name, site);
  const compiled: Map<string, Compiled> = new Map();
  return (...args: readonly unknown[]) => {
    const [operands, opts] = split<Operand>(name, args, count);
    const arrays = arraysAmong(name, operands);
    const target = targetOf(name, opts, arrays);
    const dtypes = operandTypes(operands);
    const key = dtypes.join();
    let found = compiled.get(key);
    if (found === undefined) compiled.set(key, (found = reporting(name, source, site, () => inferred(parsed, dtypes))));
    const whole = dtypes.reduce(promoted);
    const { result } = found;
    return fused.run(operands, found, target.typeOf(REGISTER_TYPE[whole] === result ? whole : result), target);
  };
}

/** The element type of each operand; a number takes the type of the arrays if it can. */
function operandTypes(operands: readonly Operand[]): DType[] {
  const own = operands.flatMap((operand) => (isArray(operand) || operand instanceof ScalarSlot ? [operand.dtype] : []));
  const common = own.reduce(promoted);
  return operands.map((operand) => {
    if (isArray(operand) || operand instanceof ScalarSlot) return operand.dtype;
    return typeof operand === 'boolean' ? 'bool' : besideNumber(common, operand);
  });
}

/** Lowers the function for these types, and finds the type of its result. */
function inferred(parsed: ParsedFunction, dtypes: readonly DType[]): Compiled {
  const params = dtypes.map((dtype) => REGISTER_TYPE[dtype]);
  let failure: unknown;
  for (const result of RESULTS) {
    try {
      return { key: dtypes.join(), params, result, func: lowerFunc('f', parsed, params, result) };
    } catch (error) {
      if (!(error instanceof KernelTextError)) throw error;
      failure = error;
    }
  }
  throw failure;
}

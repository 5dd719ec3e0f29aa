// func(): a small typed function that kernels call by name. The compiler includes it in each kernel that uses it.
import { refuseSurplus } from '../../core/base/arguments.js';
import { passTheType } from '../../core/elements/dtype-names.js';
import { isDType, type Scalar } from '../../core/elements/dtype.js';
import { refuseArgument, shortened } from './arguments.js';
import { type CallSite, callSite } from '../diagnostics/diagnostics.js';
import type { FuncIr, ScalarType } from '../ir/ir.js';
import type { Func, FuncBody, Funcs } from '../language/language.js';
import { lowerFunc } from '../lowering/lower.js';
import { reporting } from '../diagnostics/reporting.js';
import { type ParsedFunction, parseFunction, textOfFunction } from '../source/parse.js';
import { REGISTER_TYPE } from '../lowering/types.js';

interface FuncDefinition {
  readonly parsed: ParsedFunction;
  readonly params: readonly ScalarType[];
  readonly result: ScalarType;
  readonly site: CallSite;
}

/** The definition behind each public Func object. */
const definitions = new WeakMap<Func, FuncDefinition>();

/**
 * Makes a helper that kernels call by name, compiled into each of them: a `__device__` function, `@wp.func`. It takes scalars and returns
 * one scalar.
 * Throws ArgumentError for a bad type, CompileError if the body uses what the kernel language does not have. `KernelOptions.functions`
 * names it.
 * @example const square = func([f32], f32, (x) => x * x);
 */
export function func<const A extends readonly Scalar[], R extends Scalar>(params: A, result: R, body: FuncBody<A, R>): Func<A, R> {
  if (arguments.length > 3) refuseSurplus('func', arguments, 3);
  const site = callSite(func);
  if (!Array.isArray(params)) refuseArgument(`params (${shortened(params)}) must be an array of types.`, 'params', params);
  const made: Func<A, R> = Object.freeze({ kind: 'func', params, result });
  const types = params.map((type, at) => registerType(type, `params[${at}]`));
  const known = reporting('func', { text: textOfFunction(body), body }, site, () => parseFunction(body));
  const definition = { parsed: known, params: types, result: registerType(result, 'result'), site };
  definitions.set(made, definition);
  lower('func', definition);
  return made;
}

function registerType(scalar: Scalar | undefined, argument: string): ScalarType {
  const dtype = scalar?.dtype;
  if (!isDType(dtype))
    return refuseArgument(`${argument} (${shortened(scalar)}) must be a type such as f32${passTheType(scalar)}.`, argument, scalar);
  return REGISTER_TYPE[dtype];
}

function lower(name: string, { parsed, params, result, site }: FuncDefinition): FuncIr {
  return reporting('func', parsed, site, () => lowerFunc(name, parsed, params, result));
}

/** Lowers a kernel's helpers, keyed by the names that the kernel gives them. */
export function lowerFunctions(functions: Funcs): ReadonlyMap<string, FuncIr> {
  return new Map(
    Object.entries(functions).map(([name, helper]) => {
      const definition = definitions.get(helper);
      if (!definition) {
        refuseArgument(`functions.${name} (${shortened(helper)}) must be made by func(...).`, `functions.${name}`, helper);
      }
      return [name, lower(name, definition)] as const;
    }),
  );
}

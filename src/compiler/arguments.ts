// Checks of what `kernel`, `func` and `cudaKernel` are given, apart from the text itself.
import { badArgument } from '../core/base/arguments.js';
import { isDType } from '../core/elements/dtype.js';
import type { Params } from '../core/kernels/kernel.js';

export const IDENTIFIER: RegExp = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const ACCESS: readonly unknown[] = ['in', 'out', 'inout'];

export function refuseArgument(message: string, argument: string, value: unknown, limit?: unknown): never {
  throw badArgument(argument, value, message, limit);
}

export function requireOneOf(argument: string, value: unknown, allowed: readonly string[]): void {
  if (!allowed.includes(value as string))
    refuseArgument(`${argument} (${String(value)}) must be ${allowed.map((one) => `'${one}'`).join(' or ')}.`, argument, value);
}

export function checkName(name: unknown): asserts name is string {
  if (typeof name !== 'string' || name === '')
    refuseArgument(`The name (${String(name)}) must be a string that is not empty.`, 'name', name);
}

/** Parameters: names that keep their order as keys, and types made by the library. */
export function checkParams(params: unknown): asserts params is Params {
  if (typeof params !== 'object' || params === null)
    refuseArgument(`params (${String(params)}) must be an object of types.`, 'params', params);
  for (const [key, value] of Object.entries(params)) {
    // JavaScript moves keys that are numbers to the front, which would change the order of the arguments.
    if (!IDENTIFIER.test(key)) refuseArgument(`The parameter name '${key}' must be an identifier.`, `params.${key}`, key);
    const param = value as
      | { readonly kind?: unknown; readonly dtype?: unknown; readonly access?: unknown; readonly rank?: unknown }
      | null
      | undefined;
    const isScalar = param?.kind === 'scalar' && isDType(param.dtype);
    const isArray =
      param?.kind === 'array' && isDType(param.dtype) && ACCESS.includes(param.access) && [1, 2, 3, 4].includes(param.rank as number);
    if (!isScalar && !isArray) {
      refuseArgument(
        `The parameter '${key}' must be a type such as f32, or input(f32), output(f32) or inout(f32).`,
        `params.${key}`,
        value,
      );
    }
  }
}

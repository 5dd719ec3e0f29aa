// Checks the arguments of `kernel`, `func` and `cudaKernel`, apart from the source itself.
import { badArgument } from '../../core/base/arguments.js';
import { DTYPES, isDType } from '../../core/elements/dtype.js';
import type { Param, Params } from '../../core/kernels/kernel.js';

export const IDENTIFIER: RegExp = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
/** The name becomes a function name, and appears in every error and in profilers. */
const MAX_NAME_CHARS = 1024;
/** Also line separators outside ASCII, because a message shows the name on one line. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const CONTROLS = new RegExp(CONTROL, 'gu');
const ACCESS: readonly unknown[] = ['in', 'out', 'inout'];

export function refuseArgument(message: string, argument: string, value: unknown, limit?: unknown): never {
  throw badArgument(argument, value, message, limit);
}

export function requireOneOf(argument: string, value: unknown, allowed: readonly string[]): void {
  if (!allowed.includes(value as string))
    refuseArgument(`${argument} (${String(value)}) must be ${allowed.map((one) => `'${one}'`).join(' or ')}.`, argument, value);
}

export function checkName(name: unknown): asserts name is string {
  if (typeof name !== 'string' || name === '') refuseArgument(`The name (${shortened(name)}) must be a non-empty string.`, 'name', name);
  if (name.length > MAX_NAME_CHARS) {
    const message = `The name (${shortened(name)}) has ${name.length} characters (at most ${MAX_NAME_CHARS}).`;
    refuseArgument(message, 'name', name, MAX_NAME_CHARS);
  }
  if (CONTROL.test(name)) {
    const shown = shortened(name).replace(CONTROLS, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
    refuseArgument(`The name (${shown}) must have no control characters.`, 'name', name);
  }
}

/** Throws unless `opts` is an object. */
export function checkOptions(opts: unknown): void {
  if (typeof opts !== 'object' || opts === null) refuseArgument(`The options (${shortened(opts)}) must be an object.`, 'opts', opts);
}

/** A value as messages show it. */
export function shortened(value: unknown): string {
  const text = String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** Copies the parameters. The names keep their order as keys, and the types are the library's. */
export function checkedParams(params: unknown): Params {
  if (typeof params !== 'object' || params === null)
    refuseArgument(`params (${String(params)}) must be an object of types.`, 'params', params);
  // Each property is read once, so a getter cannot return a different value after the check.
  const own: [string, Param][] = [];
  for (const [key, value] of Object.entries(params)) {
    // JavaScript orders integer-like keys first, which would reorder the arguments.
    if (!IDENTIFIER.test(key)) refuseArgument(`The parameter name '${key}' must be an identifier.`, `params.${key}`, key);
    const { kind, dtype, access, rank } = (value ?? {}) as Readonly<Record<string, unknown>>;
    const isScalar = kind === 'scalar' && isDType(dtype);
    const isArray = kind === 'array' && isDType(dtype) && ACCESS.includes(access) && [1, 2, 3, 4].includes(rank as number);
    if (!isScalar && !isArray) {
      refuseArgument(
        `The parameter '${key}' must be a type such as f32, or input(f32), output(f32) or inout(f32).`,
        `params.${key}`,
        value,
      );
    }
    // The copy is posted to the device's worker when the kernel is built, so it holds nothing else that a caller's object may contain.
    own.push([key, Object.freeze(isScalar ? { kind, dtype, byteSize: DTYPES[dtype].byteSize } : { kind, dtype, access, rank }) as Param]);
  }
  return Object.freeze(Object.fromEntries(own)) as Params;
}

// Checks the arguments of `kernel`, `func` and `cudaKernel`, apart from the source itself.
import { badArgument } from '../../core/base/arguments.js';
import type { CudaParams, Params } from '../../core/kernels/kernel.js';
import { passTheType } from '../../core/elements/dtype-names.js';
import { plainParam } from '../../core/kernels/params.js';
import { bytesOfAll, fieldOf } from '../../core/kernels/value-params.js';
import { MAX_PARAMETER_BYTES } from '../../protocol/protocol.gen.js';

export const IDENTIFIER: RegExp = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
/** The name becomes a function name, and appears in every error and in profilers. */
const MAX_NAME_CHARS = 1024;
/** Also line separators outside ASCII, because a message shows the name on one line. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const CONTROLS = new RegExp(CONTROL, 'gu');

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

/** Copies the parameters of a TypeScript kernel. The names keep their order as keys, and the types are the library's. */
export function checkedParams(params: unknown): Params {
  return copied(params, (key, value) => {
    // The copy is posted to the device's worker when the kernel is built, so it holds nothing else that a caller's object may contain.
    const own = plainParam(value);
    if (own !== undefined && own.kind !== 'optional') return own;
    const { kind } = (value ?? {}) as { readonly kind?: unknown };
    const isOfCuda = own !== undefined || ['struct', 'vector', 'dim3', 'bytes', 'texture', 'surface'].includes(kind as string);
    const other = isOfCuda
      ? ' Structs, vectors, bytes, textures, surfaces and arrays that may be null are for kernels in CUDA C++ (cudaKernel).'
      : '';
    const message = `The parameter '${key}' must be a type such as f32, or input(f32), output(f32) or inout(f32)${passTheType(value)}.${other}`;
    return refuseArgument(message, `params.${key}`, value);
  });
}

/** Copies the parameters of a CUDA C++ kernel in the same way. */
export function checkedCudaParams(params: unknown): CudaParams {
  const own: CudaParams = copied(params, (key, value) => {
    const param = fieldOf(value, `The parameter '${key}'`, `params.${key}`);
    if (param.kind !== 'fixed') return param;
    return refuseArgument(`The parameter '${key}' is an array by value, which only a struct may have.`, `params.${key}`, value);
  });
  const size = bytesOfAll(own);
  if (size > MAX_PARAMETER_BYTES) {
    const message = `The parameters (${size} bytes) exceed the limit of a kernel (${MAX_PARAMETER_BYTES} bytes).`;
    refuseArgument(message, 'params', size, MAX_PARAMETER_BYTES);
  }
  return own;
}

function copied<P>(params: unknown, copyOf: (key: string, value: unknown) => P): Readonly<Record<string, P>> {
  if (typeof params !== 'object' || params === null)
    refuseArgument(`params (${String(params)}) must be an object of types.`, 'params', params);
  const own: [string, P][] = [];
  for (const [key, value] of Object.entries(params)) {
    // JavaScript orders integer-like keys first, which would reorder the arguments.
    if (!IDENTIFIER.test(key)) refuseArgument(`The parameter name '${key}' must be an identifier.`, `params.${key}`, key);
    own.push([key, copyOf(key, value)]);
  }
  return Object.freeze(Object.fromEntries(own));
}

/** The element types of an operation's parameters, for messages. */
export function elementTypes(params: Params | CudaParams): string {
  return Object.values(params)
    .map((param) => ('dtype' in param ? param.dtype : ''))
    .join(', ');
}

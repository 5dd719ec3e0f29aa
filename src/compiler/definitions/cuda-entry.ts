// Finds a kernel of CUDA C++ source by name, and compares its parameter list with the typed one.
import type { ParameterChecks } from '../../core/channel/build.js';
import type { Param, Params } from '../../core/kernels/kernel.js';
import { findEntry, type TextEntry, type TextParameter } from '../cuda/signature.js';
import { globalFunctions } from '../cuda/source-scan.js';
import { type CallSite, KernelTextError, placeOf, toCompileError } from '../diagnostics/diagnostics.js';
import { checkName, IDENTIFIER, refuseArgument, shortened } from './arguments.js';

/** Most kernel names that the error for an unknown name lists. */
const MAX_SHOWN_NAMES = 10;

/** Checks the name of a function in the source. */
export function checkEntryName(name: unknown): asserts name is string {
  checkName(name);
  if (!IDENTIFIER.test(name) || name.includes('$'))
    refuseArgument(`The name (${name}) must be a C identifier: it is the name of the function in the source.`, 'name', name);
}

/**
 * `text` is the source without comments. Throws CompileError when the source has no such kernel, and ArgumentError when the lists differ.
 * Returns the checks that only a compiler can make.
 */
export function checkEntry(source: string, text: string, name: string, params: Params, site: CallSite): ParameterChecks | undefined {
  const { parameters, at } = requireEntry(text, source, name, site);
  if (parameters) compare(name, params, parameters);
  const entries = Object.entries(params);
  const list = entries.flatMap(([key, param], number) => {
    const parameter = parameters?.[number];
    if (parameter && !isUnknown(param, parameter)) return [];
    const shown = parameter && shortened(parameter.text);
    return [{ name: key, at: number, dtype: param.dtype, access: param.kind === 'array' ? param.access : undefined, text: shown }];
  });
  return list.length === 0 ? undefined : { count: entries.length, line: placeOf(text, at).line, list };
}

/** Whether tokens do not tell if the parameter has the declared type. A pointer to a struct accepts an array of any type. */
function isUnknown(param: Param, { dtype, other, isPointer, isOpenEnum }: TextParameter): boolean {
  if (other !== undefined) return false;
  return dtype === undefined || (isOpenEnum === true && (param.kind === 'scalar' || isPointer));
}

function requireEntry(text: string, source: string, name: string, site: CallSite): TextEntry {
  const functions = globalFunctions(text);
  const entry = findEntry(text, functions, name);
  if (!entry) {
    const names = [...new Set(functions.map((one) => one.name))];
    const more = names.length > MAX_SHOWN_NAMES ? ` and ${names.length - MAX_SHOWN_NAMES} more` : '';
    const others =
      names.length === 0
        ? 'The source has no __global__ function.'
        : `The source has ${names.slice(0, MAX_SHOWN_NAMES).join(', ')}${more}.`;
    throw toCompileError(
      new KernelTextError(
        'K005',
        { start: 0, end: 1 },
        `The source has no kernel named '${name}'.`,
        `${others} Write: extern "C" __global__ void ${name}(...).`,
      ),
      name,
      { text: source },
      site,
    );
  }
  if (!entry.isExternC && !text.includes('#define')) {
    const at = text.lastIndexOf('__global__', entry.at);
    throw toCompileError(
      new KernelTextError(
        'K005',
        { start: at, end: entry.at },
        `The kernel '${name}' is not extern "C", so the library cannot find it by its name.`,
        `Write: extern "C" __global__ void ${name}(...).`,
      ),
      name,
      { text: source },
      site,
    );
  }
  return entry;
}

function described(param: Param): string {
  return param.kind === 'scalar' ? param.dtype : `${param.dtype}*`;
}

/** Throws ArgumentError when `params` differs from the list in the source. */
function compare(name: string, params: Params, list: readonly TextParameter[]): void {
  const entries = Object.entries(params);
  if (entries.length !== list.length) {
    const shown = shortened(list.map((parameter) => parameter.text).join(', '));
    refuseArgument(
      `params has ${entries.length} entries, but '${name}' has ${list.length} parameters in the source: (${shown}).`,
      'params',
      entries.length,
      list.length,
    );
  }
  entries.forEach(([key, param], at) => {
    const problem = mismatch(param, list[at]!);
    if (problem === undefined) return;
    refuseArgument(
      `The parameter '${key}' (${described(param)}) is '${shortened(list[at]!.text)}' in the source, at position ${at + 1}: ${problem}.`,
      `params.${key}`,
      described(param),
      list[at]!.text,
    );
  });
}

function mismatch(param: Param, parameter: TextParameter): string | undefined {
  const { dtype, other, isPointer, isConst } = parameter;
  if (param.kind === 'scalar') {
    if (isPointer) return 'a scalar cannot be a pointer';
    if (other !== undefined)
      return 'a struct cannot be passed by value; pass its members as parameters, or an array of structs by a pointer';
  } else if (!isPointer && (dtype !== undefined || other !== undefined)) {
    return 'an array needs a pointer';
  }
  if (dtype !== undefined && !areSame(param.dtype, dtype) && !(parameter.isOpenEnum && /^[iu](?:32|64)$/.test(param.dtype)))
    return parameter.isNamed ? `the element type there is ${dtype}` : 'the element type differs';
  if (param.kind === 'array' && param.access !== 'in' && isConst && dtype !== undefined) return `an ${param.access} array cannot be const`;
  return undefined;
}

/** Types of the same size that sources use for each other: bool for a byte, half for its bits, plain char. */
export function areSame(declared: Param['dtype'], text: Param['dtype']): boolean {
  if (declared === text) return true;
  return (declared === 'bool' && text === 'u8') || (declared === 'f16' && text === 'u16');
}

// cudaKernel(): CUDA C++ text with a typed parameter list. The list is compared with the text here, where a mistake has
// the user's stack; the text itself is checked by the device's compiler when it is built.
import type { BuildSpec } from '../../core/channel/build.js';
import { type Kernel, MADE, type Param, type Params } from '../../core/kernels/kernel.js';
import { checkName, checkedParams, checkOptions, IDENTIFIER, refuseArgument, shortened } from './arguments.js';
import { findEntry, type TextEntry, type TextParameter } from '../cuda/signature.js';
import { namesGrid, syncsGrid } from '../cuda/grid-barriers.js';
import { globalFunctions, withoutComments } from '../cuda/text.js';
import { type CallSite, callSite, KernelTextError, placeOf, toCompileError } from '../places/diagnostics.js';

/** How the text is compiled. */
export interface CudaOptions {
  /** Extra options for the device's compiler, as NVRTC spells them; `options` of `cupy.RawKernel`. */
  readonly options?: readonly string[];
}

/**
 * A kernel from CUDA C++ text: `cupy.RawKernel`, `nvrtcCompileProgram`. The text has it as `extern "C" __global__`; `params` are in the
 * order of its parameter list, arrays as pointers without lengths. Throws CompileError where the text has no such kernel, ArgumentError
 * where the lists differ; the rest of the text is checked when it is built for a device.
 */
export function cudaKernel<const P extends Params>(name: string, params: P, source: string, opts: CudaOptions = {}): Kernel<P> {
  const site = callSite(cudaKernel);
  checkName(name);
  if (!IDENTIFIER.test(name) || name.includes('$'))
    refuseArgument(`The name (${name}) must be a C identifier: the function in the text has it.`, 'name', name);
  const own = checkedParams(params) as P;
  if (typeof source !== 'string') refuseArgument(`The source (${typeof source}) must be a string.`, 'source', source);
  checkOptions(opts);
  const options = checkedOptions(opts.options ?? []);
  const text = withoutComments(source);
  const entry = requireEntry(text, source, name, site);
  if (entry.parameters) compare(name, own, entry.parameters);
  const made: Kernel<P> = {
    name,
    params: own,
    source,
    [MADE]: true,
    build: buildSpec(name, own, source, text, options, site),
    abi: 'plain',
    indexRank: 0,
  };
  return Object.freeze(made);
}

/** Of other kernels, where the one that was asked for is not there. */
const MAX_SHOWN_NAMES = 10;

function checkedOptions(options: readonly string[]): readonly string[] {
  if (!Array.isArray(options) || !options.every((option) => typeof option === 'string'))
    refuseArgument('options must be an array of strings.', 'options', options);
  return Object.freeze([...options]);
}

function requireEntry(text: string, source: string, name: string, site: CallSite): TextEntry {
  const functions = globalFunctions(text);
  const entry = findEntry(text, functions, name);
  if (!entry) {
    const names = [...new Set(functions.map((one) => one.name))];
    const more = names.length > MAX_SHOWN_NAMES ? ` and ${names.length - MAX_SHOWN_NAMES} more` : '';
    const others =
      names.length === 0 ? 'The text has no __global__ function.' : `The text has ${names.slice(0, MAX_SHOWN_NAMES).join(', ')}${more}.`;
    throw toCompileError(
      new KernelTextError(
        'K005',
        { start: 0, end: 1 },
        `The text has no kernel named '${name}'.`,
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
        `The kernel '${name}' is not extern "C", so it cannot be found by its name.`,
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

/** Throws ArgumentError where the list in `params` is not the list in the text. */
function compare(name: string, params: Params, list: readonly TextParameter[]): void {
  const entries = Object.entries(params);
  if (entries.length !== list.length) {
    const shown = shortened(list.map((parameter) => parameter.text).join(', '));
    refuseArgument(
      `params has ${entries.length} entries, and '${name}' takes ${list.length} in the text: (${shown}).`,
      'params',
      entries.length,
      list.length,
    );
  }
  entries.forEach(([key, param], at) => {
    const problem = mismatch(param, list[at]!);
    if (problem === undefined) return;
    refuseArgument(
      `The parameter '${key}' (${described(param)}) is '${shortened(list[at]!.text)}' in the text, at position ${at + 1}: ${problem}.`,
      `params.${key}`,
      described(param),
      list[at]!.text,
    );
  });
}

function mismatch(param: Param, parameter: TextParameter): string | undefined {
  if (parameter.dtype === undefined) return undefined;
  const isArray = param.kind === 'array';
  if (isArray !== parameter.isPointer) return isArray ? 'an array needs a pointer' : 'a scalar cannot be a pointer';
  if (!areSame(param.dtype, parameter.dtype)) return 'the element type differs';
  if (isArray && param.access !== 'in' && parameter.isConst) return `an ${param.access} array cannot be const`;
  return undefined;
}

/** Types of one layout that texts use for each other: bool as a byte, half as its bits, plain char. */
function areSame(declared: Param['dtype'], text: Param['dtype']): boolean {
  if (declared === text) return true;
  return (declared === 'bool' && text === 'u8') || (declared === 'f16' && text === 'u16');
}

function buildSpec(name: string, params: Params, source: string, text: string, options: readonly string[], site: CallSite): BuildSpec {
  const lines = placeOf(source, source.length).line;
  // Blocks that wait for each other and do not run at once are reported as an assertion is.
  const isAsserting = /\bassert\s*\(/.test(text) || namesGrid(text);
  return {
    source,
    entry: name,
    name,
    options,
    fmad: true,
    isBounded: isBounded(text),
    isChecked: false,
    ...(isAsserting && { isAsserting, assertions: assertionsOf(source, text) }),
    ...(syncsGrid(text, name) && { syncsGrid: true }),
    signature: Object.values(params).map(described),
    // The text is taken to begin on the line of the call, where template literals usually do.
    mapping: {
      file: site.file ?? name,
      lines: Array.from({ length: lines }, (_unused, at) => (site.line === 0 ? at + 1 : site.line + at)),
    },
  };
}

/** What line 0 asserts: the barrier of the grid, where it stands in a text. */
const TOGETHER = 'this_grid().is_valid(), which a launch with { cooperative: true } makes true,';

/** For each line of the text, from 1, what fails there: the condition, if it stands on the line, and the line. */
function assertionsOf(source: string, text: string): string[] {
  const given = source.split('\n');
  return ['', ...text.split('\n')].map((line, number) => {
    if (number === 0) return TOGETHER;
    const call = /\bassert\s*\(/.exec(line);
    if (call === null) return `on line ${number} of the text`;
    const from = call.index + call[0].length;
    let [to, depth] = [from, 1];
    for (; to < line.length; to++) {
      if (line[to] === '(') depth++;
      else if (line[to] === ')' && --depth === 0) break;
    }
    return `${shortened(given[number - 1]!.slice(from, to).trim())} (line ${number} of the text)`;
  });
}

/** Only what tokens prove: no loop, no jump, no macro that may hide one, nothing that may recurse or wait. */
function isBounded(text: string): boolean {
  return (
    !/\b(?:for|while|do|goto|asm|__device__|__syncthreads\w*|\w+_sync|template|operator)\b|^[ \t]*#/m.test(text) &&
    (text.match(/__global__/g) ?? []).length === 1
  );
}

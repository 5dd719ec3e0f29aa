// A text of CUDA C++, rewritten for the CPU and behind the shim: what the C++ compiler gets.
import type { BuildSpec } from '../../core/channel/build.js';
import { globalFunctions, withoutComments } from '../../compiler/cuda/source-scan.js';
import { variablesOf } from '../../compiler/cuda/variables.js';
import { TEXT_NAME } from '../base/diagnostics.js';
import type { EditedText } from '../cuda-parser/source-edits.js';
import type { Tokens } from '../cuda-parser/tokenizer.js';
import { formsOf, type Forms } from '../cuda-to-cpu/kernel-forms.js';
import { rewriteLaunches } from '../cuda-to-cpu/kernel-launches.js';
import { kernelPaths, rewriteForCpu } from '../cuda-to-cpu/rewrite.js';
import { rowEdits } from '../cuda-to-cpu/grid-row-loops.js';
import { parameterChecks } from './parameter-checks.js';
import { hasGroups, hasWaits } from '../cuda-to-cpu/waiting-functions.js';

/** A text ready for the C++ compiler. */
export interface ComposedText extends EditedText {
  /** Some of its threads wait as coroutines. */
  readonly hasCoroutines: boolean;
  /** One that is to be shown was cut at its barriers. */
  readonly isCut: boolean;
  /** Kernels that were cut at their barriers, or made rows of. */
  readonly looped: readonly string[];
}

/** A text as given or as the preprocessor made it, and what else comes before it. */
export interface ReadText {
  readonly source: string;
  readonly tokens: Tokens['tokens'];
  readonly directives: string;
}

/** What an image is to show. */
export interface Exports {
  readonly kernels: readonly string[];
  /** Of a module, as a table: what they are asked for by, and what C++ calls them. */
  readonly variables?: ReadonlyMap<string, string>;
}

/** What a module shows: its kernels, and the variables that it defines. `source` is what the preprocessor left, if it was asked. */
export function exportsOf(source: string): Exports {
  const text = withoutComments(source);
  const kernels = globalFunctions(text).filter(({ isExternC }) => isExternC);
  const variables = variablesOf(text, source).filter(({ isExtern, space }) => !isExtern && space !== 'managed');
  return { kernels: [...new Set(kernels.map(({ name }) => name))], variables: new Map(variables.map(({ name, path }) => [name, path])) };
}

/** The text behind the shim. */
export function compose(spec: BuildSpec, read: ReadText, exports: Exports, mayLoop: boolean, isPlain = false): ComposedText {
  const { directives } = read;
  const { text: source, tokens, restore: restoreLaunches } = rewriteLaunches(read.source, read.tokens);
  const forms: Forms = hasWaits(tokens)
    ? formsOf(spec, source, tokens, mayLoop)
    : { edits: [], cut: [], waiting: new Set(), hasCoroutines: false };
  // What launches has to know which thread it is.
  const able = mayLoop && !spec.isLaunching ? exports.kernels.filter((name) => !forms.waiting.has(name)) : [];
  const rows = rowEdits(source, tokens, able);
  const others = forms.edits.filter((one) => !rows.edits.some(({ start, end }) => one.start >= start && one.end <= end));
  const { text, restore } = rewriteForCpu(source, tokens, [...others, ...rows.edits]);
  const headers = ['cuda_on_cpu.h'];
  if (forms.cut.length > 0) headers.push('whole_blocks.h');
  if (rows.names.length > 0) headers.push('grid_rows.h');
  if (forms.hasCoroutines) headers.push('waiting.h');
  if (hasGroups(tokens)) headers.push('groups.h');
  if (exports.variables) headers.push('module_variables.h');
  if (spec.isLaunching) headers.push('device_runtime.h');
  const included = headers.map((name) => `#include "${name}"\n`).join('');
  const paths = kernelPaths(tokens);
  const kernels = exports.kernels.map((name) => `MR_KERNEL_OF(${name}, ${paths.get(name) ?? name})\n`).join('');
  const table = [...(exports.variables ?? [])].map(([name, path]) => `MR_VARIABLE(${name}, ${path}) `);
  const variables = exports.variables && `MR_VARIABLES(${table.join('')})\n`;
  const exported = kernels + (variables ?? '') + parameterChecks(spec, paths.get(spec.entry) ?? spec.entry);
  const head = `${spec.isAsserting ? '#define MR_ASSERTING 1\n' : ''}${isPlain ? '#define MR_PLAIN_INDICES 1\n' : ''}`;
  // Whether assertions count may be among the options.
  const asserts = directives.includes('NDEBUG') ? '#include <assert.h>\n' : '';
  const whole = `${head}${included}${directives}${asserts}#line 1 "${TEXT_NAME}"\n${text}\n#line 1 "exports"\n${exported}`;
  return {
    text: whole,
    restore: (log) => restoreLaunches(restore(log)),
    hasCoroutines: forms.hasCoroutines || hasGroups(tokens),
    isCut: forms.cut.some((name) => exports.kernels.includes(name)),
    looped: [...forms.cut, ...rows.names],
  };
}

/** A text that is not rewritten, for the messages of a compiler that will refuse it. */
export function composeAsGiven(spec: BuildSpec, { source, tokens, directives }: ReadText): string {
  const groups = hasGroups(tokens) ? '#include "groups.h"\n' : '';
  const runtime = spec.isLaunching ? '#include "device_runtime.h"\n' : '';
  return `#include "cuda_on_cpu.h"\n#include "waiting.h"\n${groups}${runtime}${directives}#line 1 "${TEXT_NAME}"\n${source}\n`;
}

/** A text that is ours. */
export function composeSimd(source: string, kernels: readonly string[]): ComposedText {
  const exported = kernels.map((name) => `MR_KERNEL(${name})\n`).join('');
  return { text: `#include "cuda_on_cpu.h"\n${source}${exported}`, restore: (log) => log, hasCoroutines: false, isCut: false, looped: [] };
}

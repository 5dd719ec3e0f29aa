// Composes the input of the C++ compiler: the shim's headers, and CUDA C++ source rewritten for the CPU.
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { globalFunctions, namedOnce } from '../../cuda-cpp/read/global-functions.js';
import { tokenize, type Tokens, withoutComments } from '../../cuda-cpp/read/tokens.js';
import { variablesOf } from '../../cuda-cpp/read/variables.js';
import { SOURCE_NAME } from '../base/diagnostics.js';
import { cpuSymbol, plainName } from '../base/symbols.js';
import { preludeOf, type SourcePrelude } from './source-prelude.js';
import { applyEdits, type EditedSource } from '../../cuda-cpp/read/source-edits.js';
import { type Forms, formsOf, NO_FORMS } from '../../cuda-cpp/lower/kernel-forms.js';
import { rewriteEarly } from '../../cuda-cpp/lower/early-edits.js';
import { rewriteLaunches } from '../../cuda-cpp/lower/kernel-launches.js';
import { hasGroups, libraryHeaders, needsGates, SPACES_HEADER } from '../../cuda-cpp/lower/library-headers.js';
import { boundedPaths, kernelPaths, rewriteForCpu } from '../../cuda-cpp/lower/rewrite.js';
import { rowEdits } from '../../cuda-cpp/lower/grid-row-loops.js';
import { castEdits, mayCast } from '../../cuda-cpp/lower/saturating-casts.js';
import { mayShift, shiftEdits } from '../../cuda-cpp/lower/shift-amounts.js';
import { parameterChecks } from './parameter-checks.js';
import { hasWaits } from '../../cuda-cpp/lower/waiting-functions.js';

/** Source ready for the C++ compiler. */
export interface ComposedSource extends EditedSource {
  /** Whether threads have stacks. */
  readonly hasStacks: boolean;
  /** Whether loop fission was applied to an exported kernel. */
  readonly isSplit: boolean;
  /** Kernels that were split at their barriers, or became loops over grid rows. */
  readonly looped: readonly string[];
}

/** Source as given or after the preprocessor, and the directives before it. */
export interface ScannedSource {
  readonly source: string;
  readonly tokens: Tokens['tokens'];
  readonly directives: string;
  /** The source after macro expansion, if this one is as given: its macros may name libraries and barriers. */
  readonly seen?: ScannedSource;
}

/** What a compiled image exports. */
export interface Exports {
  /** The names of the kernels in the source. */
  readonly kernels: readonly string[];
  /** Their symbols, by the C++ names that they have at the end of the source. Other kernels have their names as symbols. */
  readonly symbols?: ReadonlyMap<string, string>;
  /** For a module: a table from the names that callers pass to the C++ names. */
  readonly variables?: ReadonlyMap<string, string>;
}

/** What a source is compiled to. */
export interface Output {
  readonly spec: BuildSpec;
  readonly exports: Exports;
  /** The kernels of the source whose parameters the compiler checks. */
  readonly checked: readonly BuildSpec[];
  /** C++ names of the `__constant__` variables, for source that asks which memory an address is in. */
  readonly constants?: readonly string[];
  /** The compiler writes no image. */
  readonly isCheckOnly?: boolean;
}

/**
 * A module's exports: its kernels, these instances of its templates, and the variables that it defines. `source` is preprocessed if that was
 * possible.
 */
export function exportsOf(source: string, instances: readonly string[] = []): Exports {
  const text = withoutComments(source);
  const kernels = namedOnce(text, globalFunctions(text));
  const variables = variablesOf(text, source).filter(({ isExtern }) => !isExtern);
  return {
    kernels: [...new Set([...kernels.map(({ name }) => name), ...instances.map(plainName)])],
    symbols: new Map([
      ...kernels.map(({ name, path, isExternC }) => [path, isExternC ? name : cpuSymbol(path)] as const),
      ...instances.map((path) => [path, cpuSymbol(path)] as const),
    ]),
    variables: new Map(variables.map(({ name, path }) => [name, path])),
  };
}

const SHIM = '#include "cuda_on_cpu.h"\n#include "thread_variables.h"\n';

/** C++ names of `__constant__` variables. `source` is preprocessed if that was possible. */
export function constantNames(source: string): readonly string[] {
  const found = variablesOf(withoutComments(source), source).filter(({ space, isExtern }) => space === 'constant' && !isExtern);
  return [...new Set(found.map(({ path }) => path))];
}

/** The exports of a build of one kernel. */
export function exportOf({ entry, path }: BuildSpec): Exports {
  return path === undefined ? { kernels: [entry] } : { kernels: [plainName(path)], symbols: new Map([[path, cpuSymbol(path)]]) };
}

/** Exports the kernels, and the bounds of those whose symbols are not their names. */
function exportedKernels({ kernels, symbols }: Exports, tokens: ScannedSource['tokens'], forms: Forms): string {
  const exported = (symbol: string, path: string): string => `MR_${forms.isWaiting(path) ? 'WAITING_' : ''}KERNEL_OF(${symbol}, ${path})\n`;
  const paths = kernelPaths(tokens);
  if (!symbols) return kernels.map((name) => exported(name, paths.get(name) ?? name)).join('');
  const bounded = boundedPaths(tokens);
  return [...symbols]
    .map(([path, symbol]) => {
      const name = plainName(path);
      const bounds = bounded.has(path) && symbol !== name && !path.includes('<');
      const space = path.slice(0, path.length - name.length);
      return `${exported(symbol, path)}${bounds ? `MR_MAX_THREADS(${symbol}, ${space}mr_max_threads_${name})\n` : ''}`;
    })
    .join('');
}

/** Whether a product may be fused with an addition. */
export function isFused(spec: BuildSpec): boolean {
  return spec.fmad && !spec.options.some((option) => /^--?fmad=false$/.test(option));
}

/**
 * Composes the rewritten source and the headers that it needs, and the checks of the kernels `checked`. `isPlain`: indices and products of
 * 16-bit floats have CUDA's own types (the shim's thread_index.h and half_products.h). Without `isCasting`, casts stay as they are.
 */
export function compose(wanted: Output, read: ScannedSource, mayLoop: boolean, isPlain = false, isCasting = true): ComposedSource {
  const { spec, exports, checked } = wanted;
  const { directives } = read;
  const early = rewriteEarly(read.source, read.tokens);
  const { text: source, tokens, restore: restoreLaunches } = rewriteLaunches(early.text, early.tokens);
  // With the early rewrites, whose statements wait.
  const seen = read.seen ? rewriteEarly(read.seen.source, read.seen.tokens).tokens : tokens;
  const forms = hasWaits(seen) ? formsOf(source, seen, mayLoop) : NO_FORMS;
  // Code that launches kernels needs its thread's index, which loops over grid rows do not keep.
  const able = mayLoop && !spec.isLaunching ? exports.kernels.filter((name) => !forms.isWaiting(name) && !forms.split.includes(name)) : [];
  const rows = rowEdits(source, tokens, able);
  const others = forms.edits.filter((one) => !rows.edits.some(({ start, end }) => one.start >= start && one.end <= end));
  const rewritten = rewriteForCpu(source, tokens, [...others, ...rows.edits]);
  const isUsers = spec.identity === undefined;
  const defined =
    isUsers && (mayShift(rewritten.text) || mayCast(rewritten.text)) ? withDefinedResults(rewritten.text, isCasting) : undefined;
  const head = preludeOfSpec(spec);
  const headers: string[] = [];
  if (forms.split.length > 0) headers.push('loop_fission.h');
  if (rows.names.length > 0) headers.push('grid_rows.h');
  if (forms.hasWaiting) headers.push('waiting.h');
  if (hasGroups(seen)) headers.push('groups.h');
  headers.push(...libraryHeaders(seen), ...early.headers);
  if (exports.variables) headers.push('module_variables.h');
  if (spec.isLaunching) headers.push('device_runtime.h');
  if (defined?.text.includes('::mr_shift(')) headers.push('shifts.h');
  if (isUsers) headers.push('casts.h');
  const included = `${SHIM}${head.library}${headers.map((name) => `#include "${name}"\n`).join('')}`;
  const table = [...(exports.variables ?? [])].map(([name, path]) => `MR_VARIABLE(${name}, ${path}) `);
  const variables = exports.variables && `MR_VARIABLES(${table.join('')})\n`;
  const checks = parameterChecks(checked, kernelPaths(tokens));
  const constants = headers.includes(SPACES_HEADER) ? constantsOf(wanted.constants ?? []) : '';
  const exported = exportedKernels(exports, tokens, forms) + (variables ?? '') + constants + checks;
  const macros = [
    ...(spec.isAsserting ? ['MR_ASSERTING'] : []),
    ...(isPlain ? ['MR_PLAIN_INDICES'] : []),
    ...(isFused(spec) ? [] : ['MR_UNFUSED']),
    ...(forms.hasWaiting ? ['MR_WAITS'] : []),
    ...(needsGates(seen) ? ['MR_GATES'] : []),
  ];
  const macroLines = `${head.directives}${macros.map((name) => `#define ${name} 1\n`).join('')}`;
  // The options may define NDEBUG, which assert.h must see.
  const asserts = directives.includes('NDEBUG') ? '#include <assert.h>\n' : '';
  const whole = `${macroLines}${included}${directives}${asserts}#line 1 "${SOURCE_NAME}"\n${(defined ?? rewritten).text}\n#line 1 "exports"\n${exported}`;
  return {
    text: whole,
    restore: (log) => early.restore(restoreLaunches(rewritten.restore(defined?.restore(log) ?? log))),
    hasStacks: forms.hasWaiting,
    isSplit: forms.split.some((name) => exports.kernels.includes(name)),
    looped: [...forms.split, ...rows.names],
  };
}

/** The definition that the shim's address_spaces.h declares. */
function constantsOf(paths: readonly string[]): string {
  const tests = paths.map((path) => `mr_contains(${path}, mr_address)`);
  return `static bool mr_is_constant(const void* mr_address) { return ${tests.join(' || ') || 'false'}; }\n`;
}

/** With shifts by computed amounts (shifts.h) and casts to integers (casts.h). Last, so that others see the source's own expressions. */
function withDefinedResults(text: string, isCasting: boolean): EditedSource {
  const { tokens } = tokenize(text);
  const edits = [...(mayShift(text) ? shiftEdits(tokens) : []), ...(isCasting ? castEdits(tokens) : [])];
  return applyEdits(text, tokens, edits);
}

/** What a user's source needs in front of it. */
function preludeOfSpec({ source, options, identity }: BuildSpec): Pick<SourcePrelude, 'directives' | 'library'> {
  return identity === undefined ? preludeOf(source, options) : { directives: '', library: '' };
}

/** Composes source that this package emitted. */
export function composeSimd(source: string, kernels: readonly string[]): ComposedSource {
  const exported = kernels.map((name) => `MR_KERNEL(${name})\n`).join('');
  return {
    text: `${SHIM}${source}${exported}`,
    restore: (log) => log,
    hasStacks: false,
    isSplit: false,
    looped: [],
  };
}

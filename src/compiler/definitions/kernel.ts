// kernel(): a typed TypeScript function to something that can be built. All checking happens here, at the definition,
// where a mistake has the user's stack; the text for the device's compiler is written at once too, since it is short.
import type { BuildSpec } from '../../core/channel/build.js';
import { MADE, type Params } from '../../core/kernels/kernel.js';
import { checkName, checkedParams, checkOptions, refuseArgument, requireOneOf, shortened } from './arguments.js';
import { type CallSite, callSite, type ErrorSource, KernelTextError, linesOf, toCompileError, userLine } from '../places/diagnostics.js';
import { type EmitOptions, emitKernel } from '../emission/cuda.js';
import { lowerFunctions } from './func.js';
import { canonical, digestOf } from '../ir/hash.js';
import { hasLoop, type KernelIr } from '../ir/ir.js';
import { emitLanes } from '../lanes/lanes.js';
import type { Constants, ConstantsEnv, Funcs, KernelBody, KernelOptions, TypedKernel } from '../language/language.js';
import { lowerKernel } from '../lowering/lower.js';
import { isTooDeep, type ParsedFunction, parseFunction, textOfFunction, tooDeep } from '../source/parse.js';

/** The hardware's limit. */
const MAX_THREADS_PER_BLOCK = 1024;

/** Everything about a kernel but its constants. */
interface Definition {
  readonly name: string;
  readonly params: Params;
  readonly parsed: ParsedFunction;
  readonly functions: Funcs;
  readonly isChecked: boolean;
  readonly fmad: boolean;
  readonly maxThreadsPerBlock: number | undefined;
  readonly site: CallSite;
}

/**
 * A kernel from a TypeScript function, which is read as text and never called: `@wp.kernel`, `cupyx.jit.rawkernel`. `params` by name, in
 * the order of the arguments. Throws ArgumentError for a bad name, parameter or option, CompileError where the body leaves the
 * language. It is built for a device at its first launch there.
 */
export function kernel<const P extends Params, C extends Constants = Record<never, never>, F extends Funcs = Record<never, never>>(
  name: string,
  params: P,
  body: KernelBody<P, C, F>,
  opts: KernelOptions<C, F> = {},
): TypedKernel<P, C> {
  const site = callSite(kernel);
  checkName(name);
  const own = checkedParams(params);
  checkOptions(opts);
  requireOneOf('bounds', opts.bounds ?? 'checked', ['checked', 'unchecked']);
  const { maxThreadsPerBlock } = opts;
  if (
    maxThreadsPerBlock !== undefined &&
    !(Number.isInteger(maxThreadsPerBlock) && maxThreadsPerBlock >= 1 && maxThreadsPerBlock <= MAX_THREADS_PER_BLOCK)
  ) {
    refuseArgument(
      `maxThreadsPerBlock (${String(maxThreadsPerBlock)}) must be an integer from 1 to ${MAX_THREADS_PER_BLOCK}.`,
      'maxThreadsPerBlock',
      maxThreadsPerBlock,
      MAX_THREADS_PER_BLOCK,
    );
  }
  const constants = checkedConstants(opts.constants ?? {});
  const definition: Definition = {
    name,
    params: own,
    parsed: reporting(name, { text: textOfFunction(body), body }, site, () => parseFunction(body)),
    functions: opts.functions ?? {},
    isChecked: opts.bounds !== 'unchecked',
    fmad: opts.fmad ?? true,
    maxThreadsPerBlock,
    site,
  };
  return make<P, C>(definition, constants);
}

function make<P extends Params, C extends Constants>(definition: Definition, constants: Constants): TypedKernel<P, C> {
  const { name, parsed, site, maxThreadsPerBlock } = definition;
  const { ir, build } = reporting(name, parsed, site, () => compile(definition, constants));
  let cpuBuild: BuildSpec | undefined;
  const made: TypedKernel<P, C> = {
    name,
    params: definition.params as P,
    source: build.source,
    [MADE]: true,
    build,
    cpuBuild: () => (cpuBuild ??= withLanes(ir, definition, build)),
    abi: 'shaped',
    indexRank: ir.indexRank,
    ...(maxThreadsPerBlock === undefined ? {} : { maxThreadsPerBlock }),
    specialize(changed: Partial<ConstantsEnv<C>>): TypedKernel<P, C> {
      checkOptions(changed);
      for (const key of Object.keys(changed)) {
        if (Object.hasOwn(constants, key)) continue;
        const known = Object.keys(constants).join(', ') || 'none';
        refuseArgument(`Kernel '${name}' has no constant '${key}' (it has ${known}).`, 'constants', key);
      }
      return make<P, C>(definition, checkedConstants({ ...constants, ...(changed as Constants) }));
    },
  };
  return Object.freeze(made);
}

/** `ir` in its canonical form. */
function compile(definition: Definition, constants: Constants): { readonly ir: KernelIr; readonly build: BuildSpec } {
  const { name, site, parsed, isChecked, maxThreadsPerBlock } = definition;
  const ir = lowerKernel(name, parsed, definition.params, constants, lowerFunctions(definition.functions));
  const options: EmitOptions = { isChecked, maxThreadsPerBlock };
  const emitted = emitKernel(ir, definition.params, options);
  const named = canonical(ir);
  const lineOf = linesOf(parsed.text);
  const build: BuildSpec = {
    source: emitted.source,
    identity: digestOf(emitKernel(named, definition.params, options).source),
    entry: emitted.entry,
    name,
    options: [],
    fmad: definition.fmad,
    isBounded: !hasLoop(ir.body) && !ir.funcs.some((func) => hasLoop(func.body)),
    isChecked: emitted.isReporting,
    ...(emitted.syncsGrid && { syncsGrid: true }),
    signature: [],
    arrays: ir.arrays.map((array) => array.name),
    assertions: emitted.assertions,
    mapping: {
      file: site.file ?? name,
      lines: emitted.offsets.map((at) => (at < 0 ? 0 : userLine(site, lineOf(at)))),
    },
  };
  return { ir: named, build };
}

/** The text of lanes is made of the canonical form, so that it names the same image whatever a tool did to the names. */
function withLanes(ir: KernelIr, { params, isChecked }: Definition, build: BuildSpec): BuildSpec {
  const { entry, assertions = [] } = build;
  try {
    const lanes = emitLanes(ir, params, { entry, isChecked, assertions });
    return lanes === undefined ? build : { ...build, lanes };
  } catch (error) {
    // The CUDA text was written all the same.
    if (isTooDeep(error)) return build;
    throw error;
  }
}

function checkedConstants(constants: Constants): Constants {
  for (const [key, value] of Object.entries(constants)) {
    if (typeof value === 'number' || typeof value === 'boolean') continue;
    refuseArgument(`The constant '${key}' (${shortened(value)}) must be a number or a boolean.`, 'constants', value);
  }
  return Object.freeze({ ...constants });
}

/** Runs a part of the compiler; its errors leave as CompileError with a frame of the user's text. */
function reporting<T>(name: string, source: ErrorSource, site: CallSite, run: () => T): T {
  try {
    return run();
  } catch (error) {
    const known = isTooDeep(error) ? tooDeep() : error;
    if (known instanceof KernelTextError) throw toCompileError(known, name, source, site);
    throw error;
  }
}

// kernel(): turns a typed TypeScript function into a buildable kernel. The definition does all checks, so that an error has the caller's
// stack; codegen/emit-sources.ts emits the sources when a build needs them.
import { refuseSurplus } from '../../core/base/arguments.js';
import { KERNEL_STAYS } from '../../core/base/uncloneable.js';
import type { UnwrittenBuild } from '../../core/channel/build-spec.js';
import { defined } from '../../core/kernels/definitions.js';
import { type Kernel, MADE, type Params } from '../../core/kernels/kernel.js';
import { checkName, checkedParams, checkOptions, elementTypes, refuseArgument, requireOneOf, shortened } from './arguments.js';
import { hasBarrier, hasBlockBarrier, hasGridBarrier } from '../analysis/barriers.js';
import { outputsOf } from '../analysis/outputs.js';
import { checkBarriers } from '../analysis/region-plan.js';
import { type CallSite, callSite, lineStarts } from '../diagnostics/diagnostics.js';
import { entryOf, reports } from '../emission/cuda.js';
import { lowerFunctions } from './func.js';
import { digestOf, irHash } from '../ir/hash.js';
import { type FuncIr, hasLoop } from '../ir/ir.js';
import { assertionsIn } from '../ir/walk.js';
import type { Constants, ConstantsEnv, Funcs, KernelBody, KernelOptions, TypedKernel } from '../language/language.js';
import { lowerKernel } from '../lowering/lower.js';
import { refuseDeep } from '../diagnostics/depth.js';
import { reporting } from '../diagnostics/reporting.js';
import { type ParsedFunction, parseFunction, parseText, textOfFunction } from '../source/parse.js';
import type { KernelForm } from '../codegen/codegen-input.js';
import { cudaTextOf } from '../codegen/emit-sources.js';

/** CUDA's limit. */
const MAX_THREADS_PER_BLOCK = 1024;

let wasCalled = false;
/** Whether this thread has compiled a kernel. */
export function isWarm(): boolean {
  return wasCalled;
}

/** A kernel without the values of its constants. */
interface Definition {
  readonly name: string;
  readonly params: Params;
  readonly parsed: ParsedFunction;
  /** The helpers as every kernel of the definition includes them. */
  readonly functions: ReadonlyMap<string, FuncIr>;
  readonly isChecked: boolean;
  readonly fmad: boolean;
  readonly maxThreadsPerBlock: number | undefined;
  readonly site: CallSite;
  /** Of the library's own kernels, which programs do not define. */
  readonly operation?: string;
}

/**
 * Makes a kernel from a TypeScript function, whose source is compiled and which is never called: `@wp.kernel`, `cupyx.jit.rawkernel`.
 * `params` are by name, in the order of the arguments. Throws ArgumentError for a bad name, parameter or option, CompileError if the body
 * uses what the kernel language does not have. The kernel is built for a device at its first launch there.
 * @example const twice = kernel('twice', { x: inout(f32) }, ({ x }, { i }) => { x[i] = 2 * x[i]!; });
 */
export function kernel<const P extends Params, C extends Constants = Record<never, never>, F extends Funcs = Record<never, never>>(
  name: string,
  params: P,
  body: KernelBody<P, C, F>,
  opts: KernelOptions<C, F> = {},
): TypedKernel<P, C> {
  if (arguments.length > 4) refuseSurplus('kernel', arguments, 4);
  wasCalled = true;
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
    functions: lowerFunctions(opts.functions ?? {}),
    isChecked: opts.bounds !== 'unchecked',
    fmad: opts.fmad ?? true,
    maxThreadsPerBlock,
    site,
  };
  return make<P, C>(definition, constants);
}

/** @internal A kernel whose body the library itself wrote, as text. */
export function kernelOfText(
  name: string,
  params: Params,
  text: string,
  functions: ReadonlyMap<string, FuncIr>,
  site: CallSite,
  isChecked = false,
  fmad = true,
): Kernel {
  wasCalled = true;
  const parsed = parseText(text, params);
  const operation = elementTypes(params);
  return make({ name, params, parsed, functions, isChecked, fmad, maxThreadsPerBlock: undefined, site, operation }, {});
}

function make<P extends Params, C extends Constants>(definition: Definition, constants: Constants): TypedKernel<P, C> {
  const { name, params, parsed, site, maxThreadsPerBlock } = definition;
  const report = <T>(run: () => T): T => reporting(name, parsed, site, run);
  const form = report(() => compile(definition, constants));
  let source: string | undefined;
  const made: TypedKernel<P, C> = {
    uncloneable: KERNEL_STAYS,
    name,
    params: params as P,
    get source() {
      return (source ??= report(() => cudaTextOf(form)));
    },
    [MADE]: true,
    build: report(() => buildOf(definition, form)),
    abi: 'shaped',
    indexRank: form.ir.indexRank,
    ...(form.ir.body.some(hasBlockBarrier) && { syncsBlock: true }),
    // The library's own kernels write their results whole.
    ...(definition.operation === undefined && { outputs: outputsOf(form.ir, params) }),
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
  return defined(made);
}

/** Reports every error that a kernel definition can have. */
function compile(definition: Definition, constants: Constants): KernelForm {
  const { name, params, parsed, functions, isChecked, maxThreadsPerBlock, site } = definition;
  const ir = lowerKernel(name, parsed, params, constants, functions);
  checkBarriers(ir);
  refuseDeep(ir);
  return { ir, params, isChecked, maxThreadsPerBlock, site, lineStarts: lineStarts(parsed.text) };
}

function buildOf({ name, params, isChecked, maxThreadsPerBlock, fmad, operation }: Definition, form: KernelForm): UnwrittenBuild {
  const { ir } = form;
  return {
    identity: digestOf(JSON.stringify([irHash(ir), Object.entries(params), isChecked, maxThreadsPerBlock])),
    entry: entryOf(ir),
    name,
    ...(operation !== undefined && { operation }),
    options: [],
    fmad,
    isBounded: !hasLoop(ir.body) && !ir.funcs.some((func) => hasLoop(func.body)),
    isChecked: reports(ir, isChecked),
    ...(hasGridBarrier(ir) && { syncsGrid: true }),
    isOfBlocks: ir.arrays.some(({ space }) => space !== 'local') || ir.body.some(hasBarrier),
    arrays: ir.arrays.map((array) => array.name),
    assertions: assertionsIn(ir).map(({ text }) => text),
    form,
  };
}

function checkedConstants(constants: Constants): Constants {
  for (const [key, value] of Object.entries(constants)) {
    if (typeof value === 'number' || typeof value === 'boolean') continue;
    refuseArgument(`The constant '${key}' (${shortened(value)}) must be a number or a boolean.`, 'constants', value);
  }
  return Object.freeze({ ...constants });
}

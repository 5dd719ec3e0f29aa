// The part of a source that a device can run: a kernel that uses an unsupported feature is refused, and the other kernels of the source are
// built without it.
import { type Library, onlyFor, withoutUnusedIncludes } from './host-code.js';
import { withoutUntakenBranches } from '../read/conditions.js';
import { macrosIn } from '../read/directives.js';
import { globalFunctions } from '../read/global-functions.js';
import { blanked, tokenize, withoutComments } from '../read/tokens.js';
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { CompileError } from '../../core/base/errors.js';
import { CUDA_MACROS } from '../../toolchain/base/cuda-macros.js';
import { plainName } from '../../toolchain/base/symbols.js';
import { macrosOf } from '../read/macro-options.js';
import { refuseOnCpu, refuseRemoved } from './unsupported-features.js';

/** Headers that the device lacks, and what shows that a source uses them. */
const ABSENT: readonly Library[] = [
  { headers: /^cub\//, use: /\bcub\b/ },
  { headers: /^(?:cute|cutlass|thrust)\//, use: /\b(?:cute|cutlass|thrust)\b/ },
  { headers: /^(?:cuda\/(?!std\/|(?:atomic|barrier|functional|pipeline)$)|nv\/)/, use: /\b(?:cuda|nv)\s*::/ },
  { headers: /^mma\.h$/, use: /\b(?:nvcuda|wmma)\b/ },
  { headers: /^cuda_fp[468]\.h$/, use: /\b__nv_(?:fp[468]|cvt_\w*fp[468])/ },
  { headers: /^cuda_awbarrier\w*\.h$/, use: /awbarrier/i },
];
const HAS_ABSENT = /^[ \t]*#[ \t]*include[ \t]*[<"](?:cub|cute|cutlass|thrust|cuda|nv|mma)/m;

/**
 * The build without what the CPU device cannot run. Throws a CompileError if the kernel itself, or every kernel of a module, is refused. All
 * builds of a module are the same, also those for one of its kernels.
 */
export function withSupportedKernels(given: BuildSpec): BuildSpec {
  return allowed(withSource(given, given.source), refusalOf, withSource);
}

/** The build without what no device can run any more. Throws like `withSupportedKernels`. */
export function withoutRemoved(given: BuildSpec): BuildSpec {
  return allowed(given, removalOf, (spec, source) => ({
    ...spec,
    source: withoutUnusedReferences(source),
    original: spec.original ?? spec.source,
  }));
}

/** `part` makes the build of a part of the source. */
function allowed(
  spec: BuildSpec,
  problemOf: (spec: BuildSpec) => CompileError | undefined,
  part: (spec: BuildSpec, source: string) => BuildSpec,
): BuildSpec {
  const refusal = problemOf(spec);
  if (refusal === undefined) return spec;
  const own = part(spec, onlyFor(spec.source, [plainName(spec.path ?? spec.entry)]));
  if (!spec.isModule) {
    const ownRefusal = problemOf(own);
    if (ownRefusal !== undefined) throw ownRefusal;
    return own;
  }
  const names = [...new Set(globalFunctions(withoutComments(spec.source)).map(({ name }) => name))];
  const able = names.filter((name) => problemOf(part(spec, onlyFor(spec.source, [name]))) === undefined);
  if (able.length === 0) throw refusal;
  if (spec.entry !== '') {
    const ownRefusal = problemOf(own);
    if (ownRefusal !== undefined) throw ownRefusal;
  }
  const made = part(spec, onlyFor(spec.source, able));
  return spec.instances ? { ...made, instances: spec.instances.filter((path) => able.includes(plainName(path))) } : made;
}

/** Includes go with the kernels that used them. */
function withSource(spec: BuildSpec, given: string): BuildSpec {
  const source = HAS_ABSENT.test(given) ? withoutUnusedIncludes(withoutUnusedNamespace(given), ABSENT) : given;
  return source === spec.source ? spec : { ...spec, source, original: spec.original ?? spec.source };
}

/** `using namespace nvcuda;`, whose only part is `wmma`. */
const OF_TENSOR_CORES = /\busing\s+namespace\s+nvcuda\s*;/g;

function withoutUnusedNamespace(source: string): string {
  const text = withoutComments(source);
  if (/\bwmma\b/.test(text)) return source;
  let made = source;
  for (const { 0: directive, index } of text.matchAll(OF_TENSOR_CORES)) made = blanked(made, index, index + directive.length);
  return made;
}

/** The macros that the device and the options define. */
function macrosAtStart(options: readonly string[]): ReadonlyMap<string, string> {
  const given = macrosIn(macrosOf(options).directives).map(({ name, parameters, body }) => [name, parameters ? '?' : body.trim()] as const);
  return new Map([...CUDA_MACROS, ['MILLRACE_CPU_DEVICE', '1'], ...given]);
}

function refusalOf(spec: BuildSpec): CompileError | undefined {
  return thrownBy(() => refuseOnCpu(spec, tokenize(withoutUntakenBranches(spec.source, macrosAtStart(spec.options)))));
}

function removalOf(spec: BuildSpec): CompileError | undefined {
  return thrownBy(() => refuseRemoved(spec, tokenize(spec.source)));
}

const REFERENCE = /(?:\bstatic\s+)?\b(?:texture|surface)\s*<[^;{}()]*>([^;{}()<>]*);/g;

/** Replaces with spaces the declarations of texture and surface references that no code names. */
function withoutUnusedReferences(source: string): string {
  const text = withoutComments(source);
  let made = source;
  for (const { 0: declaration, 1: names = '', index } of text.matchAll(REFERENCE)) {
    if (!/^[\s\w,]+$/.test(names)) continue;
    const isUsed = names.split(',').some((name) => [...text.matchAll(new RegExp(`\\b${name.trim()}\\b`, 'g'))].length > 1);
    if (!isUsed) made = blanked(made, index, index + declaration.length);
  }
  return made;
}

function thrownBy(check: () => void): CompileError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof CompileError) return error;
    throw error;
  }
}

// The part of a source that the CPU device can run: a kernel that uses an unsupported feature is refused, and the other kernels of the source
// are built without it.
import { type Library, onlyFor, withoutUnusedIncludes } from '../../compiler/cuda-source/host-code.js';
import { globalFunctions, withoutComments } from '../../compiler/cuda-source/source-scan.js';
import type { BuildSpec } from '../../core/channel/build.js';
import { CompileError } from '../../core/base/errors.js';
import { CUDA_MACROS } from '../base/cuda-macros.js';
import { plainName } from '../base/symbols.js';
import { tokenize } from './tokenizer.js';
import { macrosOf } from './macro-options.js';
import { refuseOnCpu } from './unsupported-features.js';
import { withoutUntakenBranches } from './untaken-branches.js';

/** Headers that the device lacks, and what shows that a source uses them. */
const ABSENT: readonly Library[] = [
  { headers: /^cub\//, use: /\bcub\b/ },
  { headers: /^(?:cute|cutlass|thrust)\//, use: /\b(?:cute|cutlass|thrust)\b/ },
  { headers: /^(?:cuda\/(?!std\/|(?:atomic|barrier|functional|pipeline)$)|nv\/)/, use: /\b(?:cuda|nv)\s*::/ },
  { headers: /^mma\.h$/, use: /\b(?:nvcuda|wmma)\b/ },
  { headers: /^cuda_fp8\.h$/, use: /fp8/i },
  { headers: /^cuda_awbarrier\w*\.h$/, use: /awbarrier/i },
];
const HAS_ABSENT = /^[ \t]*#[ \t]*include[ \t]*[<"](?:cub|cute|cutlass|thrust|cuda|nv|mma)/m;

/**
 * The build without what the device cannot run. Throws a CompileError if the kernel itself, or every kernel of a module, is refused. All
 * builds of a module are the same, also those for one of its kernels.
 */
export function withSupportedKernels(given: BuildSpec): BuildSpec {
  const spec = withSource(given, given.source);
  const refusal = refusalOf(spec);
  if (refusal === undefined) return spec;
  const own = withSource(spec, onlyFor(spec.source, [plainName(spec.path ?? spec.entry)]));
  if (!spec.isModule) {
    const ownRefusal = refusalOf(own);
    if (ownRefusal !== undefined) throw ownRefusal;
    return own;
  }
  const names = [...new Set(globalFunctions(withoutComments(spec.source)).map(({ name }) => name))];
  const able = names.filter((name) => refusalOf(withSource(spec, onlyFor(spec.source, [name]))) === undefined);
  if (able.length === 0) throw refusal;
  if (spec.entry !== '') {
    const ownRefusal = refusalOf(own);
    if (ownRefusal !== undefined) throw ownRefusal;
  }
  const made = withSource(spec, onlyFor(spec.source, able));
  return spec.instances ? { ...made, instances: spec.instances.filter((path) => able.includes(plainName(path))) } : made;
}

/** Includes go with the kernels that used them. */
function withSource(spec: BuildSpec, given: string): BuildSpec {
  const source = HAS_ABSENT.test(given) ? withoutUnusedIncludes(given, ABSENT) : given;
  return source === spec.source ? spec : { ...spec, source, original: spec.original ?? spec.source };
}

/** The macros that the device and the options define. */
function macrosAtStart(options: readonly string[]): ReadonlyMap<string, string> {
  const given = [...macrosOf(options).directives.matchAll(/^#define (\w+) (.*)$/gm)].map(
    ([, name = '', value = '']) => [name, value] as const,
  );
  return new Map([...CUDA_MACROS, ['MILLRACE_CPU_DEVICE', '1'], ...given]);
}

function refusalOf(spec: BuildSpec): CompileError | undefined {
  try {
    refuseOnCpu(spec, tokenize(withoutUntakenBranches(spec.source, macrosAtStart(spec.options))));
    return undefined;
  } catch (error) {
    if (error instanceof CompileError) return error;
    throw error;
  }
}

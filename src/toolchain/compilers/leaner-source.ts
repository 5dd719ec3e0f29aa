// A compiler that, where it rejects a source, tries once more without what the kernels do not need: declarations of host code whose types are
// unknown, and includes of the host's libraries that are not installed.
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { CompileError, type UnavailableError } from '../../core/base/errors.js';
import { onlyFor } from '../../cuda-cpp/select/host-code.js';
import { directivesOf, macrosIn, withoutIncludes } from '../../cuda-cpp/read/directives.js';
import { withoutComments, wordsOf } from '../../cuda-cpp/read/tokens.js';
import { CUDA_MACROS } from '../base/cuda-macros.js';
import type { KernelCompiler } from './compiler.js';

/** What g++, clang++ and CUDA's compilers say of a header that is not there. */
const MISSING = /fatal error: '?([^':\n]+?)'?(?:: No such file| file not found)|(?:cannot|could not) open source file "([^"\n]+)"/;
/** Words of conditions that no header of a library defines: names of systems, and what a command line gives. */
const OF_NO_HEADER = /^(?:_|(?:defined|true|false|WIN(?:32|64)|MACOSX?|APPLE|ANDROID|LINUX|linux|unix|NDEBUG)$)/;
/** Most headers of the host's libraries in one source. */
const MOST_HEADERS = 32;

export class LeanerSources implements KernelCompiler {
  readonly label: string;
  readonly identity: string;
  readonly hasFolders: boolean;
  readonly #compiler: KernelCompiler;

  constructor(compiler: KernelCompiler) {
    this.#compiler = compiler;
    this.label = compiler.label;
    this.identity = compiler.identity;
    this.hasFolders = compiler.hasFolders;
  }

  compile(spec: BuildSpec): Promise<Uint8Array> {
    return retried([spec], ([one]) => this.#compiler.compile(one!));
  }

  refusal(kernel: BuildSpec): UnavailableError | undefined {
    return this.#compiler.refusal?.(kernel);
  }

  check(kernels: readonly BuildSpec[]): Promise<void> {
    return retried(kernels, (all) => this.#compiler.check(all));
  }
}

/** Throws the first error, which is of the source as given. */
async function retried<T>(kernels: readonly BuildSpec[], run: (kernels: readonly BuildSpec[]) => Promise<T>): Promise<T> {
  let present = kernels;
  let first: unknown;
  for (let tries = 0; tries <= MOST_HEADERS; tries++) {
    try {
      return await run(present);
    } catch (error) {
      first ??= error;
      const source = error instanceof CompileError ? leaner(present, error.log) : undefined;
      if (source === undefined) throw first;
      present = present.map((one) => ({ ...one, source }));
    }
  }
  throw first;
}

/** Undefined if nothing can go. */
function leaner(kernels: readonly BuildSpec[], log: string): string | undefined {
  const { source, identity, isModule, instances = [], options } = kernels[0]!;
  if (identity !== undefined) return undefined;
  const roots = [...kernels.map(({ path, entry }) => path ?? entry), ...instances];
  const lean = onlyFor(source, roots, isModule === true || kernels.length > 1);
  const missing = MISSING.exec(log);
  const header = missing?.[1] ?? missing?.[2];
  if (header !== undefined && asksForMacros(lean, options)) return undefined;
  const made = header === undefined ? lean : withoutIncludes(lean, withoutComments(lean), (name) => name === header);
  return made === source ? undefined : made;
}

/** Whether conditions ask for macros that the missing header may define. */
function asksForMacros(source: string, options: readonly string[]): boolean {
  const text = withoutComments(source);
  const own = new Set(macrosIn(text).map(({ name }) => name));
  const isKnown = (name: string): boolean =>
    OF_NO_HEADER.test(name) || CUDA_MACROS.has(name) || own.has(name) || options.some((option) => option.includes(name));
  return directivesOf(text).some(
    ({ name: directive, rest }) =>
      /^(?:el)?if(?:n?def)?$/.test(directive) && wordsOf(rest).some((word) => /^[A-Za-z_]/.test(word) && !isKnown(word)),
  );
}

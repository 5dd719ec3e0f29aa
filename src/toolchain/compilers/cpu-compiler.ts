// Compiles CUDA C++ to a shared object, with the system's C++ compiler and the shim of native/cpu/shim.
import { arch } from 'node:os';
import { join } from 'node:path';
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { InternalError } from '../../core/base/errors.js';
import type { KernelCompiler } from './compiler.js';
import {
  compose,
  composeSimd,
  type ComposedSource,
  type Exports,
  constantNames,
  exportOf,
  exportsOf,
  isFused,
  type Output,
  type ScannedSource,
} from './composed-source.js';
import { rejectedBy, SOURCE_NAME } from '../base/diagnostics.js';
import { compileWith, outputOf } from './compile-with.js';
import { hasHalves, hasIndices, looksAtTypes } from '../../cuda-cpp/lower/index-type-uses.js';
import { CUDA_MACROS } from '../base/cuda-macros.js';
import { SHIM_DIRECTORY } from '../base/package-and-cpu-identity.js';
import { HEADER_DIRECTORY } from '../base/kernel-headers.js';
import { writtenHeaders } from './written-headers.js';
import { macrosOf, withLeastDialect } from '../../cuda-cpp/read/macro-options.js';
import { refuseOnCpu } from '../../cuda-cpp/select/unsupported-features.js';
import { leave, scratchFolder } from '../system/temporary-folder.js';
import { hasMatchingBrackets, tokenize } from '../../cuda-cpp/read/tokens.js';
import type { ProcessorTarget } from '../base/image-targets.js';
import type { MachineFacts } from '../base/file-stamps.js';
import { findCxx, namesFolders, type Toolchain } from './toolchain.js';
import { lacksStack, largeFrames, STACK_FLAG, type LargeFrames } from './stack-usage.js';
import { contentOf, EXACT_FLAG, hasRoundTrips, hasTruncations } from './replaced-float-conversions.js';
import { CONVERSION_FLAGS, hasConversions, unmarked, withMarkedConversions, withoutWarnings } from './implicit-conversions.js';
import { lockstepEdits } from '../../cuda-cpp/lower/lockstep.js';
import { asksForSpaces } from '../../cuda-cpp/lower/library-headers.js';
import { isRewrittenInMacros } from '../../cuda-cpp/lower/rewrite.js';
import { castEdits, mayCast } from '../../cuda-cpp/lower/saturating-casts.js';
import { mayShift, shiftEdits } from '../../cuda-cpp/lower/shift-amounts.js';
import { withoutInstantiations } from '../../cuda-cpp/select/dialect.js';

/**
 * -O3: at -O2 g++ 12 vectorises almost nothing. No libstdc++: device code cannot use it, and an image without it loads faster. The four
 * options from -fno-strict-aliasing on define what CUDA's compilers do not rely on either: memory of another type, integers that overflow
 * (docs/decisions/0039), tests of pointers that were read through, and loops without effects that do not end.
 */
const FLAGS: readonly string[] = [
  '-x',
  'c++',
  '-O3',
  '-fno-math-errno',
  '-fno-trapping-math',
  '-fno-strict-aliasing',
  '-fwrapv',
  '-fno-delete-null-pointer-checks',
  '-fno-finite-loops',
  '-fno-exceptions',
  '-fno-rtti',
  '-fno-threadsafe-statics',
  // Some systems make it the default, and it ends the process.
  '-fno-stack-protector',
  '-fPIC',
  '-fvisibility=hidden',
  '-pipe',
  // Columns in messages then count characters.
  '-ftabstop=1',
];
/**
 * Without the first flag, g++ turns a division by a constant zero into a trap; GPUs and this device (native/cpu/division_traps.h) give a result.
 * -fwhole-program makes everything private that is not exported, so that globals stay in registers (see the shim's thread_index.h).
 */
const GCC_FLAGS: readonly string[] = ['-fno-isolate-erroneous-paths-dereference', '-fwhole-program', '-fno-gnu-unique', '-fmax-errors=20'];
/**
 * For kernels after loop fission, whose loops over threads already have the right order: a block may have rows, so x stays innermost. A row
 * is too short for a memcpy call when it copies to shared memory (a reduction over 16M: 3.2 ms, not 11.8).
 */
const GCC_FISSION_FLAGS: readonly string[] = ['-fno-loop-interchange', '-fno-tree-loop-distribute-patterns'];
/** For SIMD sources, which are long: these passes took more than half of the compilation of a Fourier transform, which runs as fast without them. */
const GCC_SIMD_FLAGS: readonly string[] = ['-fno-gcse', '-fno-gcse-after-reload', '--param=sccvn-max-alias-queries-per-access=50'];
/**
 * char is then signed, as on x64 and on GPUs. Variables of threads are found through __tls_get_addr, which images define
 * (native/cpu/shim/thread_variables.h). Functions for atomic operations would need the dynamic loader's own symbols.
 */
const ARM_FLAGS: readonly string[] = ['-fsigned-char', '-mtls-dialect=trad', '-mno-outline-atomics'];
const CLANG_FLAGS: readonly string[] = ['-ferror-limit=20'];
const CLANG_FISSION_FLAGS: readonly string[] = ['-fno-builtin-memcpy', '-fno-builtin-memset'];
/**
 * For images that find races of shared memory. The compiler calls functions of the shim (race_callbacks.h) before accesses; the sanitizer's
 * library is not linked. At -O1 and without these passes, a thread accesses what the source says: no load moves out of a condition or a loop.
 * Line tables tell the lines of accesses. The shim's headers test the macro.
 */
const RACE_FLAGS: readonly string[] = ['-O1', '-g1', '-fsanitize=thread', '-DMR_FINDS_RACES=1'];
const GCC_RACE_FLAGS: readonly string[] = [
  '--param=tsan-instrument-func-entry-exit=0',
  '-fno-tree-loop-im',
  '-fno-tree-pre',
  '-fno-tree-sink',
  '-fno-code-hoisting',
  '-fno-ssa-phiopt',
  '-fno-tree-loop-if-convert',
  '-fno-store-merging',
];
const CLANG_RACE_FLAGS: readonly string[] = ['-mllvm', '-tsan-instrument-func-entry-exit=0'];
const LINK_FLAGS: readonly string[] = ['-shared', '-nostdlib', '-Wl,-z,defs', '-Wl,--build-id=none', '-s'];
const LIBRARIES: readonly string[] = ['-lm', '-lc', '-lgcc'];
/** For functions that g++ cannot inline. */
const NOT_FORCED_FLAG = '-DMR_MAY_INLINE=1';
/** The guard of a thread's stack is a page, and no frame may skip it. For arm64, g++ would take the guard to have 64 KiB. */
const STACKS_FLAGS: readonly string[] = ['-fstack-clash-protection'];
const GCC_ARM_STACKS_FLAGS: readonly string[] = ['--param=stack-clash-protection-guard-size=12'];
/** For CUDA C++ source of users. */
const MACRO_FLAGS: readonly string[] = [...CUDA_MACROS].map(([name, value]) => `-D${name}=${value}`);
/** Never the system's headers, which do not compile with the shim. The shim needs none of those that have one line. */
function foldersFor({ source }: BuildSpec): readonly string[] {
  // Also for `__has_include`.
  const written = writtenHeaders(source.includes('include'));
  const [forCpu, forBoth] = written === undefined ? [[], []] : [[join(written, 'cpu')], [join(written, 'kernels')]];
  // The shim last, because some of its files have the names of CUDA's headers.
  const searched = [join(SHIM_DIRECTORY, 'include'), ...forCpu, HEADER_DIRECTORY, ...forBoth, SHIM_DIRECTORY];
  return ['-nostdinc', '-nostdinc++', '-iquote', SHIM_DIRECTORY, ...searched.flatMap((folder) => ['-I', folder])];
}
/** A header that is not expanded: the shim's cuda_fp16.h says so. */
const SHIM_DIRECTIVE = /^#pragma mr_directive /gm;

interface HostOptions {
  /** Directives for the head of the source: given on the command line, a macro named T would also apply to the shim. */
  readonly directives: string;
  readonly flags: readonly string[];
}

/** Translates the NVRTC options that apply to the CPU; options about GPUs are ignored. */
export function hostOptions(options: readonly string[]): HostOptions {
  const { directives, others } = macrosOf(options);
  const flags: string[] = [];
  for (let i = 0; i < others.length; i++) {
    const option = others[i]!;
    const folder = /^(?:-I|--include-path)(?:=|\s*)(.*)$/s.exec(option);
    if (folder) flags.push(`-I${folder[1] || (others[++i] ?? '')}`);
    else if (/^--?std=c\+\+\d\d$/.test(option)) flags.push(withLeastDialect(option).replace(/^-+/, '-'));
  }
  return { directives, flags };
}

/**
 * The forms of kernels. `either`: kernels whose threads wait are split at their barriers if possible, else each thread has a stack; other kernels
 * become loops over grid rows if possible, else run thread by thread.
 */
export type KernelForm = 'either' | 'fission' | 'stacks' | 'rows' | 'threads';

/** A compiled image, or the reason why there is none. */
interface Built {
  readonly image?: Uint8Array;
  readonly log: string;
  readonly tooLarge?: LargeFrames;
}

/** A source as given and, if the preprocessor accepts it (`isRead`), expanded. `seen` is the text that shows what it declares. */
interface ReadSource {
  readonly given: ScannedSource;
  readonly expanded?: ScannedSource;
  readonly isRead: boolean;
  readonly seen: string;
}

const NATIVE = { arch: arch() as ProcessorTarget['arch'], options: ['-march=native'] };

/** In place of an image, where the compiler only checks. */
const NO_IMAGE: Uint8Array = new Uint8Array(0);

function refusesNone(env: NodeJS.ProcessEnv): boolean {
  return env['MILLRACE_SIMD'] === 'always';
}

export class CpuCompiler implements KernelCompiler {
  readonly label: string;
  readonly identity: string;
  readonly hasFolders: boolean;
  readonly #tools: Toolchain;
  /** Whether a failed SIMD build is an error. Otherwise the kernel falls back to one thread after the other. */
  readonly #isStrict: boolean;
  /** Whether images find races of shared memory. */
  readonly #findsRaces: boolean;
  readonly #ofProcessor: readonly string[];
  readonly #stacksFlags: readonly string[];
  /** Of each run of the compiler. */
  readonly #limit: { readonly timeoutMs?: number };

  constructor(
    tools: Toolchain,
    isStrict = false,
    findsRaces = false,
    processor: Pick<ProcessorTarget, 'arch' | 'options'> = NATIVE,
    timeoutMs?: number,
  ) {
    this.#limit = timeoutMs === undefined ? {} : { timeoutMs };
    this.#ofProcessor = [...processor.options, ...(processor.arch === 'arm64' ? ARM_FLAGS : [])];
    const isGccOfArm = processor.arch === 'arm64' && tools.family === 'gcc';
    this.#stacksFlags = [...STACKS_FLAGS, ...(isGccOfArm ? GCC_ARM_STACKS_FLAGS : [])];
    this.#tools = tools;
    this.#isStrict = isStrict;
    this.#findsRaces = findsRaces;
    this.label = tools.label;
    this.hasFolders = namesFolders(tools);
    this.identity = JSON.stringify([
      tools.command,
      tools.prefix,
      tools.version,
      this.#ofProcessor,
      FLAGS,
      GCC_FLAGS,
      GCC_FISSION_FLAGS,
      CLANG_FLAGS,
      CLANG_FISSION_FLAGS,
      this.#stacksFlags,
      LINK_FLAGS,
      LIBRARIES,
      EXACT_FLAG,
      NOT_FORCED_FLAG,
      CONVERSION_FLAGS,
      STACK_FLAG,
      MACRO_FLAGS,
      ...(findsRaces ? [RACE_FLAGS, GCC_RACE_FLAGS, CLANG_RACE_FLAGS] : []),
    ]);
  }

  /** `ahead`: a processor that is not this machine's. */
  static async open(
    env: NodeJS.ProcessEnv = process.env,
    facts?: MachineFacts,
    findsRaces = false,
    ahead?: ProcessorTarget,
    timeoutMs?: number,
  ): Promise<CpuCompiler> {
    return new CpuCompiler(await findCxx(env, facts, ahead?.arch), refusesNone(env), findsRaces, ahead, timeoutMs);
  }

  /** `kernels`: the functions to export; default the entry, or all kernels of a module. `form` is for tests. */
  async compile(given: BuildSpec, kernels?: readonly string[], form: KernelForm = 'either'): Promise<Uint8Array> {
    const { directives, common } = this.#flagsFor(given);
    const spec = { ...given, source: withoutInstantiations(given.source) };
    if (spec.simdSource !== undefined && !this.#findsRaces) {
      const flags = this.#tools.family === 'clang' ? common : [...common, ...GCC_SIMD_FLAGS];
      const run = await this.#build({ spec }, composeSimd(spec.simdSource, kernels ?? [spec.entry]), flags);
      if (run.image) return run.image;
      if (this.#isStrict) throw new InternalError('ERR_MILLRACE_INTERNAL', `Kernel '${spec.name}' has no SIMD image. ${run.log}`);
    }
    const read = await this.#read(spec, directives, common);
    const found: Exports = spec.isModule ? exportsOf(read.seen, spec.instances) : exportOf(spec);
    const exports: Exports = kernels ? { kernels, ...(found.variables && { variables: found.variables }) } : found;
    return this.#compileRead({ spec, exports, checked: [spec] }, read, common, form);
  }

  /** The same forms, because not every form of a source compiles. */
  async check(kernels: readonly BuildSpec[]): Promise<void> {
    const first = kernels[0] as BuildSpec;
    const spec = { ...first, source: withoutInstantiations(first.source) };
    const { directives, common } = this.#flagsFor(spec);
    const read = await this.#read(spec, directives, common);
    await this.#compileRead({ spec, exports: { kernels: [] }, checked: kernels, isCheckOnly: true }, read, common, 'either');
  }

  /** The directives for the head of the source, and the options that all steps have in common. */
  #flagsFor(spec: BuildSpec): { readonly directives: string; readonly common: readonly string[] } {
    const { directives, flags } = hostOptions(spec.options);
    const fuse = `-ffp-contract=${isFused(spec) ? 'fast' : 'off'}`;
    const race = this.#findsRaces ? [...RACE_FLAGS, ...(this.#tools.family === 'clang' ? CLANG_RACE_FLAGS : GCC_RACE_FLAGS)] : [];
    const macros = spec.identity === undefined ? MACRO_FLAGS : [];
    return { directives, common: [...FLAGS, ...this.#ofProcessor, ...race, '-std=c++17', fuse, ...foldersFor(spec), ...macros, ...flags] };
  }

  async #compileRead(
    asked: Output,
    { given, expanded, isRead, seen }: ReadSource,
    common: readonly string[],
    form: KernelForm,
  ): Promise<Uint8Array> {
    const { spec } = asked;
    const isUsers = spec.identity === undefined;
    // Names behind macros are visible only after expansion.
    const read = expanded ?? given;
    const hasSpaces = isUsers && asksForSpaces(read.tokens);
    const wanted: Output = hasSpaces ? { ...asked, constants: constantNames(seen) } : asked;
    const isMatched = hasMatchingBrackets(read.tokens);
    const isPlain = isUsers && looksAtTypes(read.tokens);
    // Exclude loops over threads: in emitted source, which has its own; with assertions, since a thread cannot leave a called function from
    // a loop; and if the preprocessor fails, since its macros may rely on the shim's. Loops over threads have the accesses of all threads in one.
    const mayLoop = isUsers && isRead && isMatched && !isPlain && !spec.isAsserting && !this.#findsRaces && !hasSpaces;
    if (mayLoop && form !== 'stacks' && form !== 'threads') {
      const composed = compose(wanted, read, true);
      const run = composed.looped.length > 0 ? await this.#build(wanted, composed, common) : undefined;
      if (run?.image) return run.image;
      if (form !== 'either')
        throw new InternalError('ERR_MILLRACE_INTERNAL', `Kernel '${spec.name}' has no form with loop fission. ${run?.log ?? ''}`);
    }
    // The given source serves, which keeps its columns. But what only the expansion shows must be rewritten.
    const hides = (edits: (tokens: ScannedSource['tokens']) => readonly unknown[]): boolean =>
      expanded !== undefined && edits(expanded.tokens).length > edits(given.tokens).length;
    const isHidden = (isUsers && isRewrittenInMacros(given.source)) || hides(lockstepEdits) || (mayShift(read.source) && hides(shiftEdits));
    const chosen =
      isHidden || (isUsers && mayCast(read.source) && hides(castEdits)) ? read : { ...given, ...(expanded && { seen: expanded }) };
    const composed = compose(wanted, chosen, false, isPlain);
    const { image, log, tooLarge } = await this.#build(wanted, composed, common);
    if (!image && !tooLarge && !isPlain && isUsers && (hasIndices(read.tokens) || hasHalves(read.tokens))) {
      const plain = await this.#build(wanted, compose(wanted, chosen, false, true), common);
      if (plain.image) return plain.image;
    }
    if (tooLarge) throw lacksStack(spec, tooLarge);
    if (image) return image;
    // An error must not speak of casts that the user has not written, nor come from them, nor from what follows the source in an image, which
    // an open brace would contain.
    const isAlone = isUsers && !isMatched;
    const reported: Output = isAlone ? { spec, exports: { kernels: [] }, checked: [], isCheckOnly: true } : wanted;
    const uncast = compose(reported, chosen, false, isPlain, false);
    const last = uncast.text === composed.text ? undefined : await this.#build(reported, uncast, common);
    if (last?.image && !isAlone) return last.image;
    throw rejectedBy(this.label, spec, last === undefined || last.image ? composed.restore(log) : uncast.restore(last.log));
  }

  async #build(
    { spec, isCheckOnly }: Pick<Output, 'spec' | 'isCheckOnly'>,
    composed: ComposedSource,
    common: readonly string[],
  ): Promise<Built> {
    // Not in the cache's directory, whose files must have their final names or be about to get them.
    const scratch = scratchFolder();
    try {
      const family = this.#tools.family === 'clang' ? 'clang' : 'gcc';
      const [every, ofSplit] = family === 'clang' ? [CLANG_FLAGS, CLANG_FISSION_FLAGS] : [GCC_FLAGS, GCC_FISSION_FLAGS];
      const own = composed.isSplit ? [...every, ...ofSplit] : every;
      const isUsers = spec.identity === undefined;
      const mayTruncate = family === 'gcc' && isUsers;
      const { warning, places: placing } = CONVERSION_FLAGS[family];
      const form = [...(composed.hasStacks ? this.#stacksFlags : []), ...(isUsers ? warning : ['-w'])];
      const run = (args: readonly string[], input: string): ReturnType<typeof compileWith> =>
        compileWith(this.#tools, spec, args, { ...this.#limit, input, temporary: scratch });
      if (isCheckOnly) {
        const { exitCode, stderr } = await run([...common, ...own, ...form, '-fsyntax-only', '-'], composed.text);
        return exitCode === 0 ? { image: NO_IMAGE, log: '' } : { log: withoutWarnings(stderr) };
      }
      const build = async (name: string, more: readonly string[], input = composed.text): Promise<Built & { dump: string }> => {
        const [output, dump] = [join(scratch, `${name}.so`), join(scratch, `${name}.dump`)];
        const dumps = [STACK_FLAG, ...(mayTruncate ? [`-fdump-tree-optimized=${dump}`] : [])];
        // The symbols tell the names of variables.
        const link = this.#findsRaces ? LINK_FLAGS.filter((flag) => flag !== '-s') : LINK_FLAGS;
        const args = [...common, ...own, ...form, ...more, ...dumps, ...link, '-o', output, '-', '-x', 'none', ...LIBRARIES];
        const { exitCode, stderr } = await run(args, input);
        const log = withoutWarnings(stderr);
        if (exitCode !== 0) return { log, dump: '' };
        if (input === composed.text && isUsers && hasConversions(stderr)) {
          const places = await run([...common, ...own, ...form, ...placing, '-'], unmarked(input));
          const marked = withMarkedConversions(input, places.stderr, family);
          const exact = marked === undefined ? undefined : await build(`${name}-marked`, more, marked);
          if (exact?.image) return exact;
        }
        const tooLarge = largeFrames(scratch, name);
        if (tooLarge) return { tooLarge, log: 'It needs too much stack.', dump: '' };
        return {
          image: outputOf(this.#tools, spec, output),
          log: '',
          dump: mayTruncate ? contentOf(dump) : '',
        };
      };
      const inlined = await build('kernel', []);
      // g++ refuses some functions that must be inlined and are called through pointers.
      const isRefused = inlined.log.includes("inlining failed in call to 'always_inline'");
      const fast = isRefused ? await build('kernel', [NOT_FORCED_FLAG]) : inlined;
      const truncations = hasTruncations(fast.dump);
      if (truncations === undefined) return fast;
      const exact = await build('exact', [EXACT_FLAG, ...(isRefused ? [NOT_FORCED_FLAG] : [])]);
      return exact.image === undefined || truncations === 'certainly' || hasRoundTrips(exact.dump) ? exact : fast;
    } finally {
      leave(scratch);
    }
  }

  /** Preprocesses the source, because macros may hide barriers. Throws for features that the CPU device lacks. */
  async #read(spec: BuildSpec, directives: string, flags: readonly string[]): Promise<ReadSource> {
    const found = tokenize(spec.source);
    const given = { source: spec.source, tokens: found.tokens, directives };
    if (found.directives.every(({ text }) => /^#\s*pragma\b/.test(text)) && directives === '') {
      refuseOnCpu(spec, found);
      return { given, isRead: true, seen: spec.source };
    }
    // Without the shim, so that its macros are not expanded.
    const input = `${directives}#line 1 "${SOURCE_NAME}"\n${spec.source}\n`;
    const run = await compileWith(this.#tools, spec, [...flags, '-w', '-DMILLRACE_CPU_DEVICE=1', '-E', '-'], { ...this.#limit, input });
    if (run.exitCode !== 0) {
      // A header that the CPU device lacks fails here. The compiler will report other errors.
      refuseOnCpu(spec, found);
      return { given, isRead: false, seen: spec.source };
    }
    // Only what the preprocessor leaves is compiled: a branch that is not taken may use anything.
    const source = run.stdout.replace(SHIM_DIRECTIVE, '#');
    const made = tokenize(source);
    refuseOnCpu(spec, made);
    return { given, expanded: { source, tokens: made.tokens, directives: '' }, isRead: true, seen: source };
  }
}

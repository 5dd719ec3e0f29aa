// CUDA C++ to a shared object, with the system's C++ compiler and the shim of native/cpu/shim.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BuildSpec } from '../../core/channel/build.js';
import { InternalError } from '../../core/base/errors.js';
import type { KernelCompiler } from './compiler.js';
import { compose, composeAsGiven, composeSimd, type ComposedText, type Exports, exportsOf, type ReadText } from './composed-source.js';
import { rejectedBy, TEXT_NAME } from '../base/diagnostics.js';
import { compileWith, outputOf } from './compile-with.js';
import { hasIndices, looksAtTypes } from '../cuda-to-cpu/indices.js';
import { SHIM_DIRECTORY } from '../base/identity.js';
import { refuseOnCpu } from '../cuda-parser/unsupported-features.js';
import { leave, scratchFolder } from '../system/temporary-folder.js';
import { hasMatchingBrackets, tokenize } from '../cuda-parser/tokenizer.js';
import type { Facts } from '../base/file-stamps.js';
import { findCxx, namesFolders, type Toolchain } from './toolchain.js';
import { lacksStack, largeFrame, STACK_FLAG, type LargeFrame } from './stack-usage.js';
import { EXACT_FLAG, hasRoundTrips, hasTruncations } from './truncations.js';
import { hasWaits } from '../cuda-to-cpu/waiting-functions.js';

/**
 * -O3: at -O2 g++ 12 vectorises next to nothing. No strict aliasing, for CUDA texts reinterpret freely; it costs
 * nothing measurable. No libstdc++: device code cannot use it, and an image without it starts faster.
 */
const FLAGS: readonly string[] = [
  '-x',
  'c++',
  '-O3',
  '-march=native',
  '-fno-math-errno',
  '-fno-trapping-math',
  '-fno-strict-aliasing',
  '-fno-exceptions',
  '-fno-rtti',
  '-fno-threadsafe-statics',
  '-fPIC',
  '-fvisibility=hidden',
  '-pipe',
  // Columns of messages count characters.
  '-ftabstop=1',
];
/**
 * A division by zero has a result on a GPU, and here (native/cpu/division.h): without the first flag g++ makes a trap of one that it
 * sees. -fwhole-program: what is not exported is private, so that globals stay in registers (index.h of the shim says why).
 */
const GCC_FLAGS: readonly string[] = ['-fno-isolate-erroneous-paths-dereference', '-fwhole-program', '-fno-gnu-unique', '-fmax-errors=20'];
/**
 * Of kernels that are cut, whose loops over threads are in the order that they should be in: not the loop along x outside, because a
 * block may have rows. What a row copies to shared memory is too short for a call of memcpy (a reduction over 16M: 3.2 ms, not 11.8).
 */
const GCC_CUT_FLAGS: readonly string[] = ['-fno-loop-interchange', '-fno-tree-loop-distribute-patterns'];
const CLANG_FLAGS: readonly string[] = ['-ferror-limit=20'];
const CLANG_CUT_FLAGS: readonly string[] = ['-fno-builtin-memcpy', '-fno-builtin-memset'];
const LINK_FLAGS: readonly string[] = ['-shared', '-nostdlib', '-Wl,-z,defs', '-Wl,--build-id=none', '-s'];
const LIBRARIES: readonly string[] = ['-lm', '-lc', '-lgcc'];
/** Threads that wait are coroutines, whatever standard the text asks for; one that nobody awaits is an error. */
const WAITING_FLAGS: readonly string[] = ['-std=c++20', '-Wno-all', '-Werror=unused-result'];
/** Directives that change no word that the rewriting looks for: it can do without the preprocessor, which moves columns. */
const PLAIN_DIRECTIVE =
  /^#\s*(?:pragma\b|include\s*<(?:c?std\w+|c?math|math_constants|c?assert|cuda_runtime\w*|device_\w+|cooperative_groups(?:\/reduce)?)(?:\.h)?>|define\s+\w+(?:\([\w\s,]*\))?(?!\()(?:(?!\b(?:return|struct|class|template|namespace|inline|static|extern|constexpr|void|auto|cooperative_groups|sync)\b|__|[{}#?&|,])(?!\w+\s*\()[\s\S])*$)/;

interface HostOptions {
  /** Directives for the head of the text: on the command line, a macro named T would reach into the shim. */
  readonly directives: string;
  readonly flags: readonly string[];
}

/** NVRTC's spelling of the options that mean something here. The rest is about GPUs and is left out. */
export function hostOptions(options: readonly string[]): HostOptions {
  let directives = '';
  const flags: string[] = [];
  for (let i = 0; i < options.length; i++) {
    const option = options[i]!;
    const match = /^(?:(-D|--define-macro)|(-U|--undefine-macro)|(-I|--include-path))(?:=|\s*)(.*)$/s.exec(option);
    if (match) {
      const value = match[4] || (options[++i] ?? '');
      const [name, ...text] = value.split('=');
      if (match[1]) directives += `#define ${name} ${text.length > 0 ? text.join('=') : '1'}\n`;
      else if (match[2]) directives += `#undef ${value}\n`;
      else flags.push(`-I${value}`);
    } else if (/^--?std=c\+\+\d\d$/.test(option)) {
      flags.push(option.replace(/^-+/, '-'));
    }
  }
  return { directives, flags };
}

/**
 * How kernels are built. `either`: those whose threads wait are cut at their barriers where possible, the others coroutines; those
 * whose threads do not are rows where possible, the others threads.
 */
export type KernelForm = 'either' | 'cut' | 'coroutines' | 'rows' | 'threads';

/** An image, or why there is none. */
interface Built {
  readonly image?: Uint8Array;
  readonly log: string;
  readonly tooLarge?: LargeFrame;
}

function refusesNone(env: NodeJS.ProcessEnv): boolean {
  return env['MILLRACE_SIMD'] === 'always';
}

export class CpuCompiler implements KernelCompiler {
  readonly label: string;
  readonly identity: string;
  readonly hasFolders: boolean;
  readonly #tools: Toolchain;
  /** What cannot be built on lanes is an error, not a kernel with one thread after the other. */
  readonly #isStrict: boolean;

  constructor(tools: Toolchain, isStrict = false) {
    this.#tools = tools;
    this.#isStrict = isStrict;
    this.label = tools.label;
    this.hasFolders = namesFolders(tools);
    this.identity = JSON.stringify([
      tools.command,
      tools.prefix,
      tools.version,
      FLAGS,
      GCC_FLAGS,
      GCC_CUT_FLAGS,
      CLANG_FLAGS,
      CLANG_CUT_FLAGS,
      WAITING_FLAGS,
      LINK_FLAGS,
      LIBRARIES,
      EXACT_FLAG,
      STACK_FLAG,
    ]);
  }

  static async open(env: NodeJS.ProcessEnv = process.env, facts?: Facts): Promise<CpuCompiler> {
    return new CpuCompiler(await findCxx(env, facts), refusesNone(env));
  }

  /** `kernels`: which functions to export, the entry if not told, or all of a module. `form` is for tests. */
  async compile(spec: BuildSpec, kernels?: readonly string[], form: KernelForm = 'either'): Promise<Uint8Array> {
    const { directives, flags } = hostOptions(spec.options);
    const fuse = `-ffp-contract=${isFused(spec) ? 'fast' : 'off'}`;
    const common = [...FLAGS, '-std=c++17', fuse, '-I', SHIM_DIRECTORY, '-I', join(SHIM_DIRECTORY, 'include'), ...flags];
    if (spec.lanes !== undefined) {
      const run = await this.#build(spec, composeSimd(spec.lanes, kernels ?? [spec.entry]), common);
      if (run.image) return run.image;
      if (this.#isStrict) throw new InternalError('ERR_MILLRACE_INTERNAL', `Kernel '${spec.name}' has no image on lanes. ${run.log}`);
    }
    const { given, expanded, isRead, seen } = await this.#read(spec, directives, common);
    const found: Exports = spec.isModule ? exportsOf(seen) : { kernels: [spec.entry] };
    const exports = { ...found, kernels: kernels ?? found.kernels };
    // A name behind a macro would not be understood.
    const read = expanded ?? given;
    // A loop over threads has no place for one of them to leave a function that it calls. A text of the package's own has its loops.
    // Of one with macros that the preprocessor refuses, nobody knows what they hide: it may count on those of the shim.
    const isUsers = spec.identity === undefined;
    if (isUsers && hasWaits(read.tokens) && !hasMatchingBrackets(read.tokens)) await this.#refuseUnmatched(spec, read, common);
    const isPlain = isUsers && looksAtTypes(read.tokens);
    const mayLoop = isUsers && isRead && !isPlain && !spec.isAsserting;
    if (mayLoop && form !== 'coroutines' && form !== 'threads') {
      const composed = compose(spec, read, exports, true);
      const run = composed.looped.length > 0 ? await this.#build(spec, composed, common) : undefined;
      if (run?.image) return run.image;
      if (form !== 'either') throw new InternalError('ERR_MILLRACE_INTERNAL', `Kernel '${spec.name}' cannot be cut. ${run?.log ?? ''}`);
    }
    // Where neither has anything that waits, the given text will do, with its columns.
    const isExpanded = expanded && (hasWaits(expanded.tokens) || hasWaits(given.tokens)) && !hasPlainDirectives(spec, directives);
    const chosen = isExpanded ? expanded : given;
    const composed = compose(spec, chosen, exports, false, isPlain);
    const { image, log, tooLarge } = await this.#build(spec, composed, common);
    if (!image && !tooLarge && !isPlain && isUsers && hasIndices(read.tokens)) {
      const plain = await this.#build(spec, compose(spec, chosen, exports, false, true), common);
      if (plain.image) return plain.image;
    }
    if (tooLarge) throw lacksStack(spec, tooLarge);
    if (!image) throw rejectedBy(this.label, spec, composed.restore(log));
    return image;
  }

  /** What waits is awaited by rewriting the text, whose brackets the compiler has to have first. */
  async #refuseUnmatched(spec: BuildSpec, read: ReadText, common: readonly string[]): Promise<void> {
    const args = [...common, '-std=c++20', '-w', '-fsyntax-only', '-'];
    const { exitCode, stderr } = await compileWith(this.#tools, spec, args, { input: composeAsGiven(spec, read) });
    if (exitCode !== 0) throw rejectedBy(this.label, spec, stderr);
  }

  async #build(spec: BuildSpec, composed: ComposedText, common: readonly string[]): Promise<Built> {
    // Not in the cache's directory: what is there has its final name or is about to.
    const scratch = scratchFolder();
    try {
      const [every, ofCut] = this.#tools.family === 'clang' ? [CLANG_FLAGS, CLANG_CUT_FLAGS] : [GCC_FLAGS, GCC_CUT_FLAGS];
      const own = composed.isCut ? [...every, ...ofCut] : every;
      const form = composed.hasCoroutines ? WAITING_FLAGS : ['-w'];
      const mayTruncate = this.#tools.family === 'gcc' && spec.identity === undefined;
      const build = async (name: string, more: readonly string[]): Promise<Built & { dump: string }> => {
        const [output, dump] = [join(scratch, `${name}.so`), join(scratch, `${name}.dump`)];
        const dumps = [STACK_FLAG, ...(mayTruncate ? [`-fdump-tree-optimized=${dump}`] : [])];
        const args = [...common, ...own, ...form, ...more, ...dumps, ...LINK_FLAGS, '-o', output, '-', '-x', 'none', ...LIBRARIES];
        const run = await compileWith(this.#tools, spec, args, { input: composed.text, temporary: scratch });
        if (run.exitCode !== 0) return { log: run.stderr, dump: '' };
        const tooLarge = largeFrame(scratch, name);
        if (tooLarge) return { tooLarge, log: 'It needs too much of the stack.', dump: '' };
        // Not every compiler that calls itself g++ writes one.
        return {
          image: await outputOf(this.#tools, spec, output),
          log: '',
          dump: mayTruncate ? await readFile(dump, 'utf8').catch(() => '') : '',
        };
      };
      const fast = await build('kernel', []);
      const truncations = hasTruncations(fast.dump);
      if (truncations === undefined) return fast;
      const exact = await build('exact', [EXACT_FLAG]);
      return exact.image === undefined || truncations === 'certainly' || hasRoundTrips(exact.dump) ? exact : fast;
    } finally {
      leave(scratch);
    }
  }

  /** A macro may hide a barrier, and much else: what the preprocessor makes of a text says. Refuses what cannot be had. */
  async #read(
    spec: BuildSpec,
    directives: string,
    flags: readonly string[],
  ): Promise<{ given: ReadText; expanded?: ReadText; isRead: boolean; seen: string }> {
    const found = tokenize(spec.source);
    refuseOnCpu(spec, found);
    const given = { source: spec.source, tokens: found.tokens, directives };
    if (found.directives.every(({ text }) => /^#\s*pragma\b/.test(text)) && directives === '')
      return { given, isRead: true, seen: spec.source };
    // Without the shim, whose macros are to stay what they are.
    const input = `${directives}#line 1 "${TEXT_NAME}"\n${spec.source}\n`;
    const run = await compileWith(this.#tools, spec, [...flags, '-w', '-DMILLRACE_CPU_DEVICE=1', '-E', '-'], { input });
    // Its errors are left to the compiler.
    if (run.exitCode !== 0) return { given, isRead: false, seen: spec.source };
    const made = tokenize(run.stdout);
    refuseOnCpu(spec, made);
    return { given, expanded: { source: run.stdout, tokens: made.tokens, directives: '' }, isRead: true, seen: run.stdout };
  }
}

function hasPlainDirectives(spec: BuildSpec, directives: string): boolean {
  return directives === '' && tokenize(spec.source).directives.every(({ text }) => PLAIN_DIRECTIVE.test(text) && !text.includes('<<<'));
}

function isFused(spec: BuildSpec): boolean {
  return spec.fmad && !spec.options.some((option) => /^--?fmad=false$/.test(option));
}

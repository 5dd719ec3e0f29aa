// CUDA C++ to a shared object, with the system's C++ compiler and the shim of native/cpu/shim.
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BuildSpec } from '../core/channel/build.js';
import { MillraceError } from '../core/base/errors.js';
import type { KernelCompiler } from './compiler.js';
import { rejectedBy, TEXT_NAME, timedOut } from './diagnostics.js';
import { COMPILER_TIMEOUT_MS, runCompiler, type CompilerRun } from './run-compiler.js';
import { rewriteForCpu } from './rewrite.js';
import { refuseOnCpu } from './surface.js';
import { tokenize } from './text.js';
import { findCxx, type Toolchain } from './toolchain.js';

/** Beside the package's root, from src/build as from dist/build. */
export const SHIM_DIRECTORY: string = fileURLToPath(new URL('../../native/cpu/shim/', import.meta.url));

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
  '-w',
  '-pipe',
  // Columns of messages count characters.
  '-ftabstop=1',
];
/** -fwhole-program: what is not exported is private, so that globals stay in registers (index.h of the shim says why). */
const GCC_FLAGS: readonly string[] = ['-fwhole-program', '-fno-gnu-unique', '-fmax-errors=20'];
const CLANG_FLAGS: readonly string[] = ['-ferror-limit=20'];
const LINK_FLAGS: readonly string[] = ['-shared', '-nostdlib', '-Wl,-z,defs', '-Wl,--build-id=none', '-s'];
const LIBRARIES: readonly string[] = ['-lm', '-lc', '-lgcc'];
/** In the preprocessor's output the user's text begins here. */
const BEGIN = '#pragma millrace_text';

let shimDigest: string | undefined;

/** Changes with any file of the shim. */
export function shimIdentity(): string {
  if (shimDigest === undefined) {
    const hash = createHash('sha256');
    for (const folder of [SHIM_DIRECTORY, join(SHIM_DIRECTORY, 'include')]) {
      for (const file of readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())) {
        hash.update(`${file.name}\0`).update(readFileSync(join(folder, file.name)));
      }
    }
    shimDigest = hash.digest('hex').slice(0, 16);
  }
  return shimDigest;
}

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

/** The text as the C++ compiler sees it. `kernels` are exported. */
export function composeForCpu(source: string, kernels: readonly string[], directives: string): string {
  const exported = kernels.map((name) => `MR_KERNEL(${name})\n`).join('');
  return `#include "cuda_on_cpu.h"\n${directives}${BEGIN}\n#line 1 "${TEXT_NAME}"\n${rewriteForCpu(source)}\n#line 1 "exports"\n${exported}`;
}

export class CpuCompiler implements KernelCompiler {
  readonly label: string;
  readonly identity: string;
  readonly #tools: Toolchain;

  constructor(tools: Toolchain) {
    this.#tools = tools;
    this.label = tools.label;
    this.identity = JSON.stringify([tools.command, tools.prefix, tools.version, FLAGS, GCC_FLAGS, CLANG_FLAGS, LINK_FLAGS, LIBRARIES]);
  }

  static async open(env?: NodeJS.ProcessEnv): Promise<CpuCompiler> {
    return new CpuCompiler(await findCxx(env));
  }

  /** `kernels`: which functions to export, the entry if not told. */
  async compile(spec: BuildSpec, kernels: readonly string[] = [spec.entry]): Promise<Uint8Array> {
    const { tokens, hasMacros } = tokenize(spec.source);
    refuseOnCpu(spec, tokens);
    const { directives, flags } = hostOptions(spec.options);
    const text = composeForCpu(spec.source, kernels, directives);
    const fuse = `-ffp-contract=${isFused(spec) ? 'fast' : 'off'}`;
    const common = [...FLAGS, '-std=c++17', fuse, '-I', SHIM_DIRECTORY, '-I', join(SHIM_DIRECTORY, 'include'), ...flags];
    if (hasMacros || directives !== '') await this.#refuseExpanded(spec, text, common);
    // Not in the cache's directory: what is there has its final name or is about to.
    const scratch = mkdtempSync(join(tmpdir(), 'millrace-build-'));
    try {
      const output = join(scratch, 'kernel.so');
      const own = this.#tools.family === 'clang' ? CLANG_FLAGS : GCC_FLAGS;
      const run = await this.#run(spec, [...common, ...own, ...LINK_FLAGS, '-o', output, '-', '-x', 'none', ...LIBRARIES], text);
      if (run.exitCode !== 0) throw rejectedBy(this.label, spec, run.stderr);
      return await readFile(output);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  }

  /** A macro may hide a barrier: look again at what the preprocessor makes of the text. Errors are left to the compiler. */
  async #refuseExpanded(spec: BuildSpec, text: string, flags: readonly string[]): Promise<void> {
    const run = await this.#run(spec, [...flags, '-E', '-'], text);
    const begin = run.stdout.indexOf(BEGIN);
    if (run.exitCode === 0 && begin >= 0) refuseOnCpu(spec, tokenize(run.stdout.slice(begin)).tokens);
  }

  async #run(spec: BuildSpec, args: readonly string[], input: string): Promise<CompilerRun> {
    const run = await runCompiler(this.#tools.command, [...this.#tools.prefix, ...args], { input }).catch((cause: unknown) => {
      throw new MillraceError('ERR_MILLRACE_UNAVAILABLE', `The compiler ${this.#tools.command} cannot be started any more.`, { cause });
    });
    if (run.isTimedOut) throw timedOut(this.label, spec, COMPILER_TIMEOUT_MS);
    return run;
  }
}

function isFused(spec: BuildSpec): boolean {
  return spec.fmad && !spec.options.some((option) => /^--?fmad=false$/.test(option));
}

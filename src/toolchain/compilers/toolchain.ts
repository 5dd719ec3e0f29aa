// Finds the compilers of this machine.
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { arch } from 'node:os';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { UnavailableError } from '../../core/base/errors.js';
import { stampOf, type MachineFacts } from '../base/file-stamps.js';
import { isPassing, outside } from '../system/environment-errors.js';
import { runCompiler, USUAL_PATH } from './run-compiler.js';

export interface Toolchain {
  readonly command: string;
  /** Words before the compiler's own arguments, from a variable such as CXX='ccache g++'. */
  readonly prefix: readonly string[];
  readonly family: 'gcc' | 'clang' | 'nvcc';
  /** First line, or for nvcc the release line, of `--version`. */
  readonly version: string;
  /** Shown to users: 'g++ 12.2.0'. */
  readonly label: string;
}

/** The searched locations, for the error that no compiler was found. */
interface Search {
  readonly candidates: readonly { readonly from: string; readonly words: readonly string[] }[];
  readonly isRequired: boolean;
}

/** Names of a compiler's own program. Wrappers, such as a script or a compiler cache, may run another compiler tomorrow. */
const COMPILER_NAME = /^(?:[\w.]+-)*(?:g\+\+|gcc|c\+\+|clang|clang\+\+)(?:-[\d.]+)?$/;
const ELF: Buffer = Buffer.from('\x7fELF', 'latin1');

/** How Debian names the compilers for other processors than this machine's. */
const CROSS: Readonly<Record<string, string>> = { x64: 'x86-64-linux-gnu', arm64: 'aarch64-linux-gnu' };

/** `facts` caches the compiler's version output while its file is unchanged. `of`: a processor as `os.arch()` has it, by default this machine's. */
export async function findCxx(env: NodeJS.ProcessEnv = process.env, facts?: MachineFacts, of: string = arch()): Promise<Toolchain> {
  if (of !== arch()) return findCrossCxx(env, of);
  const search = searchFor(env, 'MILLRACE_CXX', [
    ...(env['CXX'] ? [{ from: 'CXX', words: words(env['CXX']) }] : []),
    ...['g++', 'clang++', 'c++'].map((name) => ({ from: 'PATH', words: [name] })),
  ]);
  const found = await firstThatRuns(search, env, describeCxx, facts);
  if (found) return found;
  throw missing('C++ compiler', search, [
    'Install one: apt-get install g++ (Debian, Ubuntu), dnf install gcc-c++ (Fedora), apk add g++ (Alpine).',
    'Or name one: MILLRACE_CXX=/path/to/g++.',
  ]);
}

async function findCrossCxx(env: NodeJS.ProcessEnv, of: string): Promise<Toolchain> {
  const program = `${CROSS[of]!.replace('x86-64', 'x86_64')}-g++`;
  const search = searchFor(env, `MILLRACE_CXX_${of.toUpperCase()}`, [{ from: 'PATH', words: [program] }]);
  const found = await firstThatRuns(search, env, describeCxx);
  if (found) return found;
  throw missing(`C++ compiler for ${of}`, search, [`Install one: apt-get install g++-${CROSS[of]} (Debian, Ubuntu).`]);
}

function describeCxx(versionText: string): Pick<Toolchain, 'family' | 'version' | 'label'> {
  const [version = ''] = versionText.split('\n');
  const number = /\d+\.\d+(?:\.\d+)?/.exec(version.replace(/\([^)]*\)/, ''))?.[0] ?? '';
  const isClang = /clang/i.test(version);
  return { family: isClang ? 'clang' : 'gcc', version, label: `${isClang ? 'clang++' : 'g++'} ${number}`.trim() };
}

export async function findNvcc(env: NodeJS.ProcessEnv = process.env): Promise<Toolchain> {
  const search = searchFor(env, 'MILLRACE_NVCC', [
    ...['CUDA_HOME', 'CUDA_PATH'].flatMap((name) => (env[name] ? [{ from: name, words: [join(env[name], 'bin/nvcc')] }] : [])),
    { from: 'the default folder', words: ['/usr/local/cuda/bin/nvcc'] },
    { from: 'PATH', words: ['nvcc'] },
  ]);
  const found = await firstThatRuns(search, env, (text) => {
    const version = text.split('\n').find((line) => /release \d/.test(line)) ?? text.trim();
    return { family: 'nvcc', version, label: `nvcc ${/V([\d.]+)/.exec(version)?.[1] ?? ''}`.trim() };
  });
  if (found) return found;
  throw missing('CUDA compiler (neither NVRTC nor nvcc)', search, [
    'Install NVRTC: pip install nvidia-cuda-nvrtc-cu12, or the package cuda-nvrtc of your distribution.',
    'Or install the CUDA toolkit and put nvcc on PATH, or name it: MILLRACE_NVCC=/path/to/nvcc.',
  ]);
}

/** Whether its own arguments name header folders, from which an include may come. */
export function namesFolders({ prefix }: Toolchain): boolean {
  return prefix.some((word) => /^(?:-I|-i|-B|-F|-X|--|@)/.test(word));
}

function words(value: string): string[] {
  return value.trim().split(/\s+/);
}

/** If MILLRACE_CXX or MILLRACE_NVCC is set and does not run, no other compiler is tried. */
function searchFor(env: NodeJS.ProcessEnv, own: string, others: Search['candidates']): Search {
  const value = env[own];
  return value ? { candidates: [{ from: own, words: words(value) }], isRequired: true } : { candidates: others, isRequired: false };
}

async function firstThatRuns(
  search: Search,
  env: NodeJS.ProcessEnv,
  describe: (versionText: string) => Pick<Toolchain, 'family' | 'version' | 'label'>,
  facts?: MachineFacts,
): Promise<Toolchain | undefined> {
  for (const {
    words: [program = '', ...prefix],
  } of search.candidates) {
    const command = which(program, env);
    if (command === undefined) continue;
    try {
      const stamp = facts && prefix.length === 0 ? stampOfCompiler(command) : undefined;
      const known = stamp === undefined ? undefined : await facts!.recall('compiler', stamp);
      if (known !== undefined) return { command, prefix, ...describe(known) };
      const run = await runCompiler(command, [...prefix, '--version'], { timeoutMs: 10_000 });
      if (run.exitCode !== 0) continue;
      if (stamp !== undefined) await facts!.remember('compiler', stamp, run.stdout);
      return { command, prefix, ...describe(run.stdout) };
    } catch (error) {
      // A lack of file descriptors or memory does not mean that this compiler is unusable.
      if (isPassing(error)) throw outside(`The compiler ${command} cannot report its version`, error);
      // The file is not an executable of this machine; the next candidate may be.
    }
  }
  return undefined;
}

/** A stamp that changes when the compiler does; undefined when its file does not determine that. */
function stampOfCompiler(command: string): string | undefined {
  try {
    const program = realpathSync(command);
    const stamp = COMPILER_NAME.test(basename(program)) && isElf(program) ? stampOf([program]) : undefined;
    return stamp && `${command}\n${stamp}`;
  } catch {
    // A user who may run the file may lack permission to read it, or it may have been removed.
    return undefined;
  }
}

function isElf(program: string): boolean {
  const head = Buffer.alloc(ELF.length);
  const file = openSync(program, 'r');
  try {
    readSync(file, head);
  } finally {
    closeSync(file);
  }
  return head.equals(ELF);
}

function which(program: string, env: NodeJS.ProcessEnv): string | undefined {
  const places = program.includes('/')
    ? [program]
    : (env['PATH'] ?? USUAL_PATH)
        .split(delimiter)
        .filter(isAbsolute)
        .map((dir) => join(dir, program));
  return places.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return statSync(path).isFile();
    } catch {
      return false;
    }
  });
}

function missing(what: string, search: Search, help: readonly string[]): UnavailableError {
  const looked = search.candidates.map(({ from, words: parts }) => `${parts.join(' ')} (${from})`).join(', ');
  const message = search.isRequired
    ? `K701: The compiler that ${search.candidates[0]!.from} names does not run: ${looked}.`
    : `K701: No ${what} was found to build kernels. The library looked for ${looked}.`;
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, help);
}

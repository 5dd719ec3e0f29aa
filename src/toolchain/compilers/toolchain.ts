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

/** `cudaMajor`: the driver's or toolkit's release, which NVRTC should have; undefined where neither is known. */
export function nvrtcHelp(env: NodeJS.ProcessEnv, cudaMajor: number | undefined): string {
  const named = env['MILLRACE_NVRTC'];
  if (named)
    return `Let MILLRACE_NVRTC name an NVRTC that this system and driver can load, or unset it: ${named} cannot be loaded, and no other is tried.`;
  const older = 'pip install nvidia-cuda-nvrtc-cu12';
  const newer = `pip install "nvidia-cuda-nvrtc==${Math.max(cudaMajor ?? 0, 13)}.*"`;
  const one = cudaMajor === undefined ? `${newer} (for CUDA 12: nvidia-cuda-nvrtc-cu12)` : cudaMajor < 13 ? older : newer;
  return `Install NVRTC: ${one} in an active virtual environment, or the package cuda-nvrtc-${cudaMajor ?? 13}-* of NVIDIA's repository.`;
}

/** Throws like `findCxx`. `cudaMajor`: the driver's release, for the remedy. */
export async function findNvcc(env: NodeJS.ProcessEnv = process.env, cudaMajor?: number): Promise<Toolchain> {
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
    nvrtcHelp(env, cudaMajor),
    'Or install the CUDA toolkit and put nvcc on PATH, or name it: MILLRACE_NVCC=/path/to/nvcc.',
  ]);
}

/** What nvcc says where its host compiler is missing, or too new for it. */
const HOST_FAULT = /^\S+: No such file or directory$|host compiler properties|host_config\.h.*unsupported/;

/** What to do about it. */
export function hostHelp({ command }: Toolchain): string {
  return `nvcc needs a C++ compiler that it supports, as gcc on PATH: apt-get install g++. Or name one: MILLRACE_NVCC="${command} -ccbin /path/to/g++".`;
}

/** The line of nvcc's output that says so; undefined where its host compiler runs. */
export function hostFault(output: string): string | undefined {
  return output.split('\n').find((line) => HOST_FAULT.test(line));
}

/** Why this nvcc cannot build, in its words; undefined where it can. Takes 0.1 s, in which nvcc preprocesses CUDA's headers. */
export async function faultOfNvcc({ command, prefix }: Toolchain): Promise<string | undefined> {
  const run = await runCompiler(command, [...prefix, '-E', '-x', 'cu', '/dev/null'], { timeoutMs: 10_000 });
  return run.exitCode === 0 ? undefined : (hostFault(run.stderr) ?? (run.stderr.trim().split('\n', 1)[0] || `exit code ${run.exitCode}`));
}

/** The major version in its label; undefined if that has none. */
export function majorOf({ label }: Toolchain): number | undefined {
  const major = /\d+/.exec(label)?.[0];
  return major === undefined ? undefined : Number(major);
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
  if (!search.isRequired) return unavailable(`K701: No ${what} was found to build kernels. The library looked for ${looked}.`, help);
  const { from, words: parts } = search.candidates[0]!;
  // Another installed compiler would not be tried.
  return unavailable(`K701: The compiler that ${from} names does not run: ${parts.join(' ')}.`, [
    `Let ${from} name one that runs, or unset it.`,
  ]);
}

function unavailable(message: string, help: readonly string[]): UnavailableError {
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, help);
}

// The two compilers of CUDA C++ to cubins: NVRTC in this process, and nvcc where it is not there. `Builder` chooses.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { BuildSpec } from '../../core/channel/build-spec.js';
import type { KernelCompiler } from './compiler.js';
import { UnavailableError } from '../../core/base/errors.js';
import { withoutDirectives } from '../../cuda-cpp/read/directives.js';
import { type GlobalFunction, globalFunctions, namedOnce } from '../../cuda-cpp/read/global-functions.js';
import { withoutComments } from '../../cuda-cpp/read/tokens.js';
import { withConstantExpressions } from '../../cuda-cpp/select/dialect.js';
import { onlyFor } from '../../cuda-cpp/select/host-code.js';
import { isInstance, plainName, withSymbols } from '../base/symbols.js';
import { rejectedBy, SOURCE_NAME } from '../base/diagnostics.js';
import { HEADER_DIRECTORY, kernelHeaders } from '../base/kernel-headers.js';
import { preludeOf } from './source-prelude.js';
import { macrosOf, withLeastDialect } from '../../cuda-cpp/read/macro-options.js';
import { leave, scratchFolder } from '../system/temporary-folder.js';
import { compileWith, outputOf } from './compile-with.js';
import { findDeviceRuntime } from './device-runtime.js';
import { checkedSource } from './parameter-checks.js';
import { findNvcc, majorOf, namesFolders, nvrtcHelp, type Toolchain } from './toolchain.js';
import { toolkitHeaders } from './toolkit-headers.js';

/** NVRTC as the addon exposes it: `binding.nvrtc()` with `binding.compileNvrtc`. */
export interface Nvrtc {
  readonly version: readonly [major: number, minor: number];
  readonly path: string;
  /** The GPUs that it builds for: 75, 80, 86, ... Empty if it does not tell. */
  readonly architectures?: readonly number[];
  /** Without an image, the source was rejected, and the log gives the reason. */
  compile(program: NvrtcProgram): Promise<{ readonly image?: Uint8Array; readonly symbols: readonly string[]; readonly log: string }>;
  /** `library`: the device runtime's file. Without an image, linking failed, and the log gives the reason. */
  link(cubin: Uint8Array, library: string, architecture: string): Promise<{ readonly image?: Uint8Array; readonly log: string }>;
}

export interface NvrtcProgram {
  readonly source: string;
  /** The source's file name in messages. */
  readonly name: string;
  readonly options: readonly string[];
  /** Texts by the names that the source includes. */
  readonly headers: ReadonlyMap<string, string>;
  /** C++ names of kernels whose symbols the result has. */
  readonly kernels: readonly string[];
}

/** NVRTC's first major version that is known to stop after the front end if the options say so. An earlier one compiles everything. */
const SYNTAX_ONLY_SINCE = 13;

/** NVRTC's words for a variable whose initial value it does not compute. */
const DYNAMIC = /dynamic initialization is not supported/;

const NO_HEADERS: ReadonlyMap<string, string> = new Map();

/** `architecture`: sm_90 for a cubin, compute_90 for PTX. */
function commonOptions(spec: BuildSpec, architecture: string): string[] {
  const options = [`--gpu-architecture=${architecture}`];
  if (!spec.options.some((option) => /^-{1,2}std=/.test(option))) options.push('--std=c++17');
  if (!spec.fmad) options.push('--fmad=false');
  if (spec.isLaunching) options.push('--relocatable-device-code=true');
  return [...options, ...spec.options.map(withLeastDialect)];
}

export class NvrtcCompiler implements KernelCompiler {
  readonly label: string;
  readonly identity: string;
  readonly hasFolders = false;
  readonly #nvrtc: Nvrtc;
  readonly #architecture: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(nvrtc: Nvrtc, architecture: string, env: NodeJS.ProcessEnv = process.env) {
    this.#nvrtc = nvrtc;
    this.#architecture = architecture;
    this.#env = env;
    this.label = `NVRTC ${nvrtc.version.join('.')}`;
    this.identity = JSON.stringify(['nvrtc', nvrtc.version]);
  }

  async compile(spec: BuildSpec): Promise<Uint8Array> {
    const library = spec.isLaunching ? findDeviceRuntime(this.#env, this.#nvrtc.path) : undefined;
    let program = this.#program(spec);
    let { image, symbols, log } = await this.#nvrtc.compile(program);
    // The preprocessor may have removed some kernels of a module.
    if (!image && spec.isModule && program.kernels.length > 0) {
      program = { ...program, kernels: spec.instances ?? [] };
      ({ image, symbols, log } = await this.#nvrtc.compile(program));
    }
    // Or another kernel of the source needs what this device or NVRTC lacks.
    const own = image || spec.isModule ? spec.source : onlyFor(spec.source, [plainName(spec.path ?? spec.entry)]);
    if (own !== spec.source) {
      const alone = await this.#nvrtc.compile(this.#program({ ...spec, source: own }));
      if (alone.image) ({ image, symbols } = alone);
    }
    if (!image && DYNAMIC.test(log)) {
      const folded = await this.#nvrtc.compile(this.#program({ ...spec, source: withConstantExpressions(own) }));
      if (folded.image) ({ image, symbols } = folded);
    }
    if (!image) throw rejectedBy(this.label, spec, log);
    const whole = library === undefined ? image : await this.#link(spec, image, library);
    return symbols.length === 0
      ? whole
      : withSymbols(whole, Object.fromEntries(symbols.map((symbol, at) => [program.kernels[at]!, symbol])));
  }

  async #link(spec: BuildSpec, image: Uint8Array, library: string): Promise<Uint8Array> {
    const linked = await this.#nvrtc.link(image, library, this.#architecture);
    if (!linked.image) throw rejectedBy(`${this.label}, linked with ${library}`, spec, linked.log);
    return linked.image;
  }

  async check(kernels: readonly BuildSpec[]): Promise<void> {
    const spec = kernels[0] as BuildSpec;
    const { options, ...program } = this.#program(spec, kernels);
    const only = this.#nvrtc.version[0] >= SYNTAX_ONLY_SINCE ? ['-fdevice-syntax-only'] : [];
    const { image, log } = await this.#nvrtc.compile({ ...program, options: [...options, ...only], kernels: [] });
    if (!image) throw rejectedBy(this.label, spec, log);
  }

  #program(spec: BuildSpec, checked: readonly BuildSpec[] = [spec]): NvrtcProgram {
    // Functions without __device__ count as device functions, as they do on the CPU device.
    const options = [...commonOptions(spec, this.#architecture), '-default-device'];
    const source = checkedSource(spec.source, checked);
    // Source that this package emitted needs no headers.
    if (spec.identity !== undefined) return { source, name: SOURCE_NAME, options, headers: NO_HEADERS, kernels: [] };
    const { directives, library, hasOtherHeaders } = preludeOf(spec.source, spec.options);
    // After the user's own include folders.
    if (hasOtherHeaders) options.push(...toolkitHeaders(this.#nvrtc.path).map((folder) => `-I${folder}`));
    const defined = macrosOf(options);
    const head = `${directives}#include "mr_types.h"\n${library}${defined.directives}#line 1 "${SOURCE_NAME}"\n`;
    return {
      source: head + source,
      name: SOURCE_NAME,
      options: defined.others,
      headers: headersFor(spec.source),
      kernels: namedKernels(spec),
    };
  }
}

/** curand_kernel.h includes the toolkit's curand.h, in place of which host code gets an empty one. */
function headersFor(source: string): ReadonlyMap<string, string> {
  if (!source.includes('curand_kernel.h')) return kernelHeaders();
  const headers = new Map(kernelHeaders());
  headers.delete('curand.h');
  return headers;
}

/** The C++ names of kernels whose symbols the compiler chooses. */
function namedKernels({ source, path, isModule, instances = [] }: BuildSpec): string[] {
  if (!isModule) return path === undefined ? [] : [path];
  const text = withoutDirectives(withoutComments(source));
  const plain = namedOnce(text, globalFunctions(text)).filter(({ isExternC }) => !isExternC);
  return [...plain.map((one) => one.path), ...instances];
}

/** Most characters of what may precede `__global__`. */
const MOST_SPECIFIERS = 200;
/** What precedes it of its declaration: also attributes, and macros of those, in parentheses. */
const SPECIFIERS = /(?:\b(?:static|inline|[A-Za-z_]\w*\s*\([^()]*\))\s*)*$/;
/** Up to the end of the last directive. */
const DIRECTIVES = /^[\s\S]*^[ \t]*#(?:.*\\\n)*.*\n/m;

/** Of the kernels with the same name, in several namespaces, the one that has it as its C name: the first, or the one that has it in the source. */
function ofCNames(text: string, functions: readonly GlobalFunction[]): GlobalFunction[] {
  const once = namedOnce(text, functions).toSorted((a, b) => Number(b.isExternC) - Number(a.isExternC));
  return [...new Map(once.toReversed().map((one) => [one.name, one])).values()];
}

/** The symbols of a module's other kernels, by their C++ names. In the image, `a::scale(float*)` has the symbol `_ZN1a5scaleEPf`. */
function mangledNames({ source, isModule }: BuildSpec, image: Uint8Array): Record<string, string> {
  if (!isModule) return {};
  const text = withoutComments(source);
  const functions = globalFunctions(text);
  const named = new Set(ofCNames(text, functions).map(({ path }) => path));
  const others = namedOnce(text, functions).filter(({ path }) => !named.has(path));
  if (others.length === 0) return {};
  const all = Buffer.from(image.buffer, image.byteOffset, image.byteLength).toString('latin1');
  const symbolOf = ({ path }: GlobalFunction): string => {
    // Names in unnamed namespaces, and those of static functions.
    const parts = path.split('::').map((part) => `(?:\\d+_GLOBAL__N_\\w*?)?L?${part.length}${part}`);
    // An unknown symbol makes the launches of the kernel fail, where its plain name would mean another kernel.
    return new RegExp(`\\.(?:text\\.|entry )(_ZN?${parts.join('')}\\w*)[\\0(]`).exec(all)?.[1] ?? path;
  };
  return Object.fromEntries(others.map((one) => [one.path, symbolOf(one)]));
}

function withMangledNames(spec: BuildSpec, image: Uint8Array): Uint8Array {
  const symbols = mangledNames(spec, image);
  return Object.keys(symbols).length === 0 ? image : withSymbols(image, symbols);
}

/** nvcc tells no symbols, so kernels get C names. */
function withCNames({ source, path, isModule }: BuildSpec): string {
  if (!isModule && path === undefined) return source;
  const text = withoutComments(source);
  const functions = globalFunctions(text);
  const named = new Map(ofCNames(text, functions).map((one) => [one.name, one.path]));
  let made = source;
  for (const { start, name, path: own, template, isExternC } of functions.toReversed()) {
    if (template !== undefined || isExternC || own !== (isModule ? named.get(name) : path)) continue;
    const head = made.slice(Math.max(0, start - MOST_SPECIFIERS), start);
    const [words] = SPECIFIERS.exec(head.slice(DIRECTIVES.exec(head)?.[0].length ?? 0)) as RegExpExecArray;
    made = `${made.slice(0, start - words.length)}extern "C" ${words.replace('static', '      ')}${made.slice(start)}`;
  }
  return made;
}

export class NvccCompiler implements KernelCompiler {
  readonly label: string;
  readonly identity: string;
  readonly hasFolders: boolean;
  readonly #tools: Toolchain;
  readonly #architecture: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(tools: Toolchain, architecture: string, env: NodeJS.ProcessEnv = process.env) {
    this.#tools = tools;
    this.#architecture = architecture;
    this.#env = env;
    this.label = tools.label;
    this.hasFolders = namesFolders(tools);
    this.identity = JSON.stringify(['nvcc', tools.command, tools.prefix, tools.version]);
  }

  /** `cudaMajor`: the driver's release, for the remedy where there is no nvcc. */
  static async open(architecture: string, env?: NodeJS.ProcessEnv, cudaMajor?: number): Promise<NvccCompiler> {
    return new NvccCompiler(await findNvcc(env, cudaMajor), architecture, env);
  }

  async compile(spec: BuildSpec): Promise<Uint8Array> {
    const refusal = this.refusal(spec);
    if (refusal) throw refusal;
    const library = spec.isLaunching ? findDeviceRuntime(this.#env, this.#tools.command) : undefined;
    const scratch = scratchFolder();
    try {
      const input = join(scratch, SOURCE_NAME);
      const output = join(scratch, 'kernel.cubin');
      writeFileSync(input, checkedSource(withCNames(spec), [spec]));
      const kind = this.#architecture.startsWith('compute') ? '-ptx' : '-cubin';
      await this.#run(spec, [kind, ...this.#options(spec), '-o', output, input], scratch);
      if (library === undefined) return withMangledNames(spec, outputOf(this.#tools, spec, output));
      const linked = join(scratch, 'linked.cubin');
      const architecture = `-arch=${this.#architecture}`;
      await this.#run(spec, ['-dlink', '-cubin', architecture, '-o', linked, output, '-L', dirname(library), '-lcudadevrt'], scratch);
      return withMangledNames(spec, outputOf(this.#tools, spec, linked));
    } finally {
      leave(scratch);
    }
  }

  refusal(kernel: BuildSpec): UnavailableError | undefined {
    return isInstance(kernel) ? noTemplates(kernel, nvrtcHelp(this.#env, majorOf(this.#tools))) : undefined;
  }

  /** PTX takes less time than a cubin. */
  async check(kernels: readonly BuildSpec[]): Promise<void> {
    const spec = kernels[0] as BuildSpec;
    const scratch = scratchFolder();
    try {
      const input = join(scratch, SOURCE_NAME);
      writeFileSync(input, checkedSource(withCNames(spec), kernels));
      await this.#run(spec, ['-ptx', ...this.#options(spec), '-o', join(scratch, 'kernel.ptx'), input], scratch);
    } finally {
      leave(scratch);
    }
  }

  #options(spec: BuildSpec): readonly string[] {
    // The C++ library that a source includes is the system's, whose constexpr functions device code may then call.
    const head = spec.identity === undefined ? ['--expt-relaxed-constexpr', '-include', join(HEADER_DIRECTORY, 'mr_nvcc.h')] : [];
    return [...commonOptions(spec, this.#architecture), ...head, '-w'];
  }

  async #run(spec: BuildSpec, args: readonly string[], temporary: string): Promise<void> {
    const run = await compileWith(this.#tools, spec, args, { temporary });
    // nvcc itself writes to stderr, but some of its child processes write to stdout.
    if (run.exitCode !== 0) throw rejectedBy(this.label, spec, `${run.stdout}${run.stderr}`);
  }
}

function noTemplates({ name }: BuildSpec, help: string): UnavailableError {
  const message = `K701: Kernel '${name}' is a template, which only NVRTC can build by its name. The compiler here is nvcc.`;
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, [
    help,
    'Or write a kernel that is not a template and calls a template function.',
  ]);
}

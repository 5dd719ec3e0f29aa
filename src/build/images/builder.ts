// From a BuildSpec to an image that the device loads: the disk cache first, then a compiler.
//
// Thread: the device's worker, one builder for a device. Nothing here blocks it: compilers are child processes, or run
// on threads of the addon. Two builds of one text at once become one.
import { createHash } from 'node:crypto';
import type { BuildSpec } from '../../core/channel/build.js';
import { PROTOCOL_HASH } from '../../protocol/protocol.gen.js';
import { KernelCache } from './cache.js';
import { cpuIdentity, packageIdentity } from '../base/identity.js';
import { CachedFacts } from './cached-facts.js';
import type { KernelCompiler } from '../compilers/compiler.js';
import { CpuCompiler } from '../compilers/cpu-compiler.js';
import { NvccCompiler, NvrtcCompiler, type ComputeCapability, type Nvrtc } from '../compilers/cuda-compiler.js';
import { refuseEndlessIncludes } from '../text/includes.js';
import { refuseGone, refuseOnCpu } from '../text/surface.js';
import { tokenize } from '../text/text.js';

export type BuildTarget =
  | { readonly backend: 'cpu' }
  /** Without `nvrtc`, nvcc builds. */
  | { readonly backend: 'cuda'; readonly computeCapability: ComputeCapability; readonly nvrtc?: Nvrtc };

export interface BuildResult {
  /** For `installKernel`: a cubin, or on the CPU device the UTF-8 path of a shared object. */
  readonly image: Uint8Array;
  /** For people: 'g++ 12.2.0', or 'cache' when there is no compiler on this machine. */
  readonly compiler: string;
  readonly fromCache: boolean;
  readonly ms: number;
}

export class KernelBuilder {
  readonly #target: BuildTarget;
  readonly #env: NodeJS.ProcessEnv;
  readonly #cache: KernelCache;
  readonly #facts: CachedFacts;
  #compiler: Promise<KernelCompiler> | undefined;
  readonly #flights = new Map<string, Promise<Omit<BuildResult, 'ms'>>>();

  constructor(target: BuildTarget, env: NodeJS.ProcessEnv = process.env) {
    this.#target = target;
    this.#env = env;
    this.#cache = new KernelCache(env);
    this.#facts = new CachedFacts(this.#cache);
  }

  /** Rejects with a CompileError (the text) or an UnavailableError (no compiler and nothing in the cache). */
  async build(given: BuildSpec): Promise<BuildResult> {
    const startMs = performance.now();
    const spec = this.#withChosenText(given);
    // A text of the package's own has neither.
    if (spec.identity === undefined) {
      const found = tokenize(spec.source);
      refuseGone(spec, found);
      if (this.#target.backend === 'cpu') refuseOnCpu(spec, found);
      refuseEndlessIncludes(spec);
    }
    const key = await this.#sourceKey(spec);
    let flight = this.#flights.get(key);
    if (!flight) {
      flight = this.#build(spec, key).finally(() => this.#flights.delete(key));
      this.#flights.set(key, flight);
    }
    return { ...(await flight), ms: performance.now() - startMs };
  }

  /** Finds out what the first build needs to know, as far as the cache has it: then that takes some milliseconds less. */
  async prepare(): Promise<void> {
    if (this.#target.backend !== 'cpu' || !this.#cache.isThere()) return;
    cpuIdentity();
    await packageIdentity(this.#facts);
    const known = await CpuCompiler.recall(this.#env, this.#facts);
    if (known) this.#compiler ??= Promise.resolve(known);
  }

  async #build(spec: BuildSpec, key: string): Promise<Omit<BuildResult, 'ms'>> {
    const extension = this.#target.backend === 'cpu' ? 'so' : 'cubin';
    let compiler: KernelCompiler;
    try {
      compiler = await this.#openCompiler();
    } catch (error) {
      // A cache filled elsewhere, such as in a container image, serves a machine without a compiler.
      const found = await this.#cache.findAny(key);
      if (!found) throw error;
      return { image: this.#image(found), compiler: 'cache', fromCache: true };
    }
    const name = `${key}-${digest(compiler.identity)}.${extension}`;
    if (!isSelfContained(spec)) {
      const built = await this.#cache.addUnshared(name, await compiler.compile(spec));
      return { image: this.#image(built), compiler: compiler.label, fromCache: false };
    }
    const found = await this.#cache.find(name);
    if (found) return { image: this.#image(found), compiler: compiler.label, fromCache: true };
    const built = await this.#cache.add(name, await compiler.compile(spec));
    return { image: this.#image(built), compiler: compiler.label, fromCache: false };
  }

  /** Looked for once; again after a failure, for the user may install one meanwhile. */
  #openCompiler(): Promise<KernelCompiler> {
    this.#compiler ??= this.#findCompiler().catch((error: unknown) => {
      this.#compiler = undefined;
      throw error;
    });
    return this.#compiler;
  }

  async #findCompiler(): Promise<KernelCompiler> {
    if (this.#target.backend === 'cpu') return CpuCompiler.open(this.#env, this.#facts);
    const { nvrtc, computeCapability } = this.#target;
    return nvrtc ? new NvrtcCompiler(nvrtc, computeCapability, this.#env) : NvccCompiler.open(computeCapability, this.#env);
  }

  #image(file: { readonly path: string; readonly content: Buffer }): Uint8Array {
    return this.#target.backend === 'cpu' ? Buffer.from(file.path) : file.content;
  }

  /** `MILLRACE_LANES=off` has the CPU device take the CUDA text of every kernel, `always` never where there is another. */
  #withChosenText({ lanes, ...spec }: BuildSpec): BuildSpec {
    const wish = this.#env['MILLRACE_LANES'];
    const isWanted = this.#target.backend === 'cpu' && lanes !== undefined && wish !== 'off' && (lanes.isFaster || wish === 'always');
    return isWanted ? { ...spec, lanes } : spec;
  }

  /** Everything that decides the image, but for the compiler. Names and line mappings do not. */
  async #sourceKey(spec: BuildSpec): Promise<string> {
    const machine = this.#target.backend === 'cpu' ? [cpuIdentity(), await packageIdentity(this.#facts)] : this.#target.computeCapability;
    const { source, identity = source, entry, isModule, options, fmad, lanes, isLaunching = false } = spec;
    const wanted = isModule ? null : entry;
    const parts = [PROTOCOL_HASH, this.#target.backend, machine, identity, lanes?.source, wanted, options, fmad, isLaunching];
    return digest(JSON.stringify(parts));
  }
}

/** An include of all but a system's header by its name: in quotes, by its path, by a macro. */
const OWN_INCLUDE = /^[ \t]*#[ \t]*include\b(?![ \t]*<[A-Za-z_])/m;

/** Headers of the user's may change while the text does not, so what includes some is built anew each time. */
function isSelfContained({ source, options }: BuildSpec): boolean {
  return !OWN_INCLUDE.test(source) && !options.some((option) => /^(?:-I|--include-path|-include|--pre-include)/.test(option));
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

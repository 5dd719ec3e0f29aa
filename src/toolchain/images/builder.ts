// From a build to an image that the device loads: the disk cache first, then a compiler.
//
// Thread: the device's worker, one builder for a device. Nothing here blocks it: compilers are child processes, or run
// on threads of the addon. Two builds of one text at once become one.
import { createHash } from 'node:crypto';
import type { Build, BuildSpec } from '../../core/channel/build.js';
import { PROTOCOL_HASH } from '../../protocol/protocol.gen.js';
import { type CachedFile, KernelCache } from './cache.js';
import { cpuIdentity, packageIdentity } from '../base/identity.js';
import { CachedFacts } from './cached-facts.js';
import { type SimdMode, written } from '../../compiler/codegen/write.js';
import type { KernelCompiler } from '../compilers/compiler.js';
import { CpuCompiler } from '../compilers/cpu-compiler.js';
import { NvccCompiler, NvrtcCompiler, type ComputeCapability, type Nvrtc } from '../compilers/cuda-compiler.js';
import { titleOf } from '../base/diagnostics.js';
import { isOfSystem, outside } from '../system/environment-errors.js';
import { withCompilerSlot } from '../system/compiler-slots.js';
import { isSelfContained, refuseEndlessIncludes } from '../cuda-parser/includes.js';
import { refuseGone, refuseOnCpu } from '../cuda-parser/unsupported-features.js';
import { tokenize } from '../cuda-parser/tokenizer.js';

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

  /**
   * Rejects with a CompileError for an error in the source, and with an UnavailableError when there is no compiler and no cached image,
   * no folder, no file descriptor, or the compiler was killed.
   */
  async build(spec: Build): Promise<BuildResult> {
    try {
      return await this.#shared(spec);
    } catch (error) {
      throw isOfSystem(error) ? outside(`${titleOf(spec)} was not built`, error) : error;
    }
  }

  /** Concurrent builds of the same source share one build. */
  async #shared(spec: Build): Promise<BuildResult> {
    const startMs = performance.now();
    // A text of the package's own has neither.
    if (isWritten(spec) && spec.identity === undefined) {
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

  /** Finds out what the first build needs to know, where there has been one before: then that takes some milliseconds less. */
  async prepare(): Promise<void> {
    if (!this.#cache.isThere()) return;
    if (this.#target.backend === 'cpu') cpuIdentity();
    // Where the compiler has to be asked what it is, that is a process, beside which there is time for the rest.
    await Promise.all([this.#target.backend === 'cpu' ? this.#openCompiler() : undefined, packageIdentity(this.#facts)]);
  }

  async #build(build: Build, key: string): Promise<Omit<BuildResult, 'ms'>> {
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
    if (isWritten(build) && !isSelfContained(build, compiler.hasFolders)) {
      const image = await withCompilerSlot(() => compiler.compile(build));
      const placed = this.#target.backend === 'cpu' ? this.#image(await this.#cache.addUnshared(name, image)) : image;
      return { image: placed, compiler: compiler.label, fromCache: false };
    }
    const found = await this.#cache.find(name);
    if (found) return { image: this.#image(found), compiler: compiler.label, fromCache: true };
    const image = await withCompilerSlot(() => compiler.compile(isWritten(build) ? build : written(build, this.#simdMode())));
    return { image: await this.#kept(name, image), compiler: compiler.label, fromCache: false };
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

  /** Only the CPU device loads images from files. For CUDA, an image that cannot be kept is only built again by the next process. */
  async #kept(name: string, image: Uint8Array): Promise<Uint8Array> {
    try {
      return this.#image(await this.#cache.add(name, image));
    } catch (error) {
      if (this.#target.backend === 'cpu') throw error;
      return image;
    }
  }

  #image(file: CachedFile): Uint8Array {
    return this.#target.backend === 'cpu' ? Buffer.from(file.path) : file.content;
  }

  /** `MILLRACE_SIMD=off` has the CPU device take the CUDA text of every kernel, `always` never where there is another. */
  #simdMode(): SimdMode {
    const wish = this.#env['MILLRACE_SIMD'];
    if (this.#target.backend === 'cuda' || wish === 'off') return 'off';
    return wish === 'always' ? wish : 'auto';
  }

  /** Everything that decides the image, but for the compiler. Names and line mappings do not. */
  async #sourceKey(build: Build): Promise<string> {
    const { backend } = this.#target;
    const machine = backend === 'cpu' ? cpuIdentity() : this.#target.computeCapability;
    // What rewrites a text for the CPU device is the package's, and so is what writes one.
    const isOwn = backend === 'cpu' || !isWritten(build) || build.parameterChecks !== undefined;
    const own = isOwn ? await packageIdentity(this.#facts) : null;
    const text = isWritten(build) ? [build.identity ?? build.source, build.lanes] : [build.identity, this.#simdMode()];
    const { entry, isModule, options, fmad, isLaunching = false } = build;
    const parts: unknown[] = [PROTOCOL_HASH, backend, machine, own, text, isModule ? null : entry, options, fmad, isLaunching];
    // Behind the others, so that texts without checks keep their keys.
    if (isWritten(build) && build.parameterChecks) parts.push(entry, build.parameterChecks);
    return digest(JSON.stringify(parts));
  }
}

function isWritten(build: Build): build is BuildSpec {
  return 'source' in build;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

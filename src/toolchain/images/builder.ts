// Builds compiled images that the device loads: from the disk cache, else with a compiler.
//
// Thread: the device's worker, one builder per device. Nothing here blocks the worker: compilers are child processes, or run on threads of
// the addon. Concurrent builds of the same source share one compilation.
import { createHash } from 'node:crypto';
import type { Build, BuildSpec } from '../../core/channel/build-spec.js';
import { PROTOCOL_HASH } from '../../protocol/protocol.gen.js';
import { type CachedFile, KernelCache } from './cache.js';
import { cpuIdentity, packageIdentity } from '../base/package-and-cpu-identity.js';
import { MachineFactsCache } from './machine-facts-cache.js';
import { KernelChecks } from './kernel-checks.js';
import { type SimdMode, written } from '../../compiler/codegen/emit-sources.js';
import type { KernelCompiler } from '../compilers/compiler.js';
import { LeanerSources } from '../compilers/leaner-source.js';
import { CpuCompiler } from '../compilers/cpu-compiler.js';
import { NvccCompiler, NvrtcCompiler, type ComputeCapability, type Nvrtc } from '../compilers/nvrtc-or-nvcc.js';
import { titleOf } from '../base/diagnostics.js';
import { cpuSymbol, isInstance, plainName, splitSymbols } from '../base/symbols.js';
import { isOfSystem, outside } from '../system/environment-errors.js';
import { withCompilerSlot } from '../system/compiler-slots.js';
import { isSelfContained, refuseEndlessIncludes } from './included-file-checks.js';
import { withoutRemoved, withSupportedKernels } from '../../cuda-cpp/select/supported-kernels.js';
import { performance } from '../../core/base/timers.js';

export type BuildTarget =
  /** `findsRaces`: images find races of shared memory. */
  | { readonly backend: 'cpu'; readonly findsRaces?: boolean }
  /** Without `nvrtc`, nvcc builds. */
  | { readonly backend: 'cuda'; readonly computeCapability: ComputeCapability; readonly nvrtc?: Nvrtc };

export interface BuildResult {
  /** For `installKernel`: a cubin, or on the CPU device the UTF-8 path of a shared object. */
  readonly image: Uint8Array;
  /** The symbol in the image of a kernel with this C++ name. */
  symbolOf(path: string): string;
  /** Shown to users: 'g++ 12.2.0', or 'cache' when this machine has no compiler. */
  readonly compiler: string;
  readonly fromCache: boolean;
  readonly ms: number;
}

/** With the image as the cache has it. */
type StoredResult = Omit<BuildResult, 'ms' | 'symbolOf'>;

export class KernelBuilder {
  readonly #target: BuildTarget;
  readonly #env: NodeJS.ProcessEnv;
  readonly #cache: KernelCache;
  readonly #facts: MachineFactsCache;
  #compiler: Promise<KernelCompiler> | undefined;
  readonly #flights = new Map<string, Promise<StoredResult>>();
  readonly #checks = new KernelChecks();

  constructor(target: BuildTarget, env: NodeJS.ProcessEnv = process.env) {
    this.#target = target;
    this.#env = env;
    this.#cache = new KernelCache(env);
    this.#facts = new MachineFactsCache(this.#cache);
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
  async #shared(given: Build): Promise<BuildResult> {
    const startMs = performance.now();
    const spec = this.checked(given);
    const key = await this.#sourceKey(spec);
    let flight = this.#flights.get(key);
    if (!flight) {
      flight = this.#build(spec, key).finally(() => this.#flights.delete(key));
      this.#flights.set(key, flight);
    }
    const { image: stored, ...how } = await flight;
    const ms = performance.now() - startMs;
    if (this.#target.backend === 'cpu') return { image: stored, symbolOf: cpuSymbol, ...how, ms };
    const { image, symbols } = splitSymbols(stored);
    return { image, symbolOf: (path) => symbols[path] ?? plainName(path), ...how, ms };
  }

  /**
   * Checks the parameters of a kernel whose module is built without them. `kernel` is a result of `checked`. Rejects like `build`; the
   * errors are those that a build of this kernel alone would give.
   */
  async checkParameters(kernel: BuildSpec): Promise<void> {
    // Not every compiler can build an instance of a template.
    if (kernel.parameterChecks === undefined && !isInstance(kernel)) return;
    try {
      const what = `checked-${await this.#sourceKey(kernel)}`;
      let compiler: KernelCompiler;
      try {
        compiler = await this.#openCompiler();
      } catch (error) {
        // As for images: the cache serves a machine without a compiler.
        if (await this.#cache.findAny(what)) return;
        throw error;
      }
      const isKept = isSelfContained(kernel, compiler.hasFolders);
      if (isKept && (await this.#facts.recall(what, compiler.identity))) return;
      const { parameterChecks: _checks, path: _path, ...module } = kernel;
      await this.#checks.check(compiler, await this.#sourceKey(module), kernel);
      if (isKept) await this.#facts.remember(what, compiler.identity, 'yes');
    } catch (error) {
      throw isOfSystem(error) ? outside(`${titleOf(kernel)} was not built`, error) : error;
    }
  }

  /** The build of what the device can run of a source. Throws a CompileError for a kernel that it cannot run. */
  checked(spec: Build): Build {
    // Source that this package emitted needs no such checks.
    if (!isWritten(spec) || spec.identity !== undefined) return spec;
    const present = withoutRemoved(spec);
    const able = this.#target.backend === 'cpu' ? withSupportedKernels(present) : present;
    refuseEndlessIncludes(able);
    return able;
  }

  /** Before the first build, looks up what it needs, if there is a cache folder. This saves it some milliseconds. */
  async prepare(): Promise<void> {
    if (!this.#cache.isThere()) return;
    if (this.#target.backend === 'cpu') cpuIdentity();
    // If the compiler must be asked for its version, that process runs in parallel with the rest.
    await Promise.all([this.#target.backend === 'cpu' ? this.#openCompiler() : undefined, packageIdentity(this.#facts)]);
  }

  async #build(build: Build, key: string): Promise<StoredResult> {
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

  /** Searches once; again after a failure, because the user may have installed a compiler in between. */
  #openCompiler(): Promise<KernelCompiler> {
    this.#compiler ??= this.#findCompiler().catch((error: unknown) => {
      this.#compiler = undefined;
      throw error;
    });
    return this.#compiler;
  }

  async #findCompiler(): Promise<KernelCompiler> {
    return new LeanerSources(await this.#ownCompiler());
  }

  async #ownCompiler(): Promise<KernelCompiler> {
    if (this.#target.backend === 'cpu') return CpuCompiler.open(this.#env, this.#facts, this.#findsRaces);
    const { nvrtc, computeCapability } = this.#target;
    return nvrtc ? new NvrtcCompiler(nvrtc, computeCapability, this.#env) : NvccCompiler.open(computeCapability, this.#env);
  }

  /** Only the CPU device needs the file. On CUDA, an image that cannot be stored is rebuilt by the next process. */
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

  /** With `MILLRACE_SIMD=off` the CPU device runs the CUDA C++ form of every kernel; with `always`, the SIMD form where there is one. */
  #simdMode(): SimdMode {
    const asked = this.#env['MILLRACE_SIMD'];
    if (this.#target.backend === 'cuda' || this.#findsRaces || asked === 'off') return 'off';
    return asked === 'always' ? asked : 'auto';
  }

  /** Whether images find races of shared memory. */
  get #findsRaces(): boolean {
    return this.#target.backend === 'cpu' && this.#target.findsRaces === true;
  }

  /** The source that an image was compiled from, for messages about the image. */
  sourceOf(build: Build): BuildSpec {
    return isWritten(build) ? build : written(build, this.#simdMode());
  }

  /** A digest of all inputs of the image except the compiler. Names and line mappings are not inputs. */
  async #sourceKey(build: Build): Promise<string> {
    const { backend } = this.#target;
    const machine = backend === 'cpu' ? cpuIdentity() : this.#target.computeCapability;
    // This package emits sources, rewrites them for the CPU device and brings the headers of both devices, so its identity is an input.
    const own = await packageIdentity(this.#facts);
    const text = isWritten(build) ? [build.identity ?? build.source, build.simdSource] : [build.identity, this.#simdMode()];
    const { entry, isModule, instances = [], options, fmad, isLaunching = false } = build;
    const parts: unknown[] = [PROTOCOL_HASH, backend, machine, own, text, isModule ? null : entry, options, fmad, isLaunching];
    // Appended last, so that sources without checks keep their keys.
    if (isWritten(build) && (build.parameterChecks || (isModule && isInstance(build)))) parts.push(entry, build.parameterChecks);
    if (instances.length > 0) parts.push(instances);
    // An overload, which the caller's name alone does not tell.
    if (!isModule && build.path !== undefined && plainName(build.path) !== plainName(entry)) parts.push(build.path);
    if (this.#findsRaces) parts.push('races');
    return digest(JSON.stringify(parts));
  }
}

function isWritten(build: Build): build is BuildSpec {
  return 'source' in build;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

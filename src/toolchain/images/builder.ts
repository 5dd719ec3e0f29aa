// Builds compiled images that the device loads: from the disk cache, else with a compiler.
//
// Thread: the device's worker, one builder per device. Nothing here blocks the worker: compilers are child processes, or run on threads of
// the addon. Concurrent builds of the same source share one compilation.
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { CompileError, UnavailableError } from '../../core/base/errors.js';
import type { Build, BuildSpec } from '../../core/channel/build-spec.js';
import { PROTOCOL_HASH } from '../../protocol/protocol.gen.js';
import { type CachedFile, KernelCache, readImage } from './cache.js';
import { cpuIdentity, packageIdentity, processorFlags } from '../base/package-and-cpu-identity.js';
import {
  type ComputeCapability,
  type GpuTarget,
  type ImageTarget,
  type ProcessorTarget,
  targetOfProcessor,
} from '../base/image-targets.js';
import { isNoExec } from './private-cache-folder.js';
import { fileName, PrebuiltImages } from './prebuilt-images.js';
import { ShippedImages } from './shipped-images.js';
import { MachineFactsCache } from './machine-facts-cache.js';
import { KernelChecks } from './kernel-checks.js';
import { type SimdMode, written } from '../../compiler/codegen/emit-sources.js';
import type { KernelCompiler } from '../compilers/compiler.js';
import { LeanerSources } from '../compilers/leaner-source.js';
import { CpuCompiler } from '../compilers/cpu-compiler.js';
import { NvccCompiler, NvrtcCompiler, type Nvrtc } from '../compilers/nvrtc-or-nvcc.js';
import { titleOf } from '../base/diagnostics.js';
import { cpuSymbol, isInstance, plainName, splitSymbols } from '../base/symbols.js';
import { isOfSystem, outside, reasonOf } from '../system/environment-errors.js';
import { warnOnce } from '../system/warn-once.js';
import { withCompilerSlot } from '../system/compiler-slots.js';
import { isSelfContained, refuseEndlessIncludes } from './included-file-checks.js';
import { withoutRemoved, withSupportedKernels } from '../../cuda-cpp/select/supported-kernels.js';
import { performance } from '../../core/base/timers.js';

/** `images`: a folder of images that were built ahead of time. `ahead`: builds them, in place of images for this machine. */
export type BuildTarget =
  /** `findsRaces`: images find races of shared memory. `shipped`: the file of images of operations that came with the package. */
  | {
      readonly backend: 'cpu';
      readonly findsRaces?: boolean;
      readonly images?: string | undefined;
      readonly shipped?: string | undefined;
      readonly ahead?: ProcessorTarget;
      /** How long one run of a compiler may take, in place of COMPILER_TIMEOUT_MS. */
      readonly compilerTimeoutMs?: number | undefined;
    }
  /** Without `nvrtc`, nvcc builds. */
  | {
      readonly backend: 'cuda';
      readonly computeCapability: ComputeCapability;
      readonly nvrtc?: Nvrtc | undefined;
      /** Of the driver, for the remedy where there is no compiler. */
      readonly cudaMajor?: number | undefined;
      readonly images?: string | undefined;
      readonly ahead?: GpuTarget;
    };

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

/** Images built ahead of time, for one device. */
interface Prebuilt {
  readonly images: PrebuiltImages;
  /** Those that the device runs, the best first. */
  readonly targets: readonly ImageTarget[];
  readonly isLoadable: boolean;
}

function prebuiltFor(target: BuildTarget, folder: string): Prebuilt {
  const images = new PrebuiltImages(folder);
  const isOnCpu = target.backend === 'cpu';
  return {
    images,
    targets: images.targetsFor(isOnCpu ? 'processor' : target.computeCapability),
    isLoadable: !isOnCpu || !isNoExec(images.folder),
  };
}

export class KernelBuilder {
  readonly #target: BuildTarget;
  readonly #env: NodeJS.ProcessEnv;
  readonly #cache: KernelCache;
  readonly #facts: MachineFactsCache;
  #compiler: Promise<KernelCompiler> | undefined;
  readonly #flights = new Map<string, Promise<StoredResult>>();
  readonly #checks = new KernelChecks();
  #prebuilt: Prebuilt | undefined;
  /** Null if the file cannot be used. */
  #shipped: ShippedImages | null | undefined;

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

  async #shared(given: Build): Promise<BuildResult> {
    const startMs = performance.now();
    const spec = this.checked(given);
    const { image: stored, ...how } = await this.#flight(spec, await this.keyOf(spec));
    const ms = performance.now() - startMs;
    if (this.#target.backend === 'cpu') return { image: stored, symbolOf: cpuSymbol, ...how, ms };
    const { image, symbols } = splitSymbols(stored);
    return { image, symbolOf: (path) => symbols[path] ?? plainName(path), ...how, ms };
  }

  /** Concurrent builds of the same source share one build. */
  #flight(spec: Build, key: string): Promise<StoredResult> {
    let flight = this.#flights.get(key);
    if (!flight) {
      flight = this.#build(spec, key).finally(() => this.#flights.delete(key));
      this.#flights.set(key, flight);
    }
    return flight;
  }

  /** What a folder of images keeps of a build, and its key there. Rejects like `build`. */
  async stored(given: Build): Promise<{ readonly key: string; readonly content: Uint8Array; readonly compiler: string }> {
    const spec = this.checked(given);
    const key = await this.keyOf(spec);
    const { image, compiler } = await this.#flight(spec, key);
    if (this.#target.backend === 'cuda') return { key, content: image, compiler };
    try {
      return { key, content: readImage(Buffer.from(image).toString(), {}).content, compiler };
    } catch (error) {
      throw outside(`${titleOf(given)} was not built`, error);
    }
  }

  /**
   * Checks the parameters of a kernel whose module is built without them. `kernel` is a result of `checked`. Rejects like `build`; the
   * errors are those that a build of this kernel alone would give.
   */
  async checkParameters(kernel: BuildSpec): Promise<void> {
    // Not every compiler can build an instance of a template.
    if (kernel.parameterChecks === undefined && !isInstance(kernel)) return;
    try {
      const what = `checked-${await this.keyOf(kernel)}`;
      if (await this.#fromPrebuilt(kernel, (images, key) => images.hasChecked(key) || undefined)) return;
      let compiler: KernelCompiler;
      try {
        compiler = await this.#openCompiler();
      } catch (error) {
        // As for images: the cache serves a machine without a compiler.
        if (await this.#cache.findAny(what)) return;
        throw await this.#withoutCompiler(kernel, error);
      }
      const isKept = isSelfContained(kernel, compiler.hasFolders);
      if (isKept && (await this.#facts.recall(what, compiler.identity))) return;
      const { parameterChecks: _checks, path: _path, ...module } = kernel;
      await this.#checks.check(compiler, await this.keyOf(module), kernel);
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
    const faults: string[] = [];
    const prebuilt = await this.#fromPrebuilt(build, (images, of, target) => {
      const found = images.find(of, target);
      if (typeof found !== 'string') return found;
      faults.push(found);
      warnOnce(found, `An image that was built ahead of time is not used: ${found}. Build it again: npx millrace build.`);
      return undefined;
    });
    if (prebuilt) {
      const { content, path, compiler: label } = prebuilt;
      const image = this.#prebuilt?.isLoadable === true ? this.#image(prebuilt) : await this.#kept(basename(path), content);
      return { image, compiler: label, fromCache: true };
    }
    const shipped = build.operation === undefined ? undefined : await this.#fromPackage(build);
    if (shipped) return shipped;
    let compiler: KernelCompiler;
    try {
      compiler = await this.#openCompiler();
    } catch (error) {
      // A cache filled elsewhere, such as in a container image, serves a machine without a compiler.
      const found = await this.#cache.findAny(key);
      if (!found) throw await this.#withoutCompiler(build, error, faults);
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

  /** What the folder of images has for the best target that this device runs. Undefined where there is no folder, or nothing in it. */
  async #fromPrebuilt<T>(
    build: Build,
    find: (images: PrebuiltImages, key: string, target: ImageTarget) => T | undefined,
  ): Promise<T | undefined> {
    const target = this.#target;
    if (target.images === undefined || this.#findsRaces) return undefined;
    const { images, targets } = (this.#prebuilt ??= prebuiltFor(target, target.images));
    if (!images.isOf(await packageIdentity(this.#facts))) {
      const message = `The images in ${images.folder} were built by another version of this package, so they are not used.`;
      warnOnce(images.folder, `${message} Build them again: npx millrace build.`);
      return undefined;
    }
    for (const one of targets) {
      const found = find(images, await this.keyOf(build, one.name), one);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The image of an operation's kernel that came with the package, for the best target that has one. */
  async #fromPackage(build: Build): Promise<StoredResult | undefined> {
    const target = this.#target;
    if (target.backend === 'cuda' || target.shipped === undefined || this.#findsRaces || this.#shipped === null) return undefined;
    try {
      this.#shipped ??= new ShippedImages(target.shipped);
      if (!this.#shipped.isOf(await packageIdentity(this.#facts))) return undefined;
      for (const one of this.#shipped.targets) {
        const name = fileName(await this.keyOf(build, one.name), one);
        const content = this.#shipped.find(name);
        if (content === undefined) continue;
        // The loader takes a file. The cache's is the same image: its name tells all that goes into it.
        const image = this.#image((await this.#cache.find(name)) ?? (await this.#cache.add(name, content)));
        return { image, compiler: this.#shipped.compiler, fromCache: true };
      }
    } catch (error) {
      // A compiler serves, too, and without one this is the reason.
      this.#shipped = null;
      warnOnce(target.shipped, `The images of operations that came with the package are not used: ${reasonOf(error)}.`);
    }
    return undefined;
  }

  /** The error of a build for which there is no compiler, with why its images do not serve. */
  async #withoutCompiler(build: Build, cause: unknown, faults: readonly string[] = []): Promise<unknown> {
    if (!(cause instanceof UnavailableError)) return cause;
    const { operation } = build;
    if (this.#prebuilt === undefined) return operation === undefined ? cause : withoutImage(build.name, operation, cause);
    const { images, targets } = this.#prebuilt;
    const isOwn = images.isOf(await packageIdentity(this.#facts));
    const why = isOwn ? faults.join('; ') || images.whyNone(build.name, targets) : 'they were built by another version of this package';
    const target = this.#target;
    const [device, best] =
      target.backend === 'cpu' ? ['processor', targetOfProcessor(processorFlags())] : ['GPU', `sm_${target.computeCapability.join('')}`];
    const reason = cause.message.split('\n', 1)[0]!.replace(/\.$/, '');
    const names = new Set([...images.targetNames, ...(targets.length === 0 ? [best] : [])]);
    // The command replaces all images of the folder.
    const command = `npx millrace build <this and all other modules with kernels> --out ${images.folder} --for ${[...names].join()}`;
    const text =
      `${titleOf(build)}${operation === undefined ? '' : ` of ${operation}`} has no image for this ${device} in ${images.folder}${why === '' ? '' : `: ${why}`}, ` +
      `and no compiler builds it (${reason}). ` +
      (operation === undefined
        ? `Write its image: ${command}.`
        : `Call ${build.name} with operands of these types and this layout in a module, and write the image: ${command}.`);
    return new CompileError('ERR_MILLRACE_COMPILE', `K708: ${text}`, text, [], { cause });
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
    if (this.#target.backend === 'cpu')
      return CpuCompiler.open(this.#env, this.#facts, this.#findsRaces, this.#target.ahead, this.#target.compilerTimeoutMs);
    const { nvrtc, computeCapability, ahead, cudaMajor } = this.#target;
    const architecture = ahead?.name ?? `sm_${computeCapability.join('')}`;
    return nvrtc ? new NvrtcCompiler(nvrtc, architecture, this.#env) : NvccCompiler.open(architecture, this.#env, cudaMajor);
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

  get #machine(): string | ComputeCapability {
    const target = this.#target;
    return target.ahead?.name ?? (target.backend === 'cpu' ? cpuIdentity() : target.computeCapability);
  }

  /** A digest of all inputs of the image except the compiler. Names and line mappings are not inputs. */
  async keyOf(build: Build, machine: string | ComputeCapability = this.#machine): Promise<string> {
    const { backend } = this.#target;
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

const BUILD_MODULE = 'npx millrace build <the module> --out <the folder> --for <targets>';

/** The program has no module that defines the kernel, so the remedy is a call. */
function withoutImage(name: string, operation: string, cause: UnavailableError): UnavailableError {
  const message = `${cause.message.split('\n', 1)[0]!} The package has no image of ${name} for these types (${operation}) and this layout of the operands.`;
  const help = [...cause.help, `Or build it ahead of time: call ${name} so in a module, and write the images of that: ${BUILD_MODULE}.`];
  return new UnavailableError(cause.code, message, help, { cause });
}

function isWritten(build: Build): build is BuildSpec {
  return 'source' in build;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

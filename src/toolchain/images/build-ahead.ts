// Builds images ahead of time, and writes the folder that prebuilt-images.ts reads.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Build, BuildSpec } from '../../core/channel/build-spec.js';
import { outside } from '../system/environment-errors.js';
import { type Definition, isModule } from '../../core/kernels/definitions.js';
import type { Kernel } from '../../core/kernels/kernel.js';
import { packageIdentity } from '../base/package-and-cpu-identity.js';
import type { Nvrtc } from '../compilers/nvrtc-or-nvcc.js';
import { checkTargets } from '../compilers/target-checks.js';
import { KernelBuilder } from './builder.js';
import { asImageFile } from './cache.js';
import type { ImageTarget } from '../base/image-targets.js';
import { fileName, FORMAT, isManifest, MANIFEST, type Manifest, type ManifestImage } from './prebuilt-images.js';
import { makeFolder } from './private-cache-folder.js';

/** What became of one kernel or module for one target. */
export interface AheadResult {
  readonly kernel: string;
  readonly target: string;
  /** Undefined where there is an image. */
  readonly error?: unknown;
  /** PTX that a driver could not link with the device runtime is not written. */
  readonly isLeftOut?: boolean;
  readonly ms?: number;
}

export interface AheadOptions {
  readonly definitions: readonly Definition[];
  readonly targets: readonly ImageTarget[];
  readonly folder: string;
  readonly nvrtc?: Nvrtc | undefined;
  readonly env?: NodeJS.ProcessEnv;
  /** How long one run of the compiler of the CPU device may take. Default: COMPILER_TIMEOUT_MS. */
  readonly compilerTimeoutMs?: number;
  /** Called after each image. */
  readonly done?: (result: AheadResult) => void;
}

interface Made {
  readonly images: (ManifestImage & { readonly content: Uint8Array })[];
  readonly checked: Set<string>;
}

/**
 * Builds every kernel and module for every target, then replaces the folder's images. A kernel that does not build for a target is reported to
 * `done` and has no image. Without any image, the folder stays as it is. Rejects before it builds like `checkTargets`, and with
 * UnavailableError if the folder cannot be written.
 */
export async function buildAhead(options: AheadOptions): Promise<Manifest | undefined> {
  const { definitions, targets, folder, env = process.env } = options;
  const kernels = definitions.filter((one): one is Kernel => !isModule(one));
  const modules = new Set(definitions.filter(isModule));
  const works: readonly Pick<Kernel, 'build' | 'module'>[] = [
    ...kernels.filter(({ module }) => module === undefined),
    ...Array.from(modules, (module) => ({ build: module.closed(), module })),
  ];
  const made: Made = { images: [], checked: new Set() };
  await checkTargets(targets, options.nvrtc, env);
  for (const target of targets) {
    const builder = builderFor(target, options, env);
    const failed = new Set<Kernel['module']>();
    await Promise.all(
      works.map(async ({ build, module }) => {
        if (!(await buildOne(builder, build, target, options, made))) failed.add(module);
      }),
    );
    for (const { build, module } of kernels) {
      // A module that has failed was reported, with the names of its kernels.
      if (module !== undefined && !failed.has(module)) await checkOne(builder, build as BuildSpec, target, options, made);
    }
  }
  // The images that are there stay.
  if (made.images.length === 0) return undefined;
  // Kernels that differ only in the names of local variables have one image.
  const contents = new Map(made.images.map(({ file, content }) => [file, content]));
  const manifest: Manifest = {
    format: FORMAT,
    package: await packageIdentity(),
    targets: targets.map(({ name }) => name),
    images: made.images
      .map(({ content: _content, ...image }) => image)
      .toSorted((a, b) => (`${a.target} ${a.kernel}` < `${b.target} ${b.kernel}` ? -1 : 1)),
    checked: [...made.checked].toSorted(),
  };
  try {
    makeFolder(folder, 0o755);
    for (const [file, content] of contents) replace(join(folder, file), asImageFile(content));
    const old = imagesIn(folder);
    replace(join(folder, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    for (const { file } of old) if (!contents.has(file)) rmSync(join(folder, basename(file)), { force: true });
  } catch (error) {
    throw outside(`The images cannot be written to ${folder}`, error);
  }
  return manifest;
}

function builderFor(target: ImageTarget, { nvrtc, compilerTimeoutMs }: AheadOptions, env: NodeJS.ProcessEnv): KernelBuilder {
  if (target.backend === 'cpu') return new KernelBuilder({ backend: 'cpu', ahead: target, compilerTimeoutMs }, env);
  const { capability: computeCapability } = target;
  return new KernelBuilder({ backend: 'cuda', computeCapability, ahead: target, nvrtc }, env);
}

/** Whether it has not failed. */
async function buildOne(
  builder: KernelBuilder,
  build: Build,
  target: ImageTarget,
  { done }: AheadOptions,
  { images }: Made,
): Promise<boolean> {
  const [kernel, start] = [build.name, performance.now()];
  if (target.backend === 'cuda' && target.isPtx && build.isLaunching) {
    done?.({ kernel, target: target.name, isLeftOut: true });
    return true;
  }
  try {
    const { key, content, compiler } = await builder.stored(build);
    images.push({ file: fileName(key, target), kernel, target: target.name, compiler, content });
    done?.({ kernel, target: target.name, ms: performance.now() - start });
    return true;
  } catch (error) {
    done?.({ kernel, target: target.name, error });
    return false;
  }
}

/** Compares the parameters of a kernel of a module with its source. */
async function checkOne(
  builder: KernelBuilder,
  build: BuildSpec,
  target: ImageTarget,
  { done }: AheadOptions,
  { checked }: Made,
): Promise<void> {
  try {
    const able = builder.checked(build) as BuildSpec;
    await builder.checkParameters(able);
    checked.add(await builder.keyOf(able));
  } catch (error) {
    done?.({ kernel: build.name, target: target.name, error });
  }
}

/** A reader finds the old file or the new one. */
function replace(path: string, content: string | Uint8Array): void {
  // An earlier process may have left it, with another mode.
  rmSync(`${path}.new`, { force: true });
  writeFileSync(`${path}.new`, content, { mode: 0o644 });
  renameSync(`${path}.new`, path);
}

/** The images that the folder has. */
function imagesIn(folder: string): readonly ManifestImage[] {
  try {
    const read: unknown = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8'));
    return isManifest(read) ? read.images : [];
  } catch {
    return [];
  }
}

// Images built ahead of time: a folder that `millrace build` wrote, which is only read. Its files have the names and the form of the cache's
// files, with the target in place of the machine; the manifest tells the targets.
import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { show } from '../../core/base/arguments.js';
import { UnavailableError } from '../../core/base/errors.js';
import { HEADER_DIRECTORY } from '../base/kernel-headers.js';
import { processorFlags } from '../base/package-and-cpu-identity.js';
import { reasonOf } from '../system/environment-errors.js';
import { isOpenToOthers, isTrustedOwner, modeOf, ownersOf, type Danger, type Trust, whoCouldSwap } from '../system/private-folder.js';
import { type CachedFile, readImage } from './cache.js';
import { readOwnFile } from './private-cache-folder.js';
import { type ComputeCapability, type ImageTarget, targetOf, targetsOfGpu, targetsOfProcessor } from '../base/image-targets.js';

export const MANIFEST = 'manifest.json';

/** Another number where a reader of this version would misunderstand the folder. */
export const FORMAT = 1;
/** A larger manifest is not read: it has 200 bytes for an image. */
const MAX_MANIFEST_BYTES = 64 << 20;

export interface Manifest {
  readonly format: number;
  /** The identity of the package whose emitters wrote the sources. */
  readonly package: string;
  readonly targets: readonly string[];
  readonly images: readonly ManifestImage[];
  /** Keys of kernels of modules whose parameters the compiler has compared. */
  readonly checked: readonly string[];
}

export interface ManifestImage {
  readonly file: string;
  readonly kernel: string;
  readonly target: string;
  readonly compiler: string;
}

export function fileName(key: string, target: ImageTarget): string {
  const ending = target.backend === 'cpu' ? 'so' : target.isPtx ? 'ptx' : 'cubin';
  return `${key}.${ending}`;
}

export class PrebuiltImages {
  readonly folder: string;
  readonly #manifest: Manifest;
  readonly #trusted: Trust;
  readonly #targets: readonly ImageTarget[];
  /** By the images' files. */
  readonly #compilers: ReadonlyMap<string, string>;
  readonly #checked: ReadonlySet<string>;

  /** Throws UnavailableError for a folder without a manifest, and for one where other users may put code. */
  constructor(folder: string) {
    this.#trusted = ownersOf(HEADER_DIRECTORY);
    this.folder = usable(folder, this.#trusted);
    this.#manifest = readManifest(this.folder, folder, this.#trusted);
    const { targets, images, checked } = this.#manifest;
    this.#targets = targets.flatMap((name) => targetOf(name) ?? []);
    this.#compilers = new Map(images.map(({ file, compiler }) => [file, compiler]));
    this.#checked = new Set(checked);
  }

  get count(): number {
    return this.#compilers.size;
  }

  get targetNames(): readonly string[] {
    return this.#manifest.targets;
  }

  /** Whether this package's emitters wrote the sources: otherwise no image of theirs is found. */
  isOf(identity: string): boolean {
    return this.#manifest.package === identity;
  }

  /** The targets whose images the device runs, the best first. */
  targetsFor(own: 'processor' | ComputeCapability): readonly ImageTarget[] {
    return own === 'processor' ? targetsOfProcessor(this.#targets, processorFlags()) : targetsOfGpu(this.#targets, own);
  }

  /** The image, or why its file is not used; undefined where there is none. */
  find(key: string, target: ImageTarget): (CachedFile & { readonly compiler: string }) | string | undefined {
    return this.#read(fileName(key, target));
  }

  /** Reads the images for these targets: why those that are not used are not. */
  faultsFor(targets: readonly ImageTarget[]): readonly string[] {
    const names = new Set(targets.map(({ name }) => name));
    const files = new Set(this.#manifest.images.flatMap(({ file, target }) => (names.has(target) ? [file] : [])));
    return Array.from(files, (file) => this.#read(file)).filter((found) => typeof found === 'string');
  }

  #read(file: string): (CachedFile & { readonly compiler: string }) | string | undefined {
    const path = join(this.folder, file);
    const compiler = this.#compilers.get(file);
    try {
      return { ...readImage(path, this.#trusted), compiler: compiler ?? 'cache' };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return compiler === undefined ? undefined : `${path} is missing`;
      return code === 'ELOOP' ? `${path} is a symbolic link` : reasonOf(error);
    }
  }

  /** What it has of a kernel, of which it has no image for these targets. Empty if nothing. */
  whyNone(kernel: string, targets: readonly ImageTarget[]): string {
    const its = new Set(this.#manifest.images.filter((image) => image.kernel === kernel).map(({ target }) => target));
    if (targets.some(({ name }) => its.has(name))) return 'its image there was built from another source or with other options';
    return its.size === 0 ? '' : `its images there are for ${[...its].join(', ')}`;
  }

  hasChecked(key: string): boolean {
    return this.#checked.has(key);
  }
}

/** The folder without symbolic links. */
function usable(folder: string, trusted: Trust): string {
  let path: string;
  let danger: Danger | undefined;
  try {
    path = realpathSync(folder);
    const facts = lstatSync(path);
    if (!facts.isDirectory()) throw new Error('it is not a folder');
    danger = whoCouldSwap(path, trusted) ?? whoCouldWrite(path, facts, trusted);
  } catch (cause) {
    throw unavailable(`The folder of images (${show(folder)}) cannot be read: ${reasonOf(cause)}.`, [HOW], cause);
  }
  if (danger === undefined) return path;
  const { path: place, reason } = danger;
  throw unavailable(`The images in ${path} are not loaded, because other users could put code there: ${reason}.`, [
    place === path
      ? `Let only their owner write to them (chmod -R go-w ${path}), and let this user or root own them.`
      : `Let only its owner write to ${place} (chmod go-w ${place}), and let this user or root own it. Or move the images elsewhere.`,
  ]);
}

function whoCouldWrite(
  path: string,
  facts: { readonly uid: number; readonly gid: number; readonly mode: number },
  trusted: Trust,
): Danger | undefined {
  if (!isTrustedOwner(facts.uid, trusted)) return { path, reason: `${path} belongs to another user (uid ${facts.uid})` };
  return isOpenToOthers(facts, trusted) ? { path, reason: `other users may write to ${path} (mode ${modeOf(facts)})` } : undefined;
}

function readManifest(path: string, given: string, trusted: Trust): Manifest {
  const file = join(path, MANIFEST);
  let read: unknown;
  try {
    read = JSON.parse(readOwnFile(file, MAX_MANIFEST_BYTES, trusted).toString());
  } catch (cause) {
    throw unavailable(`The folder (${show(given)}) has no images: its ${MANIFEST} cannot be read: ${reasonOf(cause)}.`, [HOW], cause);
  }
  if (isManifest(read)) return read;
  const format = (read as Partial<Manifest> | null)?.format;
  const found = typeof format === 'number' && format !== FORMAT ? `has format ${format}` : 'has not the form of such a file';
  throw unavailable(`The images in ${path} are not used: ${file} ${found} (this version of the package reads format ${FORMAT}).`, [HOW]);
}

/** Whether it is what `millrace build` of this version writes. */
export function isManifest(read: unknown): read is Manifest {
  const isText = (value: unknown): boolean => typeof value === 'string';
  const isImage = (image: unknown): boolean => {
    const { file, kernel, target, compiler } = (image ?? {}) as Partial<ManifestImage>;
    return [file, kernel, target, compiler].every(isText);
  };
  const areAll = (list: unknown, is: (one: unknown) => boolean): boolean => Array.isArray(list) && list.every((one) => is(one));
  const { format, package: identity, targets, images, checked } = (read ?? {}) as Partial<Manifest>;
  return format === FORMAT && isText(identity) && areAll(targets, isText) && areAll(images, isImage) && areAll(checked, isText);
}

const HOW = 'Write them with this version of the package: npx millrace build <module> --out <folder> --for <targets>.';

function unavailable(message: string, help: readonly string[], cause?: unknown): UnavailableError {
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, help, cause === undefined ? {} : { cause });
}

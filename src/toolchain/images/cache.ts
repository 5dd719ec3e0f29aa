// Compiled images on disk. The file name is a digest of the inputs. A file is written under a temporary name, then renamed, and ends with a
// digest of its content: a reader finds a complete file or none, even if other processes write, crash or fill the disk.
//
// The folder is the first that can be used of those that `cachePlaces` gives. When none can (read-only, mounted noexec, owned by or open to
// other users), the thread's temporary folder takes its place, and the next process builds the kernels again.
//
// Files are opened by synchronous calls, here and in the whole toolchain. When a worker is terminated, Node closes what `openSync` has opened
// in it. It drops the result of a `promises.open` in flight, and that descriptor would stay open until the process ends (decision 0030).
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, realpathSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { UnavailableError } from '../../core/base/errors.js';
import { cacheLimit } from '../system/cache-limit.js';
import { isOfSystem, outside, reasonOf } from '../system/environment-errors.js';
import { ownUser, type Trust } from '../system/private-folder.js';
import { temporaryFolder } from '../system/temporary-folder.js';
import { warnOnce } from '../system/warn-once.js';
import { type Folder, isNoExec, isOurs, isStillPrivate, openFolder, readOwnFile } from './private-cache-folder.js';
import { Date } from '../../core/base/timers.js';

export interface CachedFile {
  readonly path: string;
  readonly content: Buffer;
}

const MAGIC: Buffer = Buffer.from('MRKERNEL');
const DIGEST_BYTES = 32;
const FOOTER_BYTES: number = DIGEST_BYTES + MAGIC.length;
/** A larger file is not read. */
const MAX_FILE_BYTES = 256 << 20;
/** The folder is looked at when a process has added this part of the limit. */
const LOOK_AFTER: number = 1 / 16;
/** Younger files are kept: another process may be about to load them, or may still be writing them. */
const MIN_AGE_MS = 24 * 3600_000;

export class KernelCache {
  /** Where images may be stored: nowhere with `MILLRACE_CACHE=off`. */
  readonly #places: readonly string[];
  #folder: Folder | undefined;
  readonly #limit: number;
  /** Bytes since the last look at the whole folder. */
  #added = Number.POSITIVE_INFINITY;

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#limit = cacheLimit(env);
    this.#places = cachePlaces(env);
  }

  /** Whether the next process can find what is added. */
  get isKept(): boolean {
    return this.#places.length > 0;
  }

  /** Whether a cache folder exists. */
  isThere(): boolean {
    return this.#places.some((place) => existsSync(place));
  }

  /** The file of this name, if it exists and is complete. A damaged file is removed. */
  async find(name: string): Promise<CachedFile | undefined> {
    const directory = this.#directory();
    return directory === undefined ? undefined : readWhole(join(directory, name));
  }

  /** Any complete file whose name begins with the prefix, for machines without the compiler that completes the name. */
  async findAny(prefix: string): Promise<CachedFile | undefined> {
    const directory = this.#directory();
    const names = directory === undefined ? [] : await readdir(directory).catch(() => []);
    for (const name of names) {
      const found = name.startsWith(prefix) && !name.endsWith('.new') ? await this.find(name) : undefined;
      if (found) return found;
    }
    return undefined;
  }

  /** Rejects with an UnavailableError that names both folders and the reasons when neither can be written to. */
  async add(name: string, content: Uint8Array): Promise<CachedFile> {
    if (!this.isKept) return this.addUnshared(name, content);
    const folder = this.#open();
    let reason = 'reason' in folder ? folder.reason : '';
    if ('path' in folder) {
      try {
        const file = await write(folder.path, name, content);
        await this.#keepLimit(folder.path, content.length);
        return file;
      } catch (error) {
        // The disk has filled up or become read-only since the folder was opened.
        reason = `${folder.path} (${reasonOf(error)})`;
      }
    }
    try {
      return await write(this.#loadable(), name, content);
    } catch (error) {
      const places = `${reason}; ${error instanceof UnavailableError ? error.message.replace(/^K707: /, '') : reasonOf(error)}`;
      throw outside('No folder can store the built kernels', places, [
        'Set MILLRACE_CACHE_DIR to a folder that only this user can write to, on a file system that is not mounted noexec.',
      ]);
    }
  }

  /** Writes a file that `find` does not return: two images of one name may be loaded at once, and the loader identifies them by path. */
  async addUnshared(name: string, content: Uint8Array): Promise<CachedFile> {
    const directory = this.#loadable();
    try {
      return await write(directory, `${randomBytes(8).toString('hex')}-${name}`, content);
    } catch (error) {
      throw outside('A built kernel cannot be written', error);
    }
  }

  /** The folder to search: the cache folder, or the temporary folder in its place. Undefined when there is none. */
  #directory(): string | undefined {
    if (!this.isKept) return undefined;
    const folder = this.#open();
    try {
      return 'path' in folder ? folder.path : this.#loadable();
    } catch {
      // `add` reports the reason.
      return undefined;
    }
  }

  /** The thread's temporary folder; one inside the cache folder where the loader could not map an image from TMPDIR. */
  #loadable(): string {
    if (!isTemporaryNoExec()) return temporaryFolder();
    const folder: Folder | undefined = this.isKept ? this.#open() : undefined;
    if (folder !== undefined && 'path' in folder) return temporaryFolder(folder.path);
    const help = ['Set TMPDIR, or MILLRACE_CACHE_DIR without MILLRACE_CACHE=off, to a folder on a file system that is not mounted noexec.'];
    throw outside('No built kernel can be loaded from the temporary folder', `${tmpdir()} is mounted noexec`, help);
  }

  /** Opens the folder again when it failed for a passing reason, and when it is no longer private. */
  #open(): Folder {
    let folder = this.#folder;
    if (folder === undefined || ('path' in folder ? !isStillPrivate(folder.path) : folder.isPassing)) {
      folder = this.#folder = openFirst(this.#places);
    }
    return folder;
  }

  async #keepLimit(directory: string, bytes: number): Promise<void> {
    this.#added += bytes;
    if (this.#added <= this.#limit * LOOK_AFTER) return;
    this.#added = 0;
    await prune(directory, this.#limit).catch(() => {});
  }
}

/**
 * The folders for built kernels, by preference: `MILLRACE_CACHE_DIR` alone; else that of the user, and a private one in the temporary folder
 * for a user without a home, or with one that cannot be written to. None with `MILLRACE_CACHE=off`.
 */
export function cachePlaces(env: NodeJS.ProcessEnv): readonly string[] {
  if (env['MILLRACE_CACHE'] === 'off') return [];
  const chosen = env['MILLRACE_CACHE_DIR'];
  if (chosen) return [resolve(chosen)];
  // XDG's rule: a relative path does not count.
  const caches = [env['XDG_CACHE_HOME'] ?? '', join(home(env), '.cache')].find(isAbsolute);
  const users = caches === undefined ? [] : [join(caches, 'millrace', 'kernels')];
  return [...users, join(resolve(tmpdir()), `millrace-kernels-${ownUser()}`)];
}

/** Empty without HOME for a user id that the list of users does not have. */
function home(env: NodeJS.ProcessEnv): string {
  try {
    return env['HOME'] ?? homedir();
  } catch {
    return '';
  }
}

function isTemporaryNoExec(): boolean {
  try {
    return isNoExec(realpathSync(tmpdir()));
  } catch {
    // `temporaryFolder` reports what is wrong with it.
    return false;
  }
}

/** The first folder that can be used, or why none can. */
function openFirst(places: readonly string[]): Folder {
  const reasons: string[] = [];
  for (const place of places) {
    const folder = openFolder(place);
    if ('path' in folder) return folder;
    const { reason, isUnsafe, isPassing } = folder;
    reasons.push(`${place} (${reason})`);
    if (isUnsafe) warnOfOpen(place, reason);
    // The next place would then be used for good.
    if (isPassing) return { ...folder, reason: reasons.join('; ') };
  }
  return { reason: reasons.join('; '), isUnsafe: false, isPassing: false };
}

/** Without this warning nothing would show why each process builds its kernels again. */
function warnOfOpen(wanted: string, reason: string): void {
  const message =
    `Built kernels are not kept in ${wanted}, because other users could put code there: ${reason}. ` +
    'Set MILLRACE_CACHE_DIR to a folder that only this user can write to.';
  warnOnce(wanted, message);
}

/** A complete file of a folder that is only read. Throws an error that says why for one that is absent, may not be trusted, or is damaged. */
export function readImage(path: string, trusted: Trust): CachedFile {
  const bytes = readOwnFile(path, MAX_FILE_BYTES, trusted);
  const content = withoutFooter(bytes);
  if (content === undefined) throw new Error(`${path} is damaged or cut off: its ${bytes.length} bytes do not end with their digest`);
  return { path, content };
}

/** The content as a file has it, for `readImage`. */
export function asImageFile(content: Uint8Array): Buffer {
  const body = Buffer.from(content);
  return Buffer.concat([body, digest(body), MAGIC]);
}

function readWhole(path: string): CachedFile | undefined {
  let content: Buffer | undefined;
  try {
    content = withoutFooter(readOwnFile(path, MAX_FILE_BYTES));
  } catch (error) {
    // ELOOP is a symbolic link and ENXIO a socket: they are removed below, as other users' files are. No file can be read after any other failed call.
    if (isOfSystem(error) && !['ELOOP', 'ENXIO'].includes(error.code ?? '')) return undefined;
  }
  try {
    const now = Date.now() / 1000;
    if (content) utimesSync(path, now, now);
    else rmSync(path, { recursive: true, force: true });
  } catch {
    // Without permission to touch or remove the file, the result is the same.
  }
  return content && { path, content };
}

async function write(directory: string, name: string, content: Uint8Array): Promise<CachedFile> {
  const path = join(directory, name);
  const unfinished = join(directory, `${randomBytes(8).toString('hex')}.new`);
  try {
    writeFileSync(unfinished, asImageFile(content), { mode: 0o700, flag: 'wx' });
    renameSync(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw error;
  }
  return { path, content: Buffer.from(content) };
}

function digest(content: Uint8Array): Buffer {
  return createHash('sha256').update(content).digest();
}

function withoutFooter(bytes: Buffer): Buffer | undefined {
  const length = bytes.length - FOOTER_BYTES;
  if (length < 0 || !bytes.subarray(length + DIGEST_BYTES).equals(MAGIC)) return undefined;
  const content = bytes.subarray(0, length);
  return digest(content).equals(bytes.subarray(length, length + DIGEST_BYTES)) ? content : undefined;
}

/** A file of the cache. Each use of it sets its time. */
export interface StoredFile {
  readonly path: string;
  readonly bytes: number;
  readonly usedMs: number;
}

/** This library's files in a folder, the least recently used first. */
export async function filesIn(directory: string): Promise<StoredFile[]> {
  const names = (await readdir(directory)).filter(isOurs);
  const files = await Promise.all(
    names.map(async (name) => {
      const path = join(directory, name);
      // Another process may remove it.
      const facts = await stat(path).catch(() => undefined);
      return facts?.isFile() === true ? { path, bytes: facts.size, usedMs: facts.mtimeMs } : { path, bytes: 0, usedMs: Date.now() };
    }),
  );
  return files.toSorted((a, b) => a.usedMs - b.usedMs);
}

/** Removes the least recently used files above the limit. */
async function prune(directory: string, limit: number): Promise<void> {
  const files = await filesIn(directory);
  const old = files.filter((file) => Date.now() - file.usedMs > MIN_AGE_MS);
  let total = files.reduce((sum, file) => sum + file.bytes, 0);
  for (const { path, bytes, usedMs } of old) {
    // A temporary name this old was left by a process that crashed.
    if (total <= limit && !path.endsWith('.new')) continue;
    const facts = await stat(path).catch(() => undefined);
    // Another process has removed it, or uses it now.
    if (facts !== undefined && facts.mtimeMs !== usedMs) continue;
    await rm(path, { force: true });
    total -= bytes;
  }
}

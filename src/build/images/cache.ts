// Built kernels on disk. A file is named by what it was built from, written under another name and renamed, and ends
// with a digest of itself: a reader sees a whole, right file or none, whoever else writes, crashes or fills the disk.
//
// Images of the CPU device are loaded from here, so the directory has to belong to this user alone, or another user
// could put code into this process. Where no such directory can be had (read-only, mounted noexec, foreign), a
// temporary one of this process stands in, and nothing is remembered between runs.
import { createHash, randomBytes } from 'node:crypto';
import { accessSync, chmodSync, constants, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, utimesSync } from 'node:fs';
import { mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import envPaths from 'env-paths';

export interface CachedFile {
  readonly path: string;
  readonly content: Buffer;
}

const MAGIC: Buffer = Buffer.from('MRKERNEL');
const DIGEST_BYTES = 32;
const FOOTER_BYTES: number = DIGEST_BYTES + MAGIC.length;
/** Enough for some ten thousand kernels. Beyond it the least recently used half goes. */
const MAX_TOTAL_BYTES = 256 << 20;
/** Files this young are left alone: another process may be about to load them, or still be writing them. */
const MIN_AGE_MS = 24 * 3600_000;

export class KernelCache {
  /** Undefined: nothing is kept. */
  readonly #wanted: string | undefined;
  #directory: Promise<string> | undefined;
  #isPruned = false;

  /** `MILLRACE_CACHE=off` keeps nothing; `MILLRACE_CACHE_DIR` names another directory. */
  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#wanted =
      env['MILLRACE_CACHE'] === 'off'
        ? undefined
        : resolve(env['MILLRACE_CACHE_DIR'] || join(envPaths('millrace', { suffix: '' }).cache, 'kernels'));
  }

  /** Whether what is added is there for the next process. */
  get isKept(): boolean {
    return this.#wanted !== undefined;
  }

  /** Whether something may have been kept. */
  isThere(): boolean {
    return this.#wanted !== undefined && existsSync(this.#wanted);
  }

  /** The directory in use. */
  directory(): Promise<string> {
    return (this.#directory ??= this.#choose());
  }

  /** The file of this name, if it is there and whole. A damaged one is removed. */
  async find(name: string): Promise<CachedFile | undefined> {
    if (this.#wanted === undefined) return undefined;
    return readWhole(join(await this.directory(), name));
  }

  /** Any whole file whose name begins so: for machines that have no compiler to complete the name with. */
  async findAny(prefix: string): Promise<CachedFile | undefined> {
    if (this.#wanted === undefined) return undefined;
    const names = await readdir(await this.directory()).catch(() => []);
    for (const name of names) {
      const found = name.startsWith(prefix) && !name.endsWith('.new') ? await this.find(name) : undefined;
      if (found) return found;
    }
    return undefined;
  }

  async add(name: string, content: Uint8Array): Promise<CachedFile> {
    if (this.#wanted === undefined) return this.addUnshared(name, content);
    try {
      return await this.#write(name, content);
    } catch {
      // The disk filled up or turned read-only since the directory was chosen.
      this.#directory = temporaryDirectory();
      return await this.#write(name, content);
    }
  }

  /** A file that `find` will not find: two of one name may be loaded at once, and the loader goes by the path. */
  async addUnshared(name: string, content: Uint8Array): Promise<CachedFile> {
    return write(await temporaryDirectory(), `${randomBytes(8).toString('hex')}-${name}`, content);
  }

  async #write(name: string, content: Uint8Array): Promise<CachedFile> {
    const directory = await this.directory();
    const file = await write(directory, name, content);
    if (!this.#isPruned) {
      this.#isPruned = true;
      await prune(directory).catch(() => {});
    }
    return file;
  }

  async #choose(): Promise<string> {
    const own = this.#wanted === undefined ? undefined : usableDirectory(this.#wanted);
    return own ?? temporaryDirectory();
  }
}

/** At once: a small file takes far less than a way through other threads and back for each of its steps. */
function readWhole(path: string): CachedFile | undefined {
  let content: Buffer | undefined;
  try {
    content = withoutFooter(readFileSync(path));
  } catch {
    return undefined;
  }
  try {
    const now = new Date();
    if (content) utimesSync(path, now, now);
    else rmSync(path, { force: true });
  } catch {
    // Not ours to touch: it is there all the same.
  }
  return content && { path, content };
}

async function write(directory: string, name: string, content: Uint8Array): Promise<CachedFile> {
  const path = join(directory, name);
  const unfinished = join(directory, `${randomBytes(8).toString('hex')}.new`);
  const body = Buffer.from(content);
  try {
    await writeFile(unfinished, Buffer.concat([body, digest(body), MAGIC]), { mode: 0o700, flag: 'wx' });
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw error;
  }
  return { path, content: body };
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

/** Where the path leads, if that is ours, nobody else's to write, and code in it may run. */
function usableDirectory(path: string): string | undefined {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    // Resolved once: a link that somebody turns elsewhere later does no harm.
    const directory = realpathSync(path);
    const facts = statSync(directory);
    if (facts.uid !== process.getuid?.()) return undefined;
    if ((facts.mode & 0o077) !== 0) chmodSync(directory, 0o700);
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    return isNoExec(directory) ? undefined : directory;
  } catch {
    return undefined;
  }
}

/** From the longest mount point that contains the directory. */
function isNoExec(directory: string): boolean {
  let best = '';
  let options = '';
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [, , , , point = '', mountOptions = ''] = line.split(' ');
    const isInside = directory === point || directory.startsWith(point.endsWith('/') ? point : `${point}/`);
    if (point !== '' && isInside && point.length >= best.length) [best, options] = [point, mountOptions];
  }
  return options.split(',').includes('noexec');
}

let temporary: Promise<string> | undefined;

/** One for the thread, removed when it ends. A loaded image survives the removal of its file. */
function temporaryDirectory(): Promise<string> {
  return (temporary ??= mkdtemp(join(tmpdir(), 'millrace-')).then((directory) => {
    process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
    return directory;
  }));
}

async function prune(directory: string): Promise<void> {
  const names = await readdir(directory);
  const files = await Promise.all(
    names.map(async (name) => {
      const facts = await stat(join(directory, name)).catch(() => undefined);
      return { path: join(directory, name), bytes: facts?.size ?? 0, usedMs: facts?.mtimeMs ?? Date.now() };
    }),
  );
  const old = files.filter((file) => Date.now() - file.usedMs > MIN_AGE_MS).toSorted((a, b) => a.usedMs - b.usedMs);
  // A temporary name this old was left by a process that crashed.
  const abandoned = old.filter((file) => file.path.endsWith('.new'));
  let total = files.reduce((sum, file) => sum + file.bytes, 0);
  const unused = total > MAX_TOTAL_BYTES ? old : [];
  for (const file of new Set([...abandoned, ...unused])) {
    if (!file.path.endsWith('.new') && total <= MAX_TOTAL_BYTES / 2) break;
    await rm(file.path, { force: true });
    total -= file.bytes;
  }
}

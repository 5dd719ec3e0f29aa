// Digests of the two inputs that every compiled image has besides its source and its compiler: the files of this package, and the
// processor.
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { arch, cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stampOf, type MachineFacts } from './file-stamps.js';
import { HEADER_DIRECTORY, WRITTEN_HEADERS } from './kernel-headers.js';

/** Relative to the package's root, from src and from dist. */
export const SHIM_DIRECTORY: string = fileURLToPath(new URL('../../../native/cpu/shim', import.meta.url));
const OWN_DIRECTORIES: readonly string[] = [
  SHIM_DIRECTORY,
  HEADER_DIRECTORY,
  WRITTEN_HEADERS,
  ...['..', '../../cuda-cpp', '../../compiler', '../../core/channel', '../../core/elements'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  ),
];

/** A file next to `dist`'s folders that the build writes. */
const WRITTEN: string = fileURLToPath(new URL('../../package-identity', import.meta.url));

let ownIdentity: Promise<string> | undefined;

/**
 * Changes when the package's part in a compiled image changes: any file of the shim, any header of kernel sources, or any code that reads,
 * emits or rewrites sources. `facts` caches it while those files are unchanged. For an installed package, the build has stored it, since
 * installed files do not change and a stat of each would take longer than loading a cached image.
 */
export function packageIdentity(facts?: MachineFacts): Promise<string> {
  // Concurrent builds share one computation, and a failed computation is not cached.
  return (ownIdentity ??= ownIdentityBy(facts).catch((error: unknown) => {
    ownIdentity = undefined;
    throw error;
  }));
}

async function ownIdentityBy(facts?: MachineFacts): Promise<string> {
  return installedIdentity() ?? (await identityOf(OWN_DIRECTORIES, facts));
}

/**
 * The package has bundles and no modules, so a module that exists is one of a checkout, where the modules may have changed since the
 * build. Tests give other paths.
 */
export function installedIdentity(written: string = WRITTEN, module: string = fileURLToPath(import.meta.url)): string | undefined {
  if (existsSync(module)) return undefined;
  try {
    return readFileSync(written, 'utf8');
  } catch {
    return undefined;
  }
}

/** Changes when any file of the directories changes its name or content. */
export async function identityOf(directories: readonly string[], facts?: MachineFacts, nowMs?: number): Promise<string> {
  const files = directories.map((directory) => filesOf(directory));
  const stamp =
    facts &&
    stampOf(
      files.flatMap((names, at) => names.map((name) => `${directories[at]}/${name}`)),
      nowMs,
    );
  const known = stamp === undefined ? undefined : await facts!.recall('package', stamp);
  if (known !== undefined) return known;
  const hash = createHash('sha256');
  for (const [at, names] of files.entries()) {
    for (const name of names) {
      const content = readFileSync(join(directories[at]!, name));
      hash.update(`${name}\0${content.length}\0`).update(content);
    }
    hash.update('\0');
  }
  const identity = hash.digest('hex').slice(0, 16);
  if (stamp !== undefined) await facts!.remember('package', stamp, identity);
  return identity;
}

/** File names in sorted order, without source maps and declarations, which do not affect images. */
function filesOf(directory: string, under = ''): string[] {
  const names: string[] = [];
  for (const entry of readdirSync(join(directory, under), { withFileTypes: true })) {
    const name = `${under}${entry.name}`;
    if (entry.isDirectory()) names.push(...filesOf(directory, `${name}/`));
    else if (entry.isFile() && !/\.map$|\.d\.ts$/.test(name)) names.push(name);
  }
  return names.toSorted();
}

/** Enough for the first processor's entry: the kernel generates the file on demand, and all entries of a large machine take 10 ms. */
const CPUINFO_BYTES = 16 << 10;
let ownProcessor: string | undefined;

/** Identifies the processor for -march=native: machines with different processors may share a cache directory. */
export function cpuIdentity(): string {
  return (ownProcessor ??= identityOfCpu(readStart('/proc/cpuinfo') ?? cpus()[0]?.model ?? ''));
}

/** The features of the processor, as /proc/cpuinfo lists them. */
export function processorFlags(): ReadonlySet<string> {
  const [, flags = ''] = /^(?:flags|Features)\s*:(.*)$/m.exec(readStart('/proc/cpuinfo') ?? '') ?? [];
  return new Set(flags.trim().split(/\s+/));
}

/** Changes with the processor's model and its features, as the first entry of /proc/cpuinfo lists them. */
export function identityOfCpu(description: string): string {
  const [first = ''] = description.split('\n\n');
  const facts = first.split('\n').filter((line) => /^(?:vendor_id|cpu family|model|stepping|flags|Features)\b/.test(line));
  return createHash('sha256')
    .update(`${arch()}\n${facts.length > 0 ? facts.join('\n') : description}`)
    .digest('hex')
    .slice(0, 16);
}

function readStart(path: string): string | undefined {
  const bytes = Buffer.alloc(CPUINFO_BYTES);
  try {
    const file = openSync(path, 'r');
    try {
      return bytes.toString('latin1', 0, readSync(file, bytes));
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

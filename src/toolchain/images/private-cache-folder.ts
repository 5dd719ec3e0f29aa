// The folder of built kernels: creates it, makes it private, and reads its files safely.
//
// The CPU device loads images from it by path, after this code has read and checked them. The loaded file is the checked
// file, because this user owns the folder and its files, no other user can write to them, and no other user can replace the
// folder (system/private-folder.ts). A folder that others could write to is made private and emptied first.
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  rmSync,
  type Stats,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { isPassing, reasonOf } from '../system/environment-errors.js';
import { isOpenToOthers, isSticky, isTrustedOwner, modeOf, ownUser, type Trust, whoCouldSwap } from '../system/private-folder.js';

/** A folder, or the reason why it cannot be used. */
export type Folder =
  | { readonly path: string }
  | { readonly reason: string; readonly isUnsafe: boolean /** The folder may be usable a moment later. */; readonly isPassing: boolean };

const PRIVATE = 0o700;
/** Mode of a folder that is private and not emptied yet. A process that finds this mode empties the folder. */
const CLOSING = 0o1700;
/** Names of this library's files. Other files in the folder are left alone. */
const OURS = /\.(?:so|cubin|new)$|^(?:checked|compiler|package)-/;

export function isOurs(name: string): boolean {
  return OURS.test(name);
}

/** Opens without following a symbolic link and without waiting for a writer at the other end of a FIFO. */
const READING: number = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Opens the folder, creating it if it is absent. The result's path has no symbolic links. */
export function openFolder(wanted: string): Folder {
  try {
    // Checked before the folder is created: a process of root must not leave its folders in another user's home.
    const place = realpathSync(existingPart(wanted));
    const inTheWay = whoCouldSwap(join(place, 'folder'));
    if (inTheWay !== undefined && !existsSync(wanted)) return refused(inTheWay.reason);
    makeFolder(wanted);
    const entry = lstatSync(wanted);
    // In a folder such as /tmp, another user can point the name at any folder of this user.
    if (!isTrustedOwner(entry.uid)) return refused(`${wanted} belongs to another user (uid ${entry.uid})`);
    // Resolved once, so that a symbolic link that is changed later has no effect.
    const path = realpathSync(wanted);
    const who = whoCouldSwap(path);
    if (who !== undefined) return refused(who.reason);
    const foreign = foreignEntry(path);
    if (foreign !== undefined)
      return { reason: `${path} has other files (${foreign}): name a folder of its own`, isUnsafe: false, isPassing: false };
    const reason = closeToOthers(path);
    if (reason !== undefined) return refused(reason);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return isNoExec(path) ? { reason: `${path} is mounted noexec`, isUnsafe: false, isPassing: false } : { path };
  } catch (error) {
    return { reason: reasonOf(error), isUnsafe: false, isPassing: isPassing(error) };
  }
}

/** Why a folder that does not exist would not be used. Makes none. */
export function whyNotMade(wanted: string): string | undefined {
  const place = existingPart(wanted);
  try {
    accessSync(place, constants.W_OK | constants.X_OK);
    return whoCouldSwap(join(realpathSync(place), 'folder'))?.reason ?? (isNoExec(place) ? `${place} is mounted noexec` : undefined);
  } catch {
    return `this user cannot write to ${place}`;
  }
}

function refused(reason: string): Folder {
  return { reason, isUnsafe: true, isPassing: false };
}

/** Whether the folder is still private: another process may have changed its mode, or replaced it. */
export function isStillPrivate(path: string): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts !== undefined && facts.isDirectory() && facts.uid === ownUser() && (facts.mode & 0o7777) === PRIVATE;
}

/** The path, or its deepest parent that exists. */
export function existingPart(path: string): string {
  let part = path;
  while (!existsSync(part) && part !== dirname(part)) part = dirname(part);
  return part;
}

/** Creates the folder and its parents. Node's `recursive` never returns where no folder can be made, as in /proc. */
export function makeFolder(path: string, mode: number = PRIVATE): void {
  const absent: string[] = [];
  for (let part = path; !existsSync(part) && part !== dirname(part); part = dirname(part)) absent.push(part);
  for (const part of absent.toReversed()) {
    try {
      mkdirSync(part, { mode });
    } catch (error) {
      // Another process may have made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** A file of a folder that the library has never used, and whose mode would have to change: other programs may rely on the mode. */
function foreignEntry(path: string): string | undefined {
  if ((lstatSync(path).mode & 0o7777) === PRIVATE) return undefined;
  const names = readdirSync(path);
  return names.some(isOurs) ? undefined : names[0];
}

/** Makes the folder private. Returns the reason when that is impossible. */
function closeToOthers(path: string): string | undefined {
  const folder = openSync(path, READING | constants.O_DIRECTORY);
  try {
    const facts = fstatSync(folder);
    if (facts.uid !== ownUser()) return `${path} belongs to another user (uid ${facts.uid})`;
    const isOpen = isOpenToOthers(facts);
    if (isOpen && isSticky(facts)) return `${path} is open to all users (mode ${modeOf(facts)}); name a folder inside it`;
    if (isOpen) fchmodSync(folder, CLOSING);
    if (isOpen || isSticky(facts)) {
      for (const name of readdirSync(path)) if (isOurs(name)) rmSync(join(path, name), { recursive: true, force: true });
    }
    if ((facts.mode & 0o7777) !== PRIVATE) fchmodSync(folder, PRIVATE);
    return undefined;
  } finally {
    closeSync(folder);
  }
}

/** Empty in a root folder without /proc. */
function ownMounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return '';
  }
}

/**
 * Whether the file system of the directory is mounted noexec: the longest mount point that contains the directory decides, and of mounts on
 * the same point the last. `mounts`: the process's mount table, for tests.
 */
export function isNoExec(directory: string, mounts: string = ownMounts()): boolean {
  let best = '';
  let options = '';
  for (const line of mounts.split('\n')) {
    const [, , , , escaped = '', mountOptions = ''] = line.split(' ');
    // The kernel writes a space, tab, line feed and backslash as an octal number.
    const point = escaped.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCodePoint(Number.parseInt(digits, 8)));
    const isInside = directory === point || directory.startsWith(point.endsWith('/') ? point : `${point}/`);
    if (point !== '' && isInside && point.length >= best.length) [best, options] = [point, mountOptions];
  }
  return options.split(',').includes('noexec');
}

/**
 * Reads a regular file that this user owns (or, with `trusted`, root or one of those) and no other user can write to. Throws an error that says
 * why for any other file, and for more than `maxBytes`. All checks are made on the open descriptor, so the checked file is the file that is read.
 * The calls are synchronous, because a small file takes less time than the trip through Node's thread pool.
 */
export function readOwnFile(path: string, maxBytes: number, trusted?: Trust): Buffer {
  const file = openSync(path, READING);
  try {
    const facts = fstatSync(file);
    const reason =
      whyNotOwn(path, facts, trusted) ?? (facts.size > maxBytes ? `${path} has ${facts.size} bytes (at most ${maxBytes})` : undefined);
    if (reason !== undefined) throw new Error(reason);
    return readAll(file, facts.size);
  } finally {
    closeSync(file);
  }
}

function whyNotOwn(path: string, facts: Stats, trusted: Trust | undefined): string | undefined {
  if (!facts.isFile()) return `${path} is not a file`;
  const isOwn = trusted === undefined ? facts.uid === ownUser() : isTrustedOwner(facts.uid, trusted);
  if (!isOwn) return `${path} belongs to another user (uid ${facts.uid})`;
  return isOpenToOthers(facts, trusted)
    ? `other users may write to ${path} (mode ${modeOf(facts)}; chmod go-w takes that away)`
    : undefined;
}

/** The first `size` bytes, fewer when the file has shrunk. */
function readAll(file: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  let read = 0;
  while (read < size) {
    const more = readSync(file, bytes, read, size - read, read);
    if (more === 0) break;
    read += more;
  }
  return bytes.subarray(0, read);
}

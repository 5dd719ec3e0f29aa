// The folder of built kernels: chosen, closed to others, and read in a way that nobody else can decide.
//
// Images of the CPU device are loaded from it by their path, after they were read and checked. What is loaded is what was
// checked, because the folder and its files belong to this user, nobody else may write to them, and nobody else can put
// another folder in its place (system/private-folder.ts). A folder that was open to others is closed and emptied first.
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
import { isPassing, reasonOf } from '../system/outside.js';
import { isOpenToOthers, isSticky, modeOf, ownUser, whoCouldSwap } from '../system/private-folder.js';

/** A folder, or why it cannot be used. */
export type Folder =
  | { readonly path: string }
  | { readonly reason: string; readonly isUnsafe: boolean /** It may be usable a moment later. */; readonly isPassing: boolean };

const PRIVATE = 0o700;
/** Closed to others and not emptied yet: whoever finds it so empties it. */
const CLOSING = 0o1700;
/** What this library names its files; a folder that the user named may have others, which are left alone. */
const OURS = /\.(?:so|cubin|new)$|^(?:compiler|package)-/;
/** Without following a link, and without waiting for the other end of a pipe. */
const READING: number = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Where the path leads, made if it is absent. */
export function openFolder(wanted: string): Folder {
  try {
    // Looked at before anything is made: root must not leave folders of its own in a user's home.
    const place = realpathSync(existingPart(wanted));
    const inTheWay = whoCouldSwap(join(place, 'folder'));
    if (inTheWay !== undefined && !existsSync(wanted)) return refused(inTheWay);
    mkdirSync(wanted, { recursive: true, mode: PRIVATE });
    // Resolved once: a link that somebody turns elsewhere later does no harm.
    const path = realpathSync(wanted);
    const who = whoCouldSwap(path);
    if (who !== undefined) return refused(who);
    const reason = closeToOthers(path);
    if (reason !== undefined) return refused(reason);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return isNoExec(path) ? { reason: `${path} is mounted noexec`, isUnsafe: false, isPassing: false } : { path };
  } catch (error) {
    return { reason: reasonOf(error), isUnsafe: false, isPassing: isPassing(error) };
  }
}

function refused(reason: string): Folder {
  return { reason, isUnsafe: true, isPassing: false };
}

/** Whether it is as it was left: nobody opened it to others, or put another in its place. */
export function isStillPrivate(path: string): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts !== undefined && facts.isDirectory() && facts.uid === ownUser() && (facts.mode & 0o7777) === PRIVATE;
}

/** The path itself, or what is there of it. */
function existingPart(path: string): string {
  let part = path;
  while (!existsSync(part) && part !== dirname(part)) part = dirname(part);
  return part;
}

/** Why that cannot be done. */
function closeToOthers(path: string): string | undefined {
  const folder = openSync(path, READING | constants.O_DIRECTORY);
  try {
    const facts = fstatSync(folder);
    if (facts.uid !== ownUser()) return `${path} belongs to another user (uid ${facts.uid})`;
    const isOpen = isOpenToOthers(facts);
    if (isOpen && isSticky(facts)) return `${path} is for all users (mode ${modeOf(facts)}); a folder in it would do`;
    if (isOpen) fchmodSync(folder, CLOSING);
    if (isOpen || isSticky(facts)) {
      for (const name of readdirSync(path)) if (OURS.test(name)) rmSync(join(path, name), { recursive: true, force: true });
    }
    if ((facts.mode & 0o7777) !== PRIVATE) fchmodSync(folder, PRIVATE);
    return undefined;
  } finally {
    closeSync(folder);
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

/**
 * A file of this user's, which nobody else may write to, of at most so many bytes; undefined: there is none, or it is something else.
 * What is found out of it is found out of the file that is read. At once: a small file takes far less than a way through
 * other threads and back for each of its steps.
 */
export function readOwnFile(path: string, maxBytes: number): Buffer | undefined {
  const file = openSync(path, READING);
  try {
    const facts = fstatSync(file);
    return isOwnFile(facts) && facts.size <= maxBytes ? readAll(file, facts.size) : undefined;
  } finally {
    closeSync(file);
  }
}

function isOwnFile(facts: Stats): boolean {
  return facts.isFile() && facts.uid === ownUser() && !isOpenToOthers(facts);
}

/** What there is of that many bytes. */
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

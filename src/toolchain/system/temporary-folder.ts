// The temporary folder of this thread. Compilers write to it, and it holds compiled images when there is no usable cache. It
// exists only while it holds something.
//
// Its name contains the process, so that a later process can tell that the owner has ended, and remove it.
import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guard } from './guard-process.js';
import { keepFolder } from './exit-cleanup.js';
import { outside } from './environment-errors.js';
import { ownUser, whoCouldSwap } from './private-folder.js';

const HELP: readonly string[] = [
  'Set TMPDIR to a folder that this user can write to and that no other user can, unless it has the sticky bit.',
];
/** millrace-PROCESS-START-NAMESPACE-RANDOM */
const NAMED = /^millrace-(\d+)-(\d+)-(\d+)-\w{6,16}$/;

let own: string | undefined;
/** Those in other places. */
const others: Map<string, string> = new Map();

/**
 * The folder, private to this user, in TMPDIR unless another private `place` is given. Throws an UnavailableError with the reason when it
 * cannot be created.
 */
export function temporaryFolder(place?: string): string {
  if (place !== undefined) return inPlace(place);
  // A service that removes old files from /tmp may have removed it.
  if (own === undefined || !isThere(own)) {
    own = make();
    guard.folder(own);
  }
  return own;
}

/** The guard does not know it: after a signal, the next process that needs such a folder removes it. */
function inPlace(place: string): string {
  let folder = others.get(place);
  if (folder === undefined || !isThere(folder)) others.set(place, (folder = make(place)));
  return folder;
}

/** Creates a folder in it. The caller removes that with `leave`. */
export function scratchFolder(): string {
  const folder = temporaryFolder();
  try {
    return mkdtempSync(join(folder, 'build-'));
  } catch (error) {
    throw outside(`No folder can be made in ${folder}`, error, HELP);
  }
}

/** Removes a folder that `scratchFolder` created, and then the thread's folder if that is empty. */
export function leave(scratch: string): void {
  try {
    rmSync(scratch, { recursive: true, force: true });
    if (own !== undefined) rmdirSync(own);
  } catch {
    // The thread's folder is not empty, or there was no file descriptor. It is removed when the thread ends.
    return;
  }
  if (own === undefined) return;
  keepFolder(own, false);
  guard.folder('');
  own = undefined;
}

function make(given: string = tmpdir()): string {
  const name = given === process.env['TMPDIR'] ? `TMPDIR (${given})` : given;
  try {
    const place = realpathSync(given);
    const who = whoCouldSwap(join(place, 'folder'));
    if (who !== undefined) throw new Error(who.reason);
    sweep(place);
    const folder = join(place, `millrace-${process.pid}-${startOf('self') ?? 0}-${namespace()}-${randomBytes(8).toString('hex')}`);
    // First, because this thread can be terminated after any call.
    keepFolder(folder, true);
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  } catch (error) {
    throw outside(`No temporary folder can be made in ${name}`, error, HELP);
  }
}

function isThere(folder: string): boolean {
  const facts = lstatSync(folder, { throwIfNoEntry: false });
  return facts !== undefined && facts.isDirectory() && facts.uid === ownUser();
}

/** Removes the folders of processes that were killed with their guard. */
function sweep(place: string): void {
  const here = namespace();
  let names: readonly string[] = [];
  try {
    names = readdirSync(place);
  } catch {
    // A folder that this user can write to and cannot read.
  }
  for (const name of names) {
    const [, pid, start, space] = NAMED.exec(name) ?? [];
    // In another pid namespace the same number is another process.
    if (pid === undefined || Number(space) !== here || start === '0') continue;
    const path = join(place, name);
    try {
      if (startOf(pid) !== start && lstatSync(path).uid === ownUser()) rmSync(path, { recursive: true, force: true });
    } catch {
      // Another process removes it too, or there is no file descriptor to read whether its process runs.
    }
  }
}

/** The start time of a process in clock ticks since boot; undefined when there is no such process. */
function startOf(pid: string): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program's name stands in parentheses and may contain any character. The field after it is field 3; the start time is field 22.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** The inode number of this process's pid namespace. */
function namespace(): number {
  try {
    return Number(/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? 0);
  } catch {
    return 0;
  }
}

// The temporary folder of this thread: what compilers write, and images where there is no cache. It exists while there is
// something in it.
//
// It is named by its process, so that a later one can tell that nobody has it any more.
import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guard } from './guard.js';
import { keepFolder } from './leftovers.js';
import { outside } from './outside.js';
import { ownUser, whoCouldSwap } from './private-folder.js';

const HELP: readonly string[] = ['Set TMPDIR to a folder that this user can write to, and nobody else unless it has the sticky bit.'];
/** millrace-PROCESS-START-NAMESPACE-RANDOM */
const NAMED = /^millrace-(\d+)-(\d+)-(\d+)-\w{6}$/;

let own: string | undefined;

/** The folder, for this user alone. Throws an UnavailableError that says why there is none. */
export function temporaryFolder(): string {
  // What clears /tmp by age may have taken it.
  if (own === undefined || !isThere(own)) {
    own = make();
    keepFolder(own, true);
    guard.folder(own);
  }
  return own;
}

/** A folder in it, for whoever removes it with `leave`. */
export function scratchFolder(): string {
  const folder = temporaryFolder();
  try {
    return mkdtempSync(join(folder, 'build-'));
  } catch (error) {
    throw outside(`No folder can be made in ${folder}`, error, HELP);
  }
}

/** Removes a scratch folder, and the thread's if nothing else is in it. */
export function leave(scratch: string): void {
  try {
    rmSync(scratch, { recursive: true, force: true });
    if (own !== undefined) rmdirSync(own);
  } catch {
    // Something is in it; or there was no descriptor to look: then it goes with the thread.
    return;
  }
  if (own === undefined) return;
  keepFolder(own, false);
  guard.folder('');
  own = undefined;
}

function make(): string {
  const given = tmpdir();
  const name = process.env['TMPDIR'] === undefined ? given : `TMPDIR (${given})`;
  try {
    const place = realpathSync(given);
    const who = whoCouldSwap(join(place, 'folder'));
    if (who !== undefined) throw new Error(who);
    sweep(place);
    return mkdtempSync(join(place, `millrace-${process.pid}-${startOf('self') ?? 0}-${namespace()}-`));
  } catch (error) {
    throw outside(`No temporary folder can be made in ${name}`, error, HELP);
  }
}

function isThere(folder: string): boolean {
  const facts = lstatSync(folder, { throwIfNoEntry: false });
  return facts !== undefined && facts.isDirectory() && facts.uid === ownUser();
}

/** Removes the folders of processes that were killed. */
function sweep(place: string): void {
  const here = namespace();
  let names: readonly string[] = [];
  try {
    names = readdirSync(place);
  } catch {
    // A folder that may be written to and not read.
  }
  for (const name of names) {
    const [, pid, start, space] = NAMED.exec(name) ?? [];
    // Of another namespace the numbers mean other processes.
    if (pid === undefined || Number(space) !== here || start === '0') continue;
    const path = join(place, name);
    try {
      if (startOf(pid) !== start && lstatSync(path).uid === ownUser()) rmSync(path, { recursive: true, force: true });
    } catch {
      // Another process sweeps as well; or there is no descriptor to find out whether this one runs.
    }
  }
}

/** When a process was started, in ticks since the machine was; undefined: there is none. */
function startOf(pid: string): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program, in parentheses, may hold anything. The start is field 22, and the state behind the name field 3.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** Of process numbers. */
function namespace(): number {
  try {
    return Number(/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? 0);
  } catch {
    return 0;
  }
}

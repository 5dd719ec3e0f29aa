// Whether a folder, and what it is reached by, is this user's alone: images are loaded from it as code.
//
// As sshd's StrictModes asks of the files that it believes, every folder on the way belongs to root or to this user, and
// nobody else may write to it. Unlike there, a folder with the sticky bit (/tmp) may be written to by others: what is in it
// is renamed by its owner alone.
import { lstatSync, readFileSync, type Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';

const OTHERS_WRITE = 0o002;
const GROUP_WRITES = 0o020;
const STICKY = 0o1000;
const ROOT = 0;

/** The user that files are made and opened as. */
export function ownUser(): number {
  return process.geteuid!();
}

/** Whether somebody beside this user and root may write to the file or folder. */
export function isOpenToOthers({ mode, gid }: Pick<Stats, 'mode' | 'gid'>): boolean {
  return (mode & OTHERS_WRITE) !== 0 || ((mode & GROUP_WRITES) !== 0 && !isOwnGroup(gid));
}

/** Whether what is in the folder can be renamed and removed by its owner alone. */
export function isSticky({ mode }: Pick<Stats, 'mode'>): boolean {
  return (mode & STICKY) !== 0;
}

/** "0777" */
export function modeOf({ mode }: Pick<Stats, 'mode'>): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}

/**
 * Who could put another folder in the place of this one, as part of a sentence; undefined: nobody. The path is a real one, without
 * links. Throws where it cannot be looked at, and for what is no folder.
 */
export function whoCouldSwap(folder: string): string | undefined {
  const way: string[] = [];
  for (let path = folder; path !== dirname(path); ) way.unshift((path = dirname(path)));
  // From the root on: what is found of a folder holds only where nobody could swap those above it.
  for (const path of way) {
    const facts = lstatSync(path);
    if (!facts.isDirectory()) throw new Error(`${path} is no folder`);
    if (facts.uid !== ROOT && facts.uid !== ownUser()) return `${path} belongs to another user (uid ${facts.uid})`;
    if (isOpenToOthers(facts) && !isSticky(facts)) return `others may write to ${path} (mode ${modeOf(facts)}, without the sticky bit)`;
  }
  return undefined;
}

const ownGroups: Map<number, boolean> = new Map();

/** Whether it is the group of this user alone, as most distributions give each user one, and folders group-write for it. */
function isOwnGroup(gid: number): boolean {
  let isOwn = ownGroups.get(gid);
  if (isOwn === undefined) {
    try {
      isOwn =
        gid === process.getegid!() &&
        isOfOneUser(gid, userInfo().username, readFileSync('/etc/group', 'utf8'), readFileSync('/etc/passwd', 'utf8'));
    } catch {
      // Groups of a directory service are not in the files: nobody knows their members here.
      isOwn = false;
    }
    ownGroups.set(gid, isOwn);
  }
  return isOwn;
}

/** `groups` and `users`: /etc/group and /etc/passwd. */
export function isOfOneUser(gid: number, user: string, groups: string, users: string): boolean {
  const lines = (text: string): string[][] => text.split('\n').map((line) => line.split(':'));
  const group = lines(groups).filter(([, , id]) => id === String(gid));
  const others = lines(users).filter(([name, , , id]) => id === String(gid) && name !== user);
  const isAlone = (members = ''): boolean => members.split(',').every((member) => member === '' || member === user);
  return group.length === 1 && isAlone(group[0]![3]) && others.length === 0;
}

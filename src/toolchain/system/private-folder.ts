// Checks that no other user can write to a folder or replace it. The process loads compiled images from such folders as code.
//
// The rules are those of sshd's StrictModes: root or this user owns every parent folder, and nobody else can write to it.
// One rule is weaker than sshd's: others may write to a parent that has the sticky bit (/tmp), because there only the owner
// of an entry can rename or remove it.
import { lstatSync, readFileSync, type Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';

const OTHERS_WRITE = 0o002;
const GROUP_WRITES = 0o020;
const STICKY = 0o1000;
const ROOT = 0;

/** The effective user id: the owner of the files that this process creates. */
export function ownUser(): number {
  return process.geteuid!();
}

/** A user and a group, besides this user and root, whose files this process may run as code. */
export interface Trust {
  readonly user?: number;
  readonly group?: number;
}

/** Who can write to a folder of this library, whose files the process runs already. In containers, that may be neither this user nor root. */
export function ownersOf(folder: string): Trust {
  const { uid, gid, mode } = lstatSync(folder);
  return { user: uid, ...((mode & GROUP_WRITES) !== 0 && { group: gid }) };
}

/** Whether the mode lets any user but this one and root write to the file or folder. */
export function isOpenToOthers({ mode, gid }: Pick<Stats, 'mode' | 'gid'>, trusted: Trust = {}): boolean {
  return (mode & OTHERS_WRITE) !== 0 || ((mode & GROUP_WRITES) !== 0 && gid !== trusted.group && !isOwnGroup(gid));
}

/** Whether the owner of a file or folder may put code there. */
export function isTrustedOwner(uid: number, trusted: Trust = {}): boolean {
  return uid === ROOT || uid === ownUser() || uid === trusted.user;
}

/** Whether the folder has the sticky bit: only the owner of an entry can rename or remove it. */
export function isSticky({ mode }: Pick<Stats, 'mode'>): boolean {
  return (mode & STICKY) !== 0;
}

/** The mode in octal digits: "0777". */
export function modeOf({ mode }: Pick<Stats, 'mode'>): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}

/** What lets another user put code into a folder. */
export interface Danger {
  /** The folder itself, or a parent. */
  readonly path: string;
  /** Part of a sentence. */
  readonly reason: string;
}

/**
 * Why another user could replace this folder; undefined when nobody can. `folder` is a real path, without symbolic links. Throws when a
 * parent cannot be examined or is not a folder.
 */
export function whoCouldSwap(folder: string, trusted: Trust = {}): Danger | undefined {
  const way: string[] = [];
  for (let path = folder; path !== dirname(path); ) way.unshift((path = dirname(path)));
  // The check starts at the root, because a folder's own facts are reliable only when nobody can replace its parents.
  for (const path of way) {
    const facts = lstatSync(path);
    if (!facts.isDirectory()) throw new Error(`${path} is not a folder`);
    if (!isTrustedOwner(facts.uid, trusted)) return { path, reason: `${path} belongs to another user (uid ${facts.uid})` };
    if (isOpenToOthers(facts, trusted) && !isSticky(facts))
      return { path, reason: `other users may write to ${path} (mode ${modeOf(facts)}, without the sticky bit)` };
  }
  return undefined;
}

const ownGroups: Map<number, boolean> = new Map();

/** Whether this user is the only member of the group. Most distributions give each user such a group and make folders writable for it. */
function isOwnGroup(gid: number): boolean {
  let isOwn = ownGroups.get(gid);
  if (isOwn === undefined) {
    try {
      isOwn =
        gid === process.getegid!() &&
        isOfOneUser(gid, userInfo().username, readFileSync('/etc/group', 'utf8'), readFileSync('/etc/passwd', 'utf8'));
    } catch {
      // A group from a directory service is not in /etc/group, so its members are unknown: it counts as shared.
      isOwn = false;
    }
    ownGroups.set(gid, isOwn);
  }
  return isOwn;
}

/** Whether the group has no other member. `groups` and `users` are the contents of /etc/group and /etc/passwd. */
export function isOfOneUser(gid: number, user: string, groups: string, users: string): boolean {
  const lines = (text: string): string[][] => text.split('\n').map((line) => line.split(':'));
  const group = lines(groups).filter(([, , id]) => id === String(gid));
  const others = lines(users).filter(([name, , , id]) => id === String(gid) && name !== user);
  const isAlone = (members = ''): boolean => members.split(',').every((member) => member === '' || member === user);
  return group.length === 1 && isAlone(group[0]![3]) && others.length === 0;
}

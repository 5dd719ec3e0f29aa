// Registers what this thread's builds would leave behind: process groups of compilers, and a temporary folder. The addon kills and removes
// them when the thread ends for any reason. If a signal kills the process, the guard does so (guard-process.ts).
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The functions of the addon that builds need. */
export interface BuildHost {
  /** Kills the process group that this child leads when the thread ends, unless `isRunning` was set to false before. */
  keepGroup(pid: number, isRunning: boolean): void;
  /**
   * Does so for every child of this thread that leads its process group, whether `keepGroup` was called or not. A thread can be terminated
   * between the start of a child and that call.
   */
  keepChildren(): void;
  /** Removes the folder when the thread ends, unless `isThere` was set to false before. */
  keepFolder(path: string, isThere: boolean): void;
  /** Call it once. The addon calls `onGranted` after it granted turns that `takeCompilerSlot` did not give at once. */
  openCompilerSlots(onGranted: () => void): void;
  /** Takes a turn when the process holds fewer than `limit`, and returns true. Otherwise returns false and grants the turn later. */
  takeCompilerSlot(limit: number): boolean;
  /** The number of turns granted since the last call. */
  grantedCompilerSlots(): number;
  releaseCompilerSlot(): void;
}

let host: BuildHost | undefined;
/** Without an addon, as in unit tests, the exit event of the process ends these. */
const folders: Set<string> = new Set();
const groups: Set<number> = new Set();

/** Gives this thread's builds the addon. The thread may start no children for other purposes. */
export function endBuildsWith(given: BuildHost): void {
  given.keepChildren();
  host = given;
}

export function buildHost(): BuildHost | undefined {
  return host;
}

/** The number of compilers that may run at once in the process. */
export const MOST_COMPILERS: number = availableParallelism();

export function keepGroup(pid: number, isRunning: boolean): void {
  if (host !== undefined) host.keepGroup(pid, isRunning);
  else note(groups, pid, isRunning);
}

export function keepFolder(path: string, isThere: boolean): void {
  if (host !== undefined) host.keepFolder(path, isThere);
  else note(folders, path, isThere);
}

function note<T>(all: Set<T>, one: T, isThere: boolean): void {
  if (folders.size + groups.size === 0) process.once('exit', clear);
  if (isThere) all.add(one);
  else all.delete(one);
  if (folders.size + groups.size === 0) process.off('exit', clear);
}

function clear(): void {
  for (const pid of groups) endGroup(pid);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

/** Kills a child that leads a process group, with all processes of the group. */
export function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has ended already.
  }
}

// What this thread's builds would leave behind if it ended now: groups of processes, and a folder. The addon ends them with
// the thread, however that ends; a guard does when the process is ended by a signal.
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The addon, as far as builds need it. */
export interface BuildHost {
  /** The process group that this child leads is killed with the thread, until it is told that it ended. */
  keepGroup(pid: number, isRunning: boolean): void;
  /** The folder is removed with the thread, until it is told that it is gone. */
  keepFolder(path: string, isThere: boolean): void;
  /** `onGranted` is called when `grantedTurns` has something to say. */
  openTurns(onGranted: () => void): void;
  /** Whether the process has less than `limit` turns taken, and this is one more. Otherwise it is granted later. */
  takeTurn(limit: number): boolean;
  /** Turns granted since the last call. */
  grantedTurns(): number;
  giveTurn(): void;
}

let host: BuildHost | undefined;
/** Without an addon, as tests of builds are: what goes with the exit event. */
const folders: Set<string> = new Set();
const groups: Set<number> = new Set();

/** From now on this thread's builds are ended by it. */
export function endBuildsWith(given: BuildHost): void {
  host = given;
}

export function buildHost(): BuildHost | undefined {
  return host;
}

/** Compilers that run at once in the process. */
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

/** Ends a child that leads a group, with all that it started. */
export function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It ended by itself this very moment.
  }
}

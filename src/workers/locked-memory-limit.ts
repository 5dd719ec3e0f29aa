// The limit of page-locked memory of this process, and what to do about it.
import { readFileSync } from 'node:fs';
import type { EncodedError } from '../core/base/errors.js';

/** In words: '64 KiB', 'none'. */
function lockedMemoryLimit(): string {
  const soft = softLimit();
  if (soft === 'unlimited') return 'none';
  return soft === undefined ? 'unknown' : `${Number(soft) / 1024} KiB`;
}

/** For an error or a warning about memory that the system does not lock. */
export function lockedMemoryHelp(): string {
  return `The limit of locked memory (RLIMIT_MEMLOCK) is ${lockedMemoryLimit()}. Raise it: ulimit -l unlimited, in containers --ulimit memlock=-1, in WSL memory= in .wslconfig.`;
}

/** In bytes, or 'unlimited'. */
export function softLimit(): string | undefined {
  try {
    return /^Max locked memory\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}

let isUnlockedTold = false;

/** Once: a limit that refuses one array refuses many. */
export function warnOfUnlocked({ message, code }: EncodedError): void {
  if (isUnlockedTold) return;
  isUnlockedTold = true;
  const what = `${message} Copies to and from it go through other memory and take longer. ${lockedMemoryHelp()} Later cases are not reported.`;
  process.emitWarning(what, { type: 'MillraceWarning', code });
}

// The limit of page-locked memory of this process, and what to do about it.
import { readFileSync } from 'node:fs';
import type { EncodedError } from '../core/base/errors.js';

/** In words: '64 KiB', 'none'. */
function lockedMemoryLimit(): string {
  const soft = softLimit();
  if (soft === 'unlimited') return 'none';
  return soft === undefined ? 'unknown' : `${Number(soft) / 1024} KiB`;
}

const CAP_SYS_RESOURCE = 1n << 24n;

/** How to raise the limit: without the privilege, which root of a container lacks, a process raises it up to its hard limit. */
export function lockingHelp(): string {
  const [, soft, hard] = limits() ?? [];
  const [, privileges = '0'] = valuesOf('/proc/self/status', /^CapEff:\s+([0-9a-f]+)/m) ?? [];
  const mayExceed = (BigInt(`0x${privileges}`) & CAP_SYS_RESOURCE) !== 0n;
  const most = mayExceed || hard === 'unlimited' ? 'unlimited' : Number(hard) / 1024;
  const here = most === 'unlimited' || (hard !== undefined && hard !== soft) ? `ulimit -l ${most} in the shell, ` : '';
  return `Raise it: ${here}as root "USER - memlock unlimited" in /etc/security/limits.conf, LimitMEMLOCK=infinity for a service, --ulimit memlock=-1 for a container, or memory= in .wslconfig for WSL.`;
}

/** For an error or a warning about memory that the system does not lock. */
export function lockedMemoryHelp(): string {
  return `The limit of locked memory (RLIMIT_MEMLOCK) is ${lockedMemoryLimit()}. ${lockingHelp()}`;
}

/** In bytes, or 'unlimited'. */
export function softLimit(): string | undefined {
  return limits()?.[1];
}

/** [the line, soft limit, hard limit] */
function limits(): RegExpExecArray | undefined {
  return valuesOf('/proc/self/limits', /^Max locked memory\s+(\S+)\s+(\S+)/m);
}

function valuesOf(file: string, pattern: RegExp): RegExpExecArray | undefined {
  try {
    return pattern.exec(readFileSync(file, 'utf8')) ?? undefined;
  } catch {
    return undefined;
  }
}

let isUnlockedTold = false;

/** Once: a limit that refuses one array refuses many. */
export function warnOfUnlocked({ message, code }: EncodedError): void {
  // On a lost device nothing can be page-locked.
  if (isUnlockedTold || code === 'ERR_MILLRACE_LOST') return;
  isUnlockedTold = true;
  const what = `${message}. Copies to and from it go through other memory and take longer. ${lockedMemoryHelp()} Later cases are not reported.`;
  process.emitWarning(what, { type: 'MillraceWarning', code });
}

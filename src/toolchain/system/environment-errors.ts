// Errors for builds that fail for a reason outside the kernel's source: no file descriptors, no memory, no folder, a signal.
// The next launch of the kernel builds it again.
import { UnavailableError } from '../../core/base/errors.js';

const REMEDIES: readonly (readonly [cause: RegExp, remedy: string])[] = [
  [
    /cannot (?:execute|find) '?(?:as|ld)\b/,
    'Add the folder of the programs as and ld, which compilers run, to PATH: usually /usr/bin (apt-get install binutils).',
  ],
  [
    /unrecognized command[- ]line option '-std=/,
    'This compiler is too old: install a newer g++ or clang++, or name one: MILLRACE_CXX=/path/to/g++.',
  ],
  [/EMFILE|ENFILE|Too many open files/, 'Raise the limit of open files (ulimit -n).'],
  [
    /EAGAIN|Resource temporarily unavailable/,
    "Raise the limit of processes and threads (ulimit -u, or pids.max of the container's cgroup).",
  ],
  [/ENOSPC|No space left/, 'Make room there, or set TMPDIR and MILLRACE_CACHE_DIR to folders on another file system.'],
];

/** What to do about a reason of the system; undefined for one that says so itself, or is not known. */
export function remedyOf(reason: string): string | undefined {
  return REMEDIES.find(([cause]) => cause.test(reason))?.[1];
}

/** The K707 error. `what` is the first part of its sentence, such as "Kernel 'blur' was not built"; the cause follows. */
export function outside(
  what: string,
  cause: unknown,
  help: readonly string[] = [remedyOf(reasonOf(cause)) ?? []].flat(),
): UnavailableError {
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `K707: ${what}: ${reasonOf(cause)}.`, help, { cause });
}

/** The cause as text. A failed system call has its errno by name: "EMFILE: too many open files, open '/tmp/a'". */
export function reasonOf(cause: unknown): string {
  return (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, '');
}

/** Whether the error is a failed system call. */
export function isOfSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).errno === 'number';
}

const PASSING: readonly (string | undefined)[] = ['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EINTR', 'ENOBUFS'];

/** Whether the same system call may succeed a moment later. */
export function isPassing(error: unknown): boolean {
  return isOfSystem(error) && PASSING.includes(error.code);
}

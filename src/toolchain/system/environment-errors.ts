// Errors for builds that fail for a reason outside the kernel's source: no file descriptors, no memory, no folder, a signal.
// The next launch of the kernel builds it again.
import { UnavailableError } from '../../core/base/errors.js';

/** The K707 error. `what` is the first part of its sentence, such as "Kernel 'blur' was not built"; the cause follows. */
export function outside(what: string, cause: unknown, help: readonly string[] = []): UnavailableError {
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

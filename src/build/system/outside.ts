// What keeps a build from being made and says nothing of the text: no descriptors, no memory, no folder, a signal. Such a
// build is tried again when it is asked for again.
import { UnavailableError } from '../../core/base/errors.js';

/** K707. `what` is a sentence without its end, such as "Kernel 'blur' was not built". */
export function outside(what: string, cause: unknown, help: readonly string[] = []): UnavailableError {
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `K707: ${what}: ${reasonOf(cause)}.`, help, { cause });
}

/** What the system refused, with its errno by name: "EMFILE: too many open files, open '/tmp/a'". */
export function reasonOf(cause: unknown): string {
  return (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, '');
}

/** Whether the system refused a call. */
export function isOfSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).errno === 'number';
}

const PASSING: readonly (string | undefined)[] = ['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EINTR', 'ENOBUFS'];

/** Whether the same call may succeed a moment later. */
export function isPassing(error: unknown): boolean {
  return isOfSystem(error) && PASSING.includes(error.code);
}

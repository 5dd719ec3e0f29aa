// Warnings that are given once for all devices: each device has a thread that builds kernels, and several meet one cause.
import { workerData } from 'node:worker_threads';

const MOST_KNOWN = 256;

interface Shared {
  readonly millraceWarned?: unknown;
}

/** Digests of what was warned of. The thread that opens devices hands it to their workers, as `millraceWarned` of their data. */
export const warnedOf: SharedArrayBuffer = given() ?? new SharedArrayBuffer(MOST_KNOWN * Int32Array.BYTES_PER_ELEMENT);
const known = new Int32Array(warnedOf);

function given(): SharedArrayBuffer | undefined {
  // A worker of the user has data of its own.
  const { millraceWarned } = (workerData ?? {}) as Shared;
  return millraceWarned instanceof SharedArrayBuffer ? millraceWarned : undefined;
}

/** `what`: tells one cause from others. */
export function warnOnce(what: string, message: string): void {
  const digest = digestOf(what);
  for (let at = 0; at < MOST_KNOWN; ++at) {
    const before = Atomics.compareExchange(known, at, 0, digest);
    if (before === digest) return;
    if (before === 0) break;
  }
  process.emitWarning(message, { type: 'MillraceWarning', code: 'ERR_MILLRACE_UNAVAILABLE' });
}

/** FNV-1a; never 0, which is an empty place. */
function digestOf(text: string): number {
  let digest = 0x811c9dc5;
  for (let at = 0; at < text.length; ++at) digest = Math.imul(digest ^ text.charCodeAt(at), 0x01000193);
  return digest | 1;
}

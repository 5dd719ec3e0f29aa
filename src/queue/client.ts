// What the adapters share.
//
// Packages that only some programs have are loaded when they are used. An expression that bundlers do not follow, so a program without them can be bundled.
import { createRequire } from 'node:module';
import { UnavailableError } from '../core/base/errors.js';
import { clearTimeout, setTimeout } from '../core/base/timers.js';

/** The time that a client has to end its connection in peace. */
export const CLOSE_MS = 500;

/** Throws UnavailableError if the package is not installed; `install` are the packages to install for it. */
export function loadPackage<M>(name: string, install: string): M {
  try {
    return createRequire(import.meta.url)(name) as M;
  } catch (cause) {
    const message = `This queue needs the package ${name}, which cannot be loaded.`;
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, [`Install it beside millrace: npm install ${install}`], { cause });
  }
}

/** The error of a call that the server does not answer now. */
export function unanswered(server: string, cause: unknown): UnavailableError {
  const message = `The ${server} server does not answer: ${(cause as Error).message}.`;
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, ['The run tries again until it is drained.'], { cause });
}

/** Resolves when the work has settled, or after this time. */
export async function withinMs(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined = undefined;
  const over = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([
    work.then(
      () => undefined,
      () => undefined,
    ),
    over,
  ]);
  clearTimeout(timer);
}

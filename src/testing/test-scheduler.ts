// RxJS's TestScheduler, a class that this folder extends. The import of `millrace/testing` needs it.
import { createRequire } from 'node:module';
import type { TestScheduler } from 'rxjs/testing';
import { UnavailableError } from '../core/base/errors.js';

/** The class. */
export const Scheduler: typeof TestScheduler = load();

function load(): typeof TestScheduler {
  try {
    return (createRequire(import.meta.url)('rxjs/testing') as { readonly TestScheduler: typeof TestScheduler }).TestScheduler;
  } catch (cause) {
    const help = ['Install it beside millrace: npm install rxjs@7'];
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', 'Test clocks need the package rxjs, which cannot be loaded.', help, { cause });
  }
}

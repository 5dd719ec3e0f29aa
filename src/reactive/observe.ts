// The only file that calls the Observable constructor, so that another version of rxjs changes only this file.
//
// rxjs is a peer dependency and takes about 60 ms to load. It is loaded synchronously when the first Observable is made, and
// not when this library is imported.
import { createRequire } from 'node:module';
import type * as Rx from 'rxjs';
import { UnavailableError } from '../core/base/errors.js';

let loaded: typeof Rx | undefined;

/** rxjs, loaded on first use. */
export function rx(): typeof Rx {
  loaded ??= load();
  return loaded;
}

function load(): typeof Rx {
  try {
    return createRequire(import.meta.url)('rxjs') as typeof Rx;
  } catch (cause) {
    throw new UnavailableError(
      'ERR_MILLRACE_UNAVAILABLE',
      'Observables need the package rxjs, which cannot be loaded.',
      ['Install it beside millrace: npm install rxjs@7'],
      { cause },
    );
  }
}

/** Whether a TestScheduler or a test clock has replaced the timers of rxjs. */
export function isTimeVirtual(): boolean {
  try {
    const { intervalProvider } = createRequire(import.meta.url)('rxjs/internal/scheduler/intervalProvider') as {
      readonly intervalProvider: { readonly delegate?: object };
    };
    return intervalProvider.delegate !== undefined;
  } catch {
    return false;
  }
}

/** The part of a Subscriber that this library uses. */
export interface Sink<T> {
  readonly closed: boolean;
  next(value: T): void;
  error(error: unknown): void;
  complete(): void;
}

/** A cold Observable: `subscribe` runs for every subscriber and returns the teardown function. */
export function observable<T>(subscribe: (sink: Sink<T>) => () => void): Rx.Observable<T> {
  const { Observable } = rx();
  return new Observable<T>((subscriber) => subscribe(subscriber));
}

/** Whether the value is an Observable of any rxjs 7. */
export function isObservable<T>(value: unknown): value is Rx.Observable<T> {
  return typeof (value as { subscribe?: unknown } | null | undefined)?.subscribe === 'function';
}

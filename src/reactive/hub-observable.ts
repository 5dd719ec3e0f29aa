// Turns core's hubs into Observables: `operations$`, `activity$`, `errors$`.
//
// They are hot and shared: every subscriber hears the same values, a late one misses the past, nothing is replayed or
// buffered. A slow subscriber loses nothing and delays nobody but the owner's own loop, since values are handed over in
// a plain call. While subscribed it keeps the process alive for what is pending. Unsubscribing stops watching, never the work.
import { AsyncResource } from 'node:async_hooks';
import type { Observable } from 'rxjs';
import type { ObservableFactory, Observed } from '../core/base/observable.js';
import { observable } from './observe.js';

declare module '../core/base/observable.js' {
  interface ObservableOf<T> extends Observable<T> {}
}

/** What core is given to make its `$` members with. */
export const observableOf: ObservableFactory = <T>(source: Observed<T>): Observable<T> =>
  observable<T>((sink) => {
    // Values come from the loop's own callbacks; they are heard in the context of the subscription.
    const context = new AsyncResource('millrace.subscription');
    const remove = source.add({
      next: (value) => context.runInAsyncScope(() => sink.next(value)),
      error: (error) => context.runInAsyncScope(() => sink.error(error)),
      complete: () => context.runInAsyncScope(() => sink.complete()),
    });
    const release = source.expect();
    return () => {
      remove();
      release();
      context.emitDestroy();
    };
  });

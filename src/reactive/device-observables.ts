// Turns core's hubs into Observables: `operations$`, `activity$`, `errors$`.
//
// They are hot and shared: every subscriber gets the same values, a late subscriber misses earlier ones, and nothing is
// replayed or buffered. Values are delivered by a synchronous call, so a slow subscriber loses none and delays only the
// owner's event loop. A subscription keeps the process alive while operations are pending. Unsubscribing never stops work.
import { AsyncResource } from 'node:async_hooks';
import type { Observable } from 'rxjs';
import type { ObservableFactory, Observed } from '../core/base/observable.js';
import { observable } from './observe.js';

declare module '../core/base/observable.js' {
  interface ObservableOf<T> extends Observable<T> {}
}

/** The factory that core uses to make its `$` members. */
export const observableOf: ObservableFactory = <T>(source: Observed<T>): Observable<T> =>
  observable<T>((sink) => {
    // Values are emitted by callbacks of the event loop. Deliver them in the asynchronous context of the subscription.
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

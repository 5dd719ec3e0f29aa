import { AsyncLocalStorage } from 'node:async_hooks';
import { filter, map, Observable, take } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { describe, expect, it } from 'vitest';
import { Hub } from '../../../src/core/base/observable.js';
import { observableOf } from '../../../src/reactive/device-observables.js';

function view<T>(hub: Hub<T>): Observable<T> {
  return observableOf(hub);
}

describe('an Observable of a hub', () => {
  it('is hot: a late subscriber misses earlier values, and all get the same values', () => {
    new TestScheduler((actual, expected) => expect(actual).toEqual(expected)).run(({ cold, expectObservable }) => {
      const hub = new Hub<string>();
      cold('-a-b-c-|').subscribe(hub);
      expectObservable(view(hub)).toBe('-a-b-c-|');
      expectObservable(view(hub), '--^').toBe('---b-c-|');
      expectObservable(
        view(hub).pipe(
          filter((value) => value !== 'b'),
          map((value) => value.toUpperCase()),
          take(2),
        ),
      ).toBe('-A---(C|)');
    });
  });

  it('ends with the hub, also by an error, and at once for late subscribers', () => {
    new TestScheduler((actual, expected) => expect(actual).toEqual(expected)).run(({ cold, expectObservable }) => {
      const hub = new Hub<string>();
      cold('-a-#', undefined, 'lost').subscribe({ next: (value) => hub.next(value), error: (error: unknown) => hub.error(error) });
      expectObservable(view(hub)).toBe('-a-#', undefined, 'lost');
      expectObservable(view(hub), '-----^').toBe('-----#', undefined, 'lost');
    });
  });

  it('listens only while there are subscribers', () => {
    const hub = new Hub<number>();
    const values = view(hub);
    expect(hub.observed).toBe(false);
    const first = values.subscribe();
    const second = values.subscribe();
    first.unsubscribe();
    expect(hub.observed).toBe(true);
    second.unsubscribe();
    expect(hub.observed).toBe(false);
  });

  it('is an Observable of the rxjs that the user imports', () => {
    expect(view(new Hub())).toBeInstanceOf(Observable);
  });

  it('runs subscribers in the context of their subscription, wherever the value comes from', () => {
    const context = new AsyncLocalStorage<string>();
    const hub = new Hub<number>();
    const seen: (string | undefined)[] = [];
    const subscription = context.run('subscriber', () => view(hub).subscribe(() => void seen.push(context.getStore())));
    context.run('emitter', () => hub.next(1));
    subscription.unsubscribe();
    context.disable();
    expect(seen).toEqual(['subscriber']);
  });
});

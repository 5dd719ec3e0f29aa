// A stage whose items settle when the test says so, in the order that the test wants.
import type { Observable } from 'rxjs';
import type { Lane } from 'millrace';

/** One call of the stage. */
export interface StageCall<T, R> {
  readonly item: T;
  readonly lane: Lane;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

export interface ManualStage<T, R> {
  readonly stage: (item: T, lane: Lane) => Promise<R>;
  /** The calls so far, the oldest first. */
  readonly calls: readonly StageCall<T, R>[];
  readonly items: () => readonly T[];
}

export function manualStage<T, R = T>(): ManualStage<T, R> {
  const calls: StageCall<T, R>[] = [];
  const stage = (item: T, lane: Lane): Promise<R> =>
    new Promise((resolve, reject) => {
      calls.push({ item, lane, resolve, reject });
    });
  return { stage, calls, items: () => calls.map((call) => call.item) };
}

/** What a subscriber or an iteration was told, and how it ended. */
export interface Seen<R> {
  readonly values: readonly R[];
  /** 'open' until the end; then 'complete', or the error. */
  readonly end: () => unknown;
  unsubscribe(): void;
}

/** Subscribes and keeps what comes. */
export function watch<R>(source: Observable<R>): Seen<R> {
  const values: R[] = [];
  let end: unknown = 'open';
  const subscription = source.subscribe({
    next: (value) => void values.push(value),
    error: (error) => (end = error),
    complete: () => (end = 'complete'),
  });
  return { values, end: () => end, unsubscribe: () => subscription.unsubscribe() };
}

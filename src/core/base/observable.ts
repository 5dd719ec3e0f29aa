// Events of devices and streams, and their listeners.
//
// A `Hub` is a list of listeners. `src/reactive` turns hubs into Observables: it passes a factory to
// `installObservableFactory` when the library loads, so that core has `operations$` without importing rxjs.
// Thread: owner.
import { setImmediate } from './timers.js';

/**
 * An Observable of `T`: RxJS's `Observable`. The interface is empty here, and `src/reactive` merges RxJS's declaration into it:
 * `declare module './observable.js' { interface ObservableOf<T> extends Observable<T> {} }`.
 */
export interface ObservableOf<T> {} // oxlint-disable-line no-unused-vars -- filled by declaration merging.

/** The callbacks of a listener. After `error` or `complete` none is called. */
export interface Listener<T> {
  /** Called with every value. */
  next(value: T): void;
  /** Called once, when the source ends with an error. */
  error?(error: unknown): void;
  /** Called once, when the source ends without an error. */
  complete?(): void;
}

/** A hot, shared source without replay. A listener added after the end gets only the end. */
export interface Observed<T> {
  /** Whether there are listeners. Work that only listeners need is skipped without them. */
  readonly observed: boolean;
  /** Adds a listener. The returned function removes it. */
  add(listener: Listener<T>): () => void;
  /** Declares that the next value is awaited, until the returned function is called. Meanwhile pending operations keep the process alive. */
  expect(): () => void;
}

type Ending = { readonly kind: 'complete' } | { readonly kind: 'error'; readonly error: unknown };

interface Entry<T> {
  readonly listener: Listener<T>;
  isRemoved: boolean;
}

/** The only implementation of Observed; its owner calls `next`. An exception of a listener is thrown on a separate turn of the event loop. */
export class Hub<T> implements Observed<T> {
  // Replaced, never changed in place, so that a listener may add or remove listeners while it is called.
  #entries: readonly Entry<T>[] = [];
  #ending: Ending | undefined;
  #expecting = 0;
  /** Called when `observed` or `isAwaited` changes, except by the end. */
  onChange: (() => void) | undefined = undefined;

  get observed(): boolean {
    return this.#entries.length > 0;
  }

  /** Whether the next value is awaited, as `expect` declares. */
  get isAwaited(): boolean {
    return this.#expecting > 0;
  }

  expect(): () => void {
    if (this.#expecting++ === 0) this.onChange?.();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--this.#expecting === 0) this.onChange?.();
    };
  }

  add(listener: Listener<T>): () => void {
    if (this.#ending !== undefined) {
      end(listener, this.#ending);
      return () => undefined;
    }
    // Each call adds a separate entry, because the same listener may be added twice and removed once.
    const entry: Entry<T> = { listener, isRemoved: false };
    this.#entries = [...this.#entries, entry];
    if (this.#entries.length === 1) this.onChange?.();
    return () => this.#remove(entry);
  }

  next(value: T): void {
    deliver(() => {
      for (const entry of this.#entries) if (!entry.isRemoved) guarded(() => entry.listener.next(value));
    });
  }

  error(error: unknown): void {
    this.#end({ kind: 'error', error });
  }

  complete(): void {
    this.#end({ kind: 'complete' });
  }

  #end(ending: Ending): void {
    deliver(() => {
      if (this.#ending !== undefined) return;
      this.#ending = ending;
      const entries = this.#entries;
      this.#entries = [];
      for (const entry of entries) if (!entry.isRemoved) end(entry.listener, ending);
    });
  }

  #remove(entry: Entry<T>): void {
    if (entry.isRemoved) return;
    entry.isRemoved = true;
    this.#entries = this.#entries.filter((other) => other !== entry);
    if (this.#entries.length === 0 && this.#ending === undefined) this.onChange?.();
  }
}

// Values of all hubs of the thread. If a listener causes another value or an end, all listeners get it after the present value.
const queue: (() => void)[] = [];
let isDelivering = false;

function deliver(emission: () => void): void {
  if (isDelivering) queue.push(emission);
  else batchEmissions(emission);
}

/** Delivers the values that `emit` passes to hubs in this order, and values that listeners cause after all of them. */
export function batchEmissions(emit: () => void): void {
  if (isDelivering) {
    emit();
    return;
  }
  isDelivering = true;
  try {
    emit();
    for (let at = 0; at < queue.length; at++) (queue[at] as () => void)();
  } finally {
    queue.length = 0;
    isDelivering = false;
  }
}

function end<T>(listener: Listener<T>, ending: Ending): void {
  guarded(() => (ending.kind === 'error' ? listener.error?.(ending.error) : listener.complete?.()));
}

/** Calls a listener. Its exception must not keep other listeners from being called, or promises from being settled. */
function guarded(call: () => void): void {
  try {
    call();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
}

export type ObservableFactory = <T>(source: Observed<T>) => ObservableOf<T>;

let factory: ObservableFactory | undefined;

/** Called once, by the entry point. */
export function installObservableFactory(make: ObservableFactory): void {
  factory = make;
}

/** An Observable of a hub, made when a `$` getter is first read. */
export function observe<T>(source: Observed<T>): ObservableOf<T> {
  if (factory === undefined) throw new Error('No Observable factory is installed; import millrace by its main entry.');
  return factory(source);
}

/**
 * Observable libraries recognise each other's objects by `Symbol.observable`, or by the name '@@observable' where the symbol is not
 * defined. Classes define the method under the name; this also adds it under the symbol.
 */
export function addObservableSymbol(prototype: { '@@observable'(): unknown }): void {
  const symbol = (Symbol as { readonly observable?: symbol }).observable;
  if (symbol !== undefined) Object.defineProperty(prototype, symbol, { value: prototype['@@observable'], configurable: true });
}

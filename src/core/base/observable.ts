// The views of progress that others may watch, without knowing who watches.
//
// A `Hub` is a list of listeners. `src/reactive` turns hubs into Observables: it passes its maker to
// `installObservableFactory` when the library loads, so that core imports no rxjs and still has `operations$`.
// Thread: owner.

/**
 * An Observable of `T`: RxJS's `Observable`. The interface is empty here, and `src/reactive` merges RxJS's declaration into it:
 * `declare module './observable.js' { interface ObservableOf<T> extends Observable<T> {} }`.
 */
export interface ObservableOf<T> {} // oxlint-disable-line no-unused-vars -- filled by declaration merging.

/** What a listener hears. After `error` or `complete` it hears nothing more. */
export interface Listener<T> {
  /** Called with every value. */
  next(value: T): void;
  /** Called once, when the source ends with an error. */
  error?(error: unknown): void;
  /** Called once, when the source ends without an error. */
  complete?(): void;
}

/** What can be observed: hot, shared, without replay. A listener added after the end hears only the end. */
export interface Observed<T> {
  /** Is anybody listening? Work done only for listeners is skipped when not. */
  readonly observed: boolean;
  /** Returns what removes it. */
  add(listener: Listener<T>): () => void;
  /** Somebody awaits the next value, until the returned function is called: what is on its way keeps the process alive as long. */
  expect(): () => void;
}

type Ending = { readonly kind: 'complete' } | { readonly kind: 'error'; readonly error: unknown };

interface Entry<T> {
  readonly listener: Listener<T>;
  isRemoved: boolean;
}

/** The only implementation of Observed: its owner calls `next`. A listener's exception is thrown on a turn of its own. */
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

  /** Does anybody await the next value? */
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
    // An entry of its own: the same listener may be added twice and removed once.
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

// Of all hubs of the thread. A listener may cause another value or an end: all listeners hear that after the present one.
const queue: (() => void)[] = [];
let isDelivering = false;

function deliver(emission: () => void): void {
  if (isDelivering) queue.push(emission);
  else together(emission);
}

/** What `emit` gives to hubs is heard in this order, and what listeners cause meanwhile after all of it. */
export function together(emit: () => void): void {
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

/** One listener's mistake must not silence the others, nor stop the settling of promises. */
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

/** An Observable view of a hub; made when a `$` getter is first read. */
export function observe<T>(source: Observed<T>): ObservableOf<T> {
  if (factory === undefined) throw new Error('No Observable factory is installed; import millrace by its main entry.');
  return factory(source);
}

/**
 * Observable libraries recognise each other's objects by `Symbol.observable`, or by this name where nobody defined the
 * symbol. Classes have the method under the name; this adds the symbol.
 */
export function addObservableSymbol(prototype: { '@@observable'(): unknown }): void {
  const symbol = (Symbol as { readonly observable?: symbol }).observable;
  if (symbol !== undefined) Object.defineProperty(prototype, symbol, { value: prototype['@@observable'], configurable: true });
}

// Async iterators over a hub with a bounded buffer. A reader that falls behind either loses the oldest entries, which the
// iterator counts and warns of once, or gets an error.
import { MillraceError } from './errors.js';
import type { Observed } from './observable.js';

/**
 * An async iterator over finished operations with a bounded buffer. A slow reader loses the oldest ones beyond the bound, or gets an error,
 * as the `overflow` or policy of the call says. `return()` or leaving a `for await` ends it.
 */
export interface ObservedIterator<T> extends AsyncIterableIterator<T> {
  /** Entries lost because the reader was too slow. */
  readonly dropped: number;
}

/** The bound of the buffer, and what happens beyond it. */
export interface Limits {
  readonly buffered: number;
  readonly overflow: 'error' | 'drop-oldest' | 'drop-silently';
}

/**
 * Begins to listen at once. `name` is the name of the source in messages. While a reader waits, pending operations keep the process alive.
 */
export class HubIterator<T> implements ObservedIterator<T> {
  readonly #name: string;
  readonly #limits: Limits;
  readonly #source: Observed<T>;
  readonly #remove: () => void;
  #buffer: T[] = [];
  #readers: { resolve(result: IteratorResult<T>): void; reject(error: unknown): void }[] = [];
  #ending: { readonly error?: unknown } | undefined = undefined;
  #dropped = 0;
  #expected: (() => void) | undefined = undefined;

  constructor(source: Observed<T>, name: string, limits: Limits) {
    this.#name = name;
    this.#limits = limits;
    this.#source = source;
    this.#remove = source.add({
      next: (value) => this.#push(value),
      error: (error) => this.#end({ error }),
      complete: () => this.#end({}),
    });
  }

  get dropped(): number {
    return this.#dropped;
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#buffer.length > 0) return Promise.resolve({ done: false, value: this.#buffer.shift() as T });
    if (this.#ending === undefined) {
      this.#expected ??= this.#source.expect();
      return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
    }
    const { error } = this.#ending;
    this.#ending = {};
    return error === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
  }

  return(): Promise<IteratorResult<T>> {
    this.#remove();
    this.#buffer = [];
    this.#end({});
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Removes and returns at most `count` of the buffered entries. */
  take(count: number): T[] {
    return this.#buffer.splice(0, count);
  }

  #push(value: T): void {
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      if (this.#readers.length === 0) this.#expectNothing();
      reader.resolve({ done: false, value });
      return;
    }
    this.#buffer.push(value);
    const { buffered, overflow } = this.#limits;
    if (this.#buffer.length <= buffered) return;
    if (overflow === 'error') {
      this.#remove();
      this.#end({ error: this.#tooSlow() });
      return;
    }
    this.#buffer.shift();
    if (this.#dropped++ > 0 || overflow === 'drop-silently') return;
    const message = `A reader of ${this.#name} is slower than the device: entries older than the newest ${buffered} are dropped.`;
    process.emitWarning(message, { type: 'MillraceWarning', code: 'MILLRACE_DROPPED' });
  }

  #expectNothing(): void {
    this.#expected?.();
    this.#expected = undefined;
  }

  #tooSlow(): MillraceError {
    const { buffered } = this.#limits;
    return new MillraceError(
      'ERR_MILLRACE_OVERFLOW',
      `A reader of ${this.#name} is slower than the device: its unread entries exceed the limit (${buffered}).`,
    );
  }

  #end(ending: { readonly error?: unknown }): void {
    if (this.#ending !== undefined) return;
    const readers = this.#readers;
    this.#readers = [];
    this.#expectNothing();
    // The first reader gets the error, the others get the end of the iteration.
    this.#ending = readers.length > 0 ? {} : ending;
    for (const [at, reader] of readers.entries()) {
      if (at === 0 && ending.error !== undefined) reader.reject(ending.error);
      else reader.resolve({ done: true, value: undefined });
    }
  }
}

/** The entries of an iterator in arrays. */
export class BatchIterator<T> implements ObservedIterator<readonly T[]> {
  readonly #entries: HubIterator<T>;
  readonly #size: number;

  constructor(entries: HubIterator<T>, size: number) {
    this.#entries = entries;
    this.#size = size;
  }

  get dropped(): number {
    return this.#entries.dropped;
  }

  /** The next operation to finish, with those that finished at the same time. */
  async next(): Promise<IteratorResult<readonly T[]>> {
    const first = await this.#entries.next();
    return first.done === true ? first : { done: false, value: [first.value, ...this.#entries.take(this.#size - 1)] };
  }

  async return(): Promise<IteratorResult<readonly T[]>> {
    await this.#entries.return();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

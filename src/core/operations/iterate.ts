// Async iterators over a hub, named by what a slow reader loses. Each has a bounded buffer: a reader that falls behind
// either loses the oldest entries, which the iterator counts and says once, or is told by an error.
import { badArgument, checkInteger, show } from '../base/arguments.js';
import { MillraceError } from '../base/errors.js';
import type { ObservableOf, Observed } from '../base/observable.js';
import type { Operation } from './operation.js';

/** What `for await (const operation of stream)` buffers. */
export const BUFFERED = 1024;

/** `every`: all of them, as long as no more than so many wait; 'latest': only the newest. */
export type LossPolicy = { readonly every: number; readonly overflow?: 'error' | 'drop-oldest' } | 'latest';

/** As `every`, in arrays of at most so many: a reader takes all that have finished since it read last, for one await. */
export interface BatchPolicy {
  readonly batches: number;
  readonly overflow?: 'error' | 'drop-oldest';
}

export interface ObservedIterator<T> extends AsyncIterableIterator<T> {
  /** Entries lost because the reader was too slow. */
  readonly dropped: number;
}

interface Limits {
  readonly buffered: number;
  readonly overflow: 'error' | 'drop-oldest' | 'drop-silently';
}

class HubIterator<T> implements ObservedIterator<T> {
  readonly #name: string;
  readonly #limits: Limits;
  readonly #remove: () => void;
  #buffer: T[] = [];
  #readers: { resolve(result: IteratorResult<T>): void; reject(error: unknown): void }[] = [];
  #ending: { readonly error?: unknown } | undefined = undefined;
  #dropped = 0;

  constructor(source: Observed<T>, name: string, limits: Limits) {
    this.#name = name;
    this.#limits = limits;
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
    if (this.#ending === undefined) return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
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

  /** What waits, at most `count` of it. */
  take(count: number): T[] {
    return this.#buffer.splice(0, count);
  }

  #push(value: T): void {
    const reader = this.#readers.shift();
    if (reader !== undefined) {
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
    const message = `A reader of ${this.#name} is slower than the device: beyond the newest ${buffered} entries they are dropped.`;
    process.emitWarning(message, { type: 'MillraceWarning', code: 'MILLRACE_DROPPED' });
  }

  #tooSlow(): MillraceError {
    const { buffered } = this.#limits;
    return new MillraceError(
      'ERR_MILLRACE_OVERFLOW',
      `A reader of ${this.#name} is slower than the device: more than ${buffered} entries wait.`,
    );
  }

  #end(ending: { readonly error?: unknown }): void {
    if (this.#ending !== undefined) return;
    const readers = this.#readers;
    this.#readers = [];
    // The first reader hears the error, the others that it is over.
    this.#ending = readers.length > 0 ? {} : ending;
    for (const [at, reader] of readers.entries()) {
      if (at === 0 && ending.error !== undefined) reader.reject(ending.error);
      else reader.resolve({ done: true, value: undefined });
    }
  }
}

/** The entries of an iterator in arrays. */
class BatchIterator<T> implements ObservedIterator<readonly T[]> {
  readonly #entries: HubIterator<T>;
  readonly #size: number;

  constructor(entries: HubIterator<T>, size: number) {
    this.#entries = entries;
    this.#size = size;
  }

  get dropped(): number {
    return this.#entries.dropped;
  }

  /** The first one that comes, and those that finished with it. */
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

/** Begins to listen at once. `name` is what messages call the source. */
export function iterate<T>(
  source: Observed<T>,
  name: string,
  limits: Limits = { buffered: BUFFERED, overflow: 'drop-oldest' },
): ObservedIterator<T> {
  return new HubIterator(source, name, limits);
}

/** What finished operations can be read from: a stream, or a device for all its streams. */
export interface OperationSource {
  readonly operations$: ObservableOf<Operation>;
  /** @internal */
  readonly hub: Observed<Operation>;
  /** @internal */
  readonly hubName: string;
}

/** The finished operations of a stream or device, from when the iterator is made. */
export function operationsOf(of: OperationSource, policy: LossPolicy): AsyncIterable<Operation>;
export function operationsOf(of: OperationSource, policy: BatchPolicy): AsyncIterable<readonly Operation[]>;
export function operationsOf(
  of: OperationSource,
  policy: LossPolicy | BatchPolicy,
): AsyncIterable<Operation> | AsyncIterable<readonly Operation[]> {
  const limits = checkPolicy(policy);
  const entries = (): HubIterator<Operation> => new HubIterator(of.hub, of.hubName, limits);
  if (typeof policy === 'object' && 'batches' in policy)
    return { [Symbol.asyncIterator]: () => new BatchIterator(entries(), limits.buffered) };
  return { [Symbol.asyncIterator]: entries };
}

function checkPolicy(policy: LossPolicy | BatchPolicy): Limits {
  if (policy === 'latest') return { buffered: 1, overflow: 'drop-silently' };
  if (typeof policy !== 'object' || policy === null) {
    throw badArgument('policy', policy, `The policy (${show(policy)}) is none of 'latest', { every }, { batches }.`);
  }
  const { overflow = 'error' } = policy;
  if (overflow !== 'error' && overflow !== 'drop-oldest') {
    throw badArgument('overflow', overflow, `The overflow (${show(overflow)}) is none of 'error', 'drop-oldest'.`);
  }
  const buffered = 'batches' in policy ? checkInteger('batches', policy.batches, 1) : checkInteger('every', policy.every, 1);
  return { buffered, overflow };
}

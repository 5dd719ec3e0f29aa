// The sources of a run. Iterables are pulled one item at a time. An Observable does not wait for a free lane, so its values
// go through a queue, whose bound and overflow policy are options.
// Thread: owner.
import type { Observable } from 'rxjs';
import { badArgument, checkInteger, show } from '../core/base/arguments.js';
import { LimitError, StateError } from '../core/base/errors.js';
import { isPromiseLike } from '../core/base/promise-like.js';
import type { Skipped } from './error-policy.js';
import { isObservable } from './observe.js';
import { missing } from './missing-option.js';

/**
 * Items that are pulled one at a time: arrays, generators, Node and web streams. `return()` is called when the run ends early. Promises of
 * an iterable are awaited, one at a time, as `for await` does. A string is no source.
 */
export type PullSource<T> = (Iterable<T | PromiseLike<T>> | AsyncIterable<T> | ReadableStream<T>) & object;
/** The items, or a function that makes a source for every run; `retry`, `repeat` and a second subscriber each start another run. */
export type Source<T> = PullSource<T> | (() => PullSource<T>);
/** An Observable of the items, or a function that makes one for every run. Values that are promises are not awaited, as in RxJS. */
export type PushSource<T> = Observable<T> | (() => Observable<T>);

/** What happens to a value of an Observable that comes while every lane is occupied. */
export interface OverflowOptions {
  /**
   * 'buffer': the value waits; if `maxQueue` values wait already, the run ends with a LimitError. 'latest': the value waits; if more than
   * `maxQueue` values wait, the oldest is dropped. 'drop': the value waits, or is dropped if `maxQueue` values wait already. 'fail': the
   * run ends with a LimitError. `onSkip` is called with dropped values, and `report()` counts them.
   */
  readonly overflow: 'buffer' | 'latest' | 'drop' | 'fail';
  /** The most values that wait for a lane. Required by 'buffer', where Infinity means no limit. Default: 1 for 'latest', 0 for 'drop'. */
  readonly maxQueue?: number;
}

const OVERFLOWS: readonly OverflowOptions['overflow'][] = ['buffer', 'latest', 'drop', 'fail'];

/** A source that a run has opened. */
export type Opened<T> = Iterator<T> | AsyncIterator<T>;

const DONE = { done: true, value: undefined } as const;

/** The state of a run that its source uses. */
export interface SourceHost<T> {
  /** Lanes that are free now. */
  readonly freeLanes: () => number;
  /** A value has left the queue of the source; it will occupy a lane in a moment. */
  readonly onTake: () => void;
  readonly onDrop: (skipped: Skipped<T>) => void;
}

/** Opens the source for one run. */
export type OpenSource<T> = (host: SourceHost<T>) => Opened<T>;

/** Checks a source and its overflow policy. If the source is a function, its result is checked when a run calls it. */
export function checkSource<T>(source: unknown, { overflow, maxQueue }: Partial<OverflowOptions>): OpenSource<T> {
  const bound = checkOverflow(overflow, maxQueue);
  if (typeof source !== 'function' || isObservable(source)) return openerOf<T>(source, overflow, bound);
  return (host) => openerOf<T>((source as () => unknown)(), overflow, bound)(host);
}

function openerOf<T>(source: unknown, overflow: OverflowOptions['overflow'] | undefined, maxQueue: number): OpenSource<T> {
  // What `overlap` returns is both: with `overflow` it is subscribed to, else iterated.
  if (overflow !== undefined && isObservable<T>(source)) return (host) => new PushQueue(source, overflow, maxQueue, host);
  if (typeof source === 'object' && source !== null) {
    const isAsync = Symbol.asyncIterator in source;
    if (isAsync || Symbol.iterator in source) {
      if (overflow !== undefined)
        throw badArgument(
          'overflow',
          overflow,
          `overflow (${show(overflow)}) is only for Observables: this source is iterable, and an item is taken only when a lane is free.`,
        );
      return () => {
        if (isAsync) return unused(source, (source as AsyncIterable<T>)[Symbol.asyncIterator]());
        if (Array.isArray(source)) handleRejections(source);
        return awaiting(unused(source, (source as Iterable<T | PromiseLike<T>>)[Symbol.iterator]()));
      };
    }
  }
  if (isObservable<T>(source)) {
    const what =
      "an Observable does not wait for a free lane, so say what happens to its values meanwhile, 'latest', 'drop', 'buffer' with maxQueue, or 'fail'";
    throw missing('overflow', what, "{ overflow: 'latest' }");
  }
  const hint = isPromiseLike(source) ? ': await it first' : typeof source === 'string' ? ': put it into an array, if it is one item' : '';
  const message = `The source (${show(source)}) is not an iterable, async iterable or Observable of items, nor a function that returns one${hint}.`;
  throw badArgument('source', source, message);
}

/** Generators that a run has taken items from. */
const used: WeakSet<object> = new WeakSet();

/**
 * The iterator that the source opened. Throws for a generator that a run has used: a second run would get no items and end at once without
 * an error.
 */
function unused<I>(source: object, opened: I): I {
  if (typeof (opened as { readonly next?: unknown } | null | undefined)?.next !== 'function') {
    const message = `The iterator that the source returned (${show(opened)}) is not an object with next().`;
    throw badArgument('source', opened, message);
  }
  if ((opened as unknown) !== source) return opened;
  if (used.has(source)) {
    const message = 'An earlier run has already read this generator: give a function that makes one for each run, such as () => frames().';
    throw new StateError('ERR_MILLRACE_STATE', message);
  }
  used.add(source);
  return opened;
}

/** Marks the promises of an array as handled: the run awaits one at a time, and another one may reject meanwhile or after its end. */
function handleRejections(items: readonly unknown[]): void {
  for (const item of items) if (item instanceof Promise) item.catch(() => undefined);
}

/** Refuses what iterators must not return, as `for of` does. */
export function checkPulled<R>(result: R): R {
  if ((typeof result === 'object' && result !== null) || typeof result === 'function') return result;
  throw badArgument('source', result, `The next() of the source returned ${show(result)}, not an object with \`done\` and \`value\`.`);
}

/** The items of an iterator, promises awaited. A promise that rejects closes the iterator. */
function awaiting<T>(items: Iterator<T | PromiseLike<T>>): Opened<T> {
  const settled = async (value: PromiseLike<T>): Promise<IteratorResult<T>> => {
    try {
      return { done: false, value: await value };
    } catch (error) {
      try {
        items.return?.();
      } catch {
        // The promise failed first.
      }
      throw error;
    }
  };
  const next = (): IteratorResult<T> | Promise<IteratorResult<T>> => {
    const taken = checkPulled(items.next());
    if (taken.done === true || !isPromiseLike<T>(taken.value)) return taken as IteratorResult<T>;
    return settled(taken.value);
  };
  return { next, return: () => items.return?.() ?? DONE } as Opened<T>;
}

/** How many values may wait. */
function checkOverflow(overflow: OverflowOptions['overflow'] | undefined, maxQueue: number | undefined): number {
  if (overflow !== undefined && !OVERFLOWS.includes(overflow))
    throw badArgument('overflow', overflow, `overflow (${show(overflow)}) is not 'buffer', 'latest', 'drop' or 'fail'.`);
  if (maxQueue !== undefined && (overflow === undefined || overflow === 'fail'))
    throw badArgument('maxQueue', maxQueue, `maxQueue (${show(maxQueue)}) requires overflow 'buffer', 'latest' or 'drop'.`);
  if (overflow === 'buffer' && maxQueue === Number.POSITIVE_INFINITY) return maxQueue;
  if (overflow === 'buffer' && maxQueue === undefined)
    throw missing(
      'maxQueue',
      'how many values may wait for a lane, a whole number from 1, or Infinity',
      "{ overflow: 'buffer', maxQueue: 100 }",
    );
  if (maxQueue === undefined) return overflow === 'latest' ? 1 : 0;
  return checkInteger('maxQueue', maxQueue, overflow === 'drop' ? 0 : 1);
}

/** The values of an Observable as an iterator, for one run. */
class PushQueue<T> implements AsyncIterator<T, undefined> {
  readonly #source: Observable<T>;
  readonly #overflow: OverflowOptions['overflow'];
  readonly #maxQueue: number;
  readonly #host: SourceHost<T>;
  readonly #queue: T[] = [];
  #subscription: { unsubscribe(): void } | undefined;
  #end: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(source: Observable<T>, overflow: OverflowOptions['overflow'], maxQueue: number, host: SourceHost<T>) {
    this.#source = source;
    this.#overflow = overflow;
    this.#maxQueue = maxQueue;
    this.#host = host;
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    this.#subscription ??= this.#subscribe();
    for (;;) {
      if (this.#queue.length > 0) {
        this.#host.onTake();
        return { done: false, value: this.#queue.shift() as T };
      }
      if (this.#end) {
        if ('error' in this.#end) throw this.#end.error;
        return DONE;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#queue.length = 0;
    this.#finish({});
    return Promise.resolve(DONE);
  }

  #subscribe(): { unsubscribe(): void } {
    // A synchronous source may end before `subscribe` returns.
    const subscription = this.#source.subscribe({
      next: (value) => this.#put(value),
      error: (error: unknown) => this.#finish({ error }),
      complete: () => this.#finish({}),
    });
    if (this.#end) subscription.unsubscribe();
    return subscription;
  }

  #put(value: T): void {
    if (this.#end) return;
    this.#queue.push(value);
    // The first `free` values go to the free lanes at once; only the others count as waiting.
    const free = this.#host.freeLanes();
    if (this.#queue.length - free > this.#maxQueue) this.#overflowBy(value, free);
    this.#notify();
  }

  /** Applies the policy when `value`, the last one of the queue, is one too many. The first `free` values do not wait. */
  #overflowBy(value: T, free: number): void {
    try {
      if (this.#overflow === 'latest') this.#host.onDrop({ item: this.#queue.splice(free, 1)[0] as T, reason: 'overflow' });
      else this.#queue.pop();
      if (this.#overflow === 'drop') this.#host.onDrop({ item: value, reason: 'overflow' });
    } catch (error) {
      return this.#finish({ error });
    }
    if (this.#overflow === 'latest' || this.#overflow === 'drop') return;
    const message = `The Observable emitted while every lane was occupied and ${this.#maxQueue} values waited (maxQueue).`;
    this.#finish({ error: new LimitError('ERR_MILLRACE_LIMIT', message, this.#maxQueue, () => Promise.resolve()) });
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#subscription?.unsubscribe();
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}

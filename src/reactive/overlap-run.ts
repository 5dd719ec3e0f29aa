// One run of `overlap`: from the first pull of its source to the last result, or to whatever ends it early.
//
// The rules:
//  - An item is taken from the source only when a lane is free, one at a time; so never more than N items are open.
//  - A lane is free again when its item's results were taken *and* the taker came back for more, so a slow consumer
//    holds the source. No result is memory of the lane, which its next item writes to.
//  - An item's results appear together, when its stage has succeeded; so a retry never shows half of an attempt twice.
//  - A failure takes its item's place in the order: earlier items are still delivered, later ones are aborted at once.
//  - Nothing is released while a stage runs. A stage that ignores `lane.signal` holds the end of the run up, because
//    the pinned arrays it may be writing to cannot be given to anybody else.
//
// Thread: owner. Nothing here rejects without a reader: stages, pulls and the end of the run each have a handler.
import { addAbortListener } from 'node:events';
import type { Observable } from 'rxjs';
import { AbortError, ArgumentError, DeviceLostError } from '../core/base/errors.js';
import type { Device } from '../core/api/device.js';
import { isPromiseLike } from '../core/base/promise-like.js';
import type { Lane, LaneSet, OwnedLane } from './lane.js';
import type { Meter } from './meter.js';
import { observable, rx } from './observe.js';
import type { Staged } from './overlap.js';

export interface RunSettings<T, R> {
  readonly device: Device;
  readonly source: Iterable<T> | AsyncIterable<T>;
  readonly stage: (item: T, lane: Lane) => Staged<R>;
  readonly isOrdered: boolean;
  readonly signal: AbortSignal | undefined;
  /** Attempts after the first one. */
  readonly retries: number;
  readonly isSkipping: boolean;
  readonly meter: Meter;
}

/** An item between its pull and the release of its lane. */
interface Item<R> {
  readonly lane: OwnedLane;
  readonly abort: AbortController;
  state: 'working' | 'ready' | 'failed' | 'skipped';
  results: readonly R[];
  taken: number;
  error: unknown;
}

type RunState = 'idle' | 'running' | 'closing';

export class OverlapRun<T, R> {
  readonly #settings: RunSettings<T, R>;
  readonly #makeSimd: () => LaneSet;
  #lanes: LaneSet | undefined;
  #free: OwnedLane[] = [];
  /** Open items: in the order of the source, or (unordered) those that settled first in front. */
  readonly #open: Item<R>[] = [];
  readonly #working: Set<Promise<void>> = new Set();
  /** Undefined before the first pull, and again when the source has ended by itself. */
  #iterator: Iterator<T> | AsyncIterator<T> | undefined;
  #isPulling = false;
  /** No further item will be taken: the source ended or failed, or an item failed. */
  #isExhausted = false;
  /** What ends the run once everything in front of it was delivered. */
  #sourceFailure: { readonly error: unknown } | undefined;
  /** What ends the run at once. */
  #abortFailure: { readonly error: unknown } | undefined;
  #abortListener: Disposable | undefined;
  /** The item whose last result the consumer is still using. */
  #held: Item<R> | undefined;
  #wake: (() => void) | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #state: RunState = 'idle';
  #closed: Promise<void> | undefined;
  itemCount = 0;
  skippedCount = 0;

  /** Lanes are made when the first result is asked for. */
  constructor(settings: RunSettings<T, R>, makeSimd: () => LaneSet) {
    this.#settings = settings;
    this.#makeSimd = makeSimd;
  }

  /** The next result. Asking for it says that the one before is no longer used. */
  next(): Promise<IteratorResult<R, undefined>> {
    const result = this.#turn.then(() => this.#take());
    // Calls are answered one after another; a failed one must not stop those behind it.
    this.#turn = result.then(undefined, () => undefined);
    return result;
  }

  /** Ends the run: closes the source, aborts the lanes, waits for their stages, frees what they hold. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #take(): Promise<IteratorResult<R, undefined>> {
    this.#settings.meter.set('consumer', false);
    if (this.#state === 'idle') this.#start();
    this.#releaseHeld();
    for (;;) {
      if (this.#state === 'closing') return { done: true, value: undefined };
      if (this.#abortFailure) return this.#fail(this.#abortFailure.error);
      const item = this.#open[0];
      if (item && item.state !== 'working') {
        if (item.state === 'failed') return this.#fail(item.error);
        if (item.taken < item.results.length) return this.#deliver(item);
        this.#open.shift();
        this.#release(item);
      } else if (!item && this.#sourceFailure) {
        return this.#fail(this.#sourceFailure.error);
      } else if (!item && this.#isExhausted && !this.#isPulling) {
        await this.close();
        return { done: true, value: undefined };
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  #deliver(item: Item<R>): IteratorResult<R, undefined> {
    const value = item.results[item.taken++] as R;
    if (item.taken === item.results.length) {
      this.#open.shift();
      this.#held = item;
    }
    this.#settings.meter.set('consumer', true);
    return { done: false, value };
  }

  async #fail(error: unknown): Promise<never> {
    // The first failure is what the consumer has to see; one while closing cannot replace it.
    await this.close().catch(() => undefined);
    throw error;
  }

  #start(): void {
    const { signal, source, meter } = this.#settings;
    this.#state = 'running';
    meter.start();
    if (signal?.aborted) return this.#onAbort(signal);
    if (signal) this.#abortListener = addAbortListener(signal, () => this.#onAbort(signal));
    try {
      this.#lanes = this.#makeSimd();
      this.#free = this.#lanes.lanes.toReversed();
      this.#iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
    } catch (error) {
      this.#abortFailure = { error };
    }
    this.#pull();
  }

  #onAbort(signal: AbortSignal): void {
    this.#abortFailure = { error: new AbortError(signal) };
    this.#isExhausted = true;
    for (const item of this.#open) item.abort.abort(signal.reason);
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Takes the next item if a lane is free for it. */
  #pull(): void {
    const iterator = this.#iterator;
    if (!iterator || this.#isPulling || this.#isExhausted || this.#state !== 'running' || this.#free.length === 0) return;
    this.#isPulling = true;
    this.#settings.meter.set('source', true);
    void this.#pullOne(iterator).then(() => {
      this.#isPulling = false;
      this.#settings.meter.set('source', false);
      this.#pull();
      this.#notify();
    });
  }

  async #pullOne(iterator: Iterator<T> | AsyncIterator<T>): Promise<void> {
    try {
      const pulled = await iterator.next();
      if (pulled.done) this.#endSource();
      else if (!this.#isExhausted && this.#state === 'running') this.#begin(pulled.value);
    } catch (error) {
      this.#endSource();
      this.#sourceFailure = { error };
    }
  }

  #endSource(): void {
    this.#isExhausted = true;
    this.#iterator = undefined;
  }

  #begin(value: T): void {
    const lane = this.#free.pop() as OwnedLane;
    const item: Item<R> = { lane, abort: new AbortController(), state: 'working', results: [], taken: 0, error: undefined };
    this.#open.push(item);
    const work = this.#work(item, value).then(() => {
      this.#working.delete(work);
      this.#settings.meter.set('stage', false);
      if (!this.#settings.isOrdered) this.#moveSettledForward(item);
      this.#notify();
    });
    this.#working.add(work);
    this.#settings.meter.set('stage', this.#working.size === this.#lanes?.lanes.length);
  }

  /** Runs the stage until it succeeds or its attempts are used up; never rejects. */
  async #work(item: Item<R>, value: T): Promise<void> {
    const { stage, retries, isSkipping } = this.#settings;
    for (let attempt = 0; ; attempt++) {
      const lane = item.lane.begin(item.abort.signal);
      try {
        item.results = await settle(() => stage(value, lane), item.abort.signal);
        for (const result of item.results) item.lane.checkResult(result);
        item.state = 'ready';
        this.itemCount++;
        return;
      } catch (error) {
        const isFinal = item.abort.signal.aborted || this.#isDeviceGone(error);
        if (isFinal || (attempt >= retries && !isSkipping)) return this.#failItem(item, error);
      }
      // The device may still be copying to or from pinned arrays that the next attempt or item writes to.
      await lane.stream.synchronize().catch(() => undefined);
      if (attempt < retries) continue;
      item.state = 'skipped';
      this.skippedCount++;
      return;
    }
  }

  /** Without its device every item would fail: skipping or trying again could only run the source dry. */
  #isDeviceGone(error: unknown): boolean {
    return error instanceof DeviceLostError || this.#settings.device.state !== 'open';
  }

  #failItem(item: Item<R>, error: unknown): void {
    item.state = 'failed';
    item.error = error;
    this.#isExhausted = true;
    const from = this.#settings.isOrdered ? this.#open.indexOf(item) + 1 : 0;
    for (const later of this.#open.slice(from)) if (later !== item) later.abort.abort(error);
  }

  #moveSettledForward(item: Item<R>): void {
    const at = this.#open.indexOf(item);
    const firstWorking = this.#open.findIndex((other) => other.state === 'working');
    if (firstWorking === -1 || firstWorking > at) return;
    this.#open.splice(at, 1);
    this.#open.splice(firstWorking, 0, item);
  }

  #releaseHeld(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held) this.#release(held);
  }

  #release(item: Item<R>): void {
    this.#free.push(item.lane);
    this.#pull();
  }

  async #close(): Promise<void> {
    this.#state = 'closing';
    this.#abortListener?.[Symbol.dispose]();
    this.#settings.meter.set('consumer', false);
    for (const item of this.#open) item.abort.abort();
    this.#notify();
    const [source] = await Promise.allSettled([closeIterator(this.#iterator, this.#isPulling), ...this.#working]);
    this.#settings.meter.stop();
    await this.#lanes?.close();
    if (source.status === 'rejected') throw source.reason;
  }
}

/** Tells the source that nothing more is wanted. One that is still busy with a pull may never answer: it is not waited for. */
async function closeIterator<T>(iterator: Iterator<T> | AsyncIterator<T> | undefined, isPulling: boolean): Promise<void> {
  const answer = Promise.resolve(iterator?.return?.());
  if (isPulling) answer.catch(() => undefined);
  else await answer;
}

/** All that a stage gives, as an array. */
async function settle<R>(run: () => Staged<R>, signal: AbortSignal): Promise<readonly R[]> {
  const staged: unknown = run();
  if (isPromiseLike<R>(staged)) return [await staged];
  if (isObservableLike<R>(staged)) return collect(staged, signal);
  throw new ArgumentError('ERR_MILLRACE_ARGUMENT', `A stage returns a promise or an Observable, not ${describe(staged)}.`, {
    argument: 'stage',
    value: staged,
  });
}

/** All values of an Observable when it completes; rejects, and unsubscribes, when the item is aborted before. */
function collect<R>(staged: Observable<R>, signal: AbortSignal): Promise<R[]> {
  const { from, lastValueFrom, race, toArray } = rx();
  const aborted = observable<never>((sink) => {
    const listener = addAbortListener(signal, () => sink.error(signal.reason));
    return () => listener[Symbol.dispose]();
  });
  return lastValueFrom(race(aborted, from(staged).pipe(toArray())));
}

function isObservableLike<R>(value: unknown): value is Observable<R> {
  return typeof (value as { subscribe?: unknown } | undefined)?.subscribe === 'function';
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'object' ? `a ${value.constructor?.name ?? 'plain object'}` : `a ${typeof value}`;
}

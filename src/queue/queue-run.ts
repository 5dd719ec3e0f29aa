// One run of `overlapQueue`.
//
// The rules:
//  - An item is asked for only when a lane is free. It counts as unacknowledged from its arrival until the server has confirmed its end, and there are
//    never more of those than lanes.
//  - The lane stays with the item until its result is stored and it is acknowledged.
//  - Each item is settled once: acknowledged, given back or made a dead letter. What comes later, from a stage that was too slow, is dropped.
//  - A server that does not answer holds up what needs it, and is asked again.
//
// Thread: owner.
import { DeviceLostError, ArgumentError, StateError, UnavailableError } from '../core/base/errors.js';
import { badArgument } from '../core/base/arguments.js';
import { isPromiseLike } from '../core/base/promise-like.js';
import { clearTimeout, setTimeout } from '../core/base/timers.js';
import { onAbort } from '../core/waits/abort-listeners.js';
import { type ErrorPolicy, firstCause } from '../reactive/error-policy.js';
import type { Lane, LaneTurn } from '../reactive/lane.js';
import type { Devices } from '../reactive/lane-pool.js';
import { isObservable } from '../reactive/observe.js';
import { overlap, type LaneOptions, type Overlapped } from '../reactive/overlap.js';
import type { OpenedSink, OpenedSource, QueueDelivery, QueueSink, QueueSource } from './adapter.js';
import type { QueueFailure, QueueReport, QueueStage } from './queue-options.js';

export interface WorkSettings<T, R> {
  readonly source: QueueSource<T>;
  readonly stage: QueueStage<T, R>;
  readonly sink: QueueSink<R>;
  readonly lanes: Pick<LaneOptions, 'depth' | 'streams' | 'stageTimeoutMs'>;
  readonly policy: ErrorPolicy<unknown>;
  readonly onFailure: (failure: QueueFailure) => void;
  readonly signal: AbortSignal | undefined;
  readonly drainOn: readonly NodeJS.Signals[];
  readonly drainTimeoutMs: number;
}

/** An item between its arrival and its end. */
interface OpenItem<T> {
  readonly delivery: QueueDelivery<T>;
  /** Its end has been decided. */
  isSettled: boolean;
}

/** Between questions to a server that does not answer: doubled up to the longest. */
const RETRY_MS = { first: 100, most: 5000 } as const;
/** The time that stages have to end when their lanes were aborted, and the server to take what was given back. The run waits no longer. */
const GRACE_MS = 500;
/** "In progress" is told so many times within `ackWaitMs`, so that a late turn of the event loop costs no item. */
const TOLD_PER_WAIT = 4;

export class QueueWork<T, R> {
  readonly #settings: WorkSettings<T, R>;
  readonly #overlapped: Overlapped<undefined>;
  readonly #open: Set<OpenItem<T>> = new Set();
  /** Ends of items that are on their way to the server. */
  readonly #ends: Set<Promise<void>> = new Set();
  readonly #counts = { stored: 0, duplicates: 0, redelivered: 0, givenBack: 0, deadLettered: 0, unsettled: 0, mostUnacknowledged: 0 };
  /** Aborts the lanes. */
  readonly #abort: AbortController = new AbortController();
  #isDraining = false;
  #source: OpenedSource<T> | undefined;
  #sink: OpenedSink<R> | undefined;
  /** A request for an item that has not been answered, or the pause after one that failed. */
  #asking: Promise<void> | undefined;
  /** Requests that have failed one after another. */
  #failures = 0;
  /** An item that has come, and that the source of `overlap` gives next. */
  #answer: OpenItem<T> | undefined;
  #wake: (() => void) | undefined;
  #endNow: () => void = () => undefined;
  /** The lanes had their time to end. */
  readonly #gaveUp: Promise<void> = new Promise((resolve) => (this.#endNow = resolve));
  #failure: { readonly error: unknown } | undefined;
  #done: Promise<QueueReport> | undefined;
  #drainTimer: NodeJS.Timeout | undefined;

  /** Throws ArgumentError for devices and options of lanes. Opens nothing. */
  constructor(device: Devices, settings: WorkSettings<T, R>) {
    this.#settings = settings;
    const items = { [Symbol.asyncIterator]: () => ({ next: () => this.#next() }) };
    const onSkip = ({ item, error }: { readonly item: OpenItem<T>; readonly error?: unknown }): void => void this.#fail(item, error, false);
    const opts = { ...settings.lanes, ordered: false, onError: 'skip', onSkip, signal: this.#abort.signal } as const;
    this.#overlapped = overlap<OpenItem<T>, undefined>(device, items, opts, (item, lane) => this.#work(item, lane as Lane & LaneTurn));
  }

  start(): Promise<QueueReport> {
    this.#done = this.#run();
    return this.#done;
  }

  readonly drain = (): Promise<QueueReport> => {
    if (!this.#isDraining) {
      this.#isDraining = true;
      if (this.#answer) void this.#giveBack(this.#answer);
      this.#answer = undefined;
      this.#notify();
      this.#drainTimer = setTimeout(() => this.#giveUp(), this.#settings.drainTimeoutMs);
    }
    return this.#done as Promise<QueueReport>;
  };

  readonly report = (): QueueReport => ({ ...this.#overlapped.report(), ...this.#counts, unacknowledged: this.#open.size });

  async #run(): Promise<QueueReport> {
    const { signal, drainOn } = this.#settings;
    const drain = (): void => void this.drain().catch(() => undefined);
    for (const name of drainOn) process.on(name, drain);
    const stopListening = signal && onAbort(signal, drain);
    let stopTelling: (() => void) | undefined;
    try {
      // The promise of `done` exists before anything is asked of it.
      await Promise.resolve();
      if (signal?.aborted) drain();
      await this.#openBoth();
      stopTelling = this.#tell();
      await Promise.race([this.#drainLanes(), this.#gaveUp]);
    } catch (error) {
      // The abort is the run's own.
      if (!this.#abort.signal.aborted) this.#failure ??= { error };
    }
    drain();
    await Promise.race([this.#asking, this.#gaveUp]);
    for (const item of this.#open) void this.#giveBack(item);
    await Promise.race([Promise.all(this.#ends), this.#gaveUp]);
    stopTelling?.();
    stopListening?.();
    clearTimeout(this.#drainTimer);
    for (const name of drainOn) process.off(name, drain);
    await Promise.allSettled([this.#source?.close(), this.#sink?.close()]);
    if (this.#failure) throw this.#failure.error;
    return this.report();
  }

  async #drainLanes(): Promise<void> {
    // Its results are nothing: the stage has stored them.
    for await (const _ of this.#overlapped);
  }

  async #openBoth(): Promise<void> {
    const { source, sink } = this.#settings;
    const [opened, openedSink] = await Promise.allSettled([source.open(), sink.open()]);
    if (opened.status === 'fulfilled') this.#source = opened.value;
    if (openedSink.status === 'fulfilled') this.#sink = openedSink.value;
    for (const each of [opened, openedSink]) if (each.status === 'rejected') throw each.reason;
    const { ackWaitMs } = this.#source as OpenedSource<T>;
    const { remembersMs } = this.#sink as OpenedSink<R>;
    if (remembersMs > ackWaitMs) return;
    const message = `The sink knows an id for ${remembersMs} ms, and an item is delivered again after ${ackWaitMs} ms: its result would be stored twice. Make the duplicate_window of the results' stream longer.`;
    throw badArgument('sink', this.#settings.sink, message, ackWaitMs);
  }

  /** Tells the server of the items that are still worked at. Returns what ends this. */
  #tell(): () => void {
    const everyMs = (this.#source as OpenedSource<T>).ackWaitMs / TOLD_PER_WAIT;
    const tell = (): void => {
      // A failure shows when the item ends.
      for (const { delivery, isSettled } of this.#open) if (!isSettled) delivery.working().catch(() => undefined);
      timer = setTimeout(tell, everyMs);
    };
    let timer = setTimeout(tell, everyMs);
    return () => clearTimeout(timer);
  }

  /** The next item for a free lane: the `next` of the source of `overlap`. */
  async #next(): Promise<IteratorResult<OpenItem<T>, undefined>> {
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      if (this.#isDraining) return { done: true, value: undefined };
      const item = this.#answer;
      this.#answer = undefined;
      if (item !== undefined) {
        const { id, deliveries } = item.delivery;
        if (deliveries <= this.#settings.policy.retries + 1) return { done: false, value: item };
        const message = `The item ${id} was delivered ${deliveries - 1} times, and no worker has finished it.`;
        void this.#fail(item, new StateError('ERR_MILLRACE_STATE', message), false);
      }
      if (this.#open.size < this.#overlapped.report().depth) this.#asking ??= this.#ask(this.#source as OpenedSource<T>);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Asks for an item. One that comes when the run drains is given back. */
  async #ask(source: OpenedSource<T>): Promise<void> {
    try {
      const delivery = await source.next();
      this.#failures = 0;
      if (delivery !== undefined && !this.#isDraining) this.#answer = this.#arrived(delivery);
      else if (delivery !== undefined) await this.#giveBack(this.#arrived(delivery));
    } catch (error) {
      if (error instanceof UnavailableError) await this.#pause(this.#failures++);
      else this.#failure ??= { error };
    }
    this.#asking = undefined;
    this.#notify();
  }

  #arrived(delivery: QueueDelivery<T>): OpenItem<T> {
    const item: OpenItem<T> = { delivery, isSettled: false };
    this.#open.add(item);
    this.#counts.mostUnacknowledged = Math.max(this.#counts.mostUnacknowledged, this.#open.size);
    if (delivery.deliveries > 1) this.#counts.redelivered++;
    return item;
  }

  /** The stage of `overlap`. */
  async #work(item: OpenItem<T>, lane: Lane & LaneTurn): Promise<undefined> {
    const { delivery } = item;
    try {
      const value = await resultOf(this.#settings.stage(delivery.data, lane, delivery), lane.signal);
      await lane.finished;
      lane.checkResult(value);
      if (value !== undefined) await this.#store(item, value as R);
    } catch (error) {
      await this.#fail(item, error, error instanceof DeviceLostError || lane.device.state !== 'open');
      throw error;
    }
    await this.#settle(item, undefined, () => delivery.ack());
    return undefined;
  }

  /** Stores the result; asks again while the server does not answer, with the lane occupied, so that no further item is taken. */
  async #store(item: OpenItem<T>, value: R): Promise<void> {
    const { id, deliveries } = item.delivery;
    for (let failures = 0; !item.isSettled; failures++) {
      try {
        const isNew = await (this.#sink as OpenedSink<R>).store(id, value, deliveries > 1);
        this.#counts[isNew ? 'stored' : 'duplicates']++;
        return;
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
      }
      await this.#pause(failures);
    }
  }

  /** Ends a delivery that failed: the item is given back, or becomes a dead letter. Never rejects. */
  async #fail(item: OpenItem<T>, thrown: unknown, isDeviceGone: boolean): Promise<void> {
    if (item.isSettled) return;
    if (isDeviceGone || this.#abort.signal.aborted) return this.#giveBack(item);
    const { policy, onFailure } = this.#settings;
    const { delivery } = item;
    const cause = firstCause(thrown);
    let isDead = delivery.deliveries > policy.retries;
    try {
      isDead ||= !policy.when(cause, delivery.deliveries);
      onFailure({ item: delivery, error: cause, isDead });
    } catch (error) {
      this.#failure ??= { error };
      void this.drain().catch(() => undefined);
    }
    if (isDead) await this.#settle(item, 'deadLettered', () => delivery.deadLetter(asError(cause)));
    else await this.#settle(item, 'givenBack', () => delivery.nak(policy.delayMs(delivery.deliveries)));
  }

  #giveBack(item: OpenItem<T>): Promise<void> {
    return this.#settle(item, 'givenBack', () => item.delivery.nak(0));
  }

  /** Ends the item, unless it has ended. Never rejects: an end that did not reach the server makes it deliver the item again. */
  #settle(item: OpenItem<T>, count: 'givenBack' | 'deadLettered' | undefined, call: () => Promise<void>): Promise<void> {
    if (item.isSettled) return Promise.resolve();
    item.isSettled = true;
    const end = call()
      .then(
        () => void (count && this.#counts[count]++),
        () => void this.#counts.unsettled++,
      )
      .then(() => {
        this.#open.delete(item);
        this.#ends.delete(end);
        this.#notify();
      });
    this.#ends.add(end);
    return end;
  }

  /** The items had their time to end: gives them back and aborts their lanes. */
  #giveUp(): void {
    for (const item of this.#open) void this.#giveBack(item);
    this.#abort.abort(new Error('The run was drained.'));
    this.#notify();
    this.#drainTimer = setTimeout(this.#endNow, GRACE_MS);
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Until the server is asked again, or the lanes are aborted. */
  #pause(failures: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(end, Math.min(RETRY_MS.first * 2 ** failures, RETRY_MS.most));
      const { signal } = this.#abort;
      const stopListening = onAbort(signal, end);
      function end(): void {
        clearTimeout(timer);
        stopListening();
        resolve();
      }
    });
  }
}

/** The one result of a stage; undefined if there is none. */
function resultOf<R>(staged: unknown, signal: AbortSignal): PromiseLike<R | undefined> {
  if (isPromiseLike<R | undefined>(staged)) return staged;
  if (!isObservable<R>(staged)) {
    const message = 'A stage must return a promise or an Observable.';
    return Promise.reject(new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'stage', value: staged }));
  }
  return new Promise((resolve, reject) => {
    const values: R[] = [];
    const end = (settle: () => void): void => {
      stopListening();
      settle();
      subscription?.unsubscribe();
    };
    const stopListening = onAbort(signal, () => end(() => reject(signal.reason)));
    let subscription: { unsubscribe(): void } | undefined = undefined;
    subscription = staged.subscribe({
      next: (value) => {
        if (values.push(value) === 1) return;
        const message = 'The stage emitted a second result of one item: an item of a queue has one.';
        end(() => reject(new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'stage', value: staged })));
      },
      error: (error) => end(() => reject(error)),
      complete: () => end(() => resolve(values[0])),
    });
  });
}

function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value), { cause: value });
}

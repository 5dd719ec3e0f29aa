// One run of `overlap`: from the first pull of its source to the last result, or to the event that ends it early.
//
// The rules:
//  - An item is taken from the source only when a lane is free, one at a time, so at most N items are open.
//  - A lane is free again when the consumer has taken its item's results and asked for more, so a slow consumer holds back
//    the source.
//  - A failure takes its item's place in the order: results of earlier items are still delivered, later items are aborted.
//  - The run ends when its stages have settled or exceeded `stageTimeoutMs`.
//
// Thread: owner. Nothing here rejects without a reader: stages, pulls and the end of the run each have a handler.
import { AbortError } from '../core/base/errors.js';
import { performance, setImmediate } from '../core/base/timers.js';
import { onAbort } from '../core/waits/abort-listeners.js';
import { AutoDepth } from './auto-depth.js';
import type { ErrorPolicy } from './error-policy.js';
import type { Slot } from './lane.js';
import type { Meter } from './meter.js';
import { type LaneLayout, LanePool } from './lane-pool.js';
import { checkPulled, type Opened, type OpenSource } from './sources.js';
import { type Emit, type Stage, StagedItem, type StageSettings } from './stage.js';

export interface RunSettings<T, R> {
  readonly source: OpenSource<T>;
  readonly layout: LaneLayout;
  readonly stage: Stage<T, R>;
  readonly policy: ErrorPolicy<T>;
  readonly isOrdered: boolean;
  readonly signal: AbortSignal | undefined;
  readonly meter: Meter;
}

/** What happened to the items of a run. */
export interface ItemCounts {
  items: number;
  skipped: number;
  dropped: number;
  retried: number;
}

/** A result, and the turn of the lane that made it. */
interface Result<R> {
  readonly value: R;
  readonly turn: Parameters<Emit<R>>[1];
}

/** An item between its pull and the release of its lane. */
interface OpenItem<R> {
  readonly slot: Slot;
  readonly abort: (reason?: unknown) => void;
  readonly results: Result<R>[];
  isWorking: boolean;
  failure: { readonly error: unknown } | undefined;
}

/** The event loop turns once, at the latest, after so many items, or when stages have kept it busy for so long, as with snapshots of large arrays. */
const PULLS_OF_A_TURN = 16;
/** Making the error and handing it on takes the event loop as long as so many items. */
const PULLS_OF_A_FAILURE = 4;
const BUSY_MS_OF_A_TURN = 1;

type RunState = 'idle' | 'running' | 'closing';

export class OverlapRun<T, R> {
  readonly #settings: RunSettings<T, R>;
  readonly #stage: StageSettings<T, R>;
  #slots: LanePool | undefined;
  #auto: AutoDepth | undefined;
  /** In the order of the source. */
  readonly #open: OpenItem<R>[] = [];
  /** Items whose stages have not ended. */
  #working = 0;
  /** Called when there are none any more. */
  #whenIdle: (() => void) | undefined;
  /** Undefined before the first pull, and after the source has ended. */
  #iterator: Opened<T> | undefined;
  #isPulling = false;
  /** A call of the source's `next` is pending. */
  #isAsked = false;
  #pulls = 0;
  /** How long stages have kept the event loop busy since the last turn. */
  #busyMs = 0;
  /** Values, none or one, that the source has given and that have no lane yet. */
  #taken = 0;
  /** No further item will be taken: the source ended or failed, or an item failed. */
  #isExhausted = false;
  /** Ends the run after the results of all earlier items were delivered. */
  #sourceFailure: { readonly error: unknown } | undefined;
  /** Ends the run at once. */
  #abortFailure: { readonly error: unknown } | undefined;
  #stopListening: (() => void) | undefined;
  #wake: (() => void) | undefined;
  /** Calls of `next` that are pending, and the last of them. */
  #asked = 0;
  #turn: Promise<unknown> | undefined;
  /** What `next` returned last. */
  #last: Result<R> | undefined;
  #state: RunState = 'idle';
  #closed: Promise<void> | undefined;
  readonly counts: ItemCounts = { items: 0, skipped: 0, dropped: 0, retried: 0 };

  /** Opens nothing: the first call of `next` opens the source and the lanes. */
  constructor(settings: RunSettings<T, R>) {
    this.#settings = settings;
    const { stage, policy, meter, layout } = settings;
    this.#stage = {
      stage,
      policy,
      meter,
      clock: layout.clock,
      onRetry: () => void this.counts.retried++,
      onLate: (slot) => this.#slots?.abandon(slot),
    };
  }

  /** The number of lanes. */
  get depth(): number {
    const { devices, depth } = this.#settings.layout;
    return this.#slots?.count ?? depth * devices.length;
  }

  /** The next result. The call also frees the lane of the result before it. */
  next(): Promise<IteratorResult<R, undefined>> {
    // A source that does not wait is subscribed to at once, or its next value would be missed.
    if (this.#state === 'idle') this.#start();
    // Calls are answered in order; a failed call does not stop the later ones.
    const take = (): Promise<IteratorResult<R, undefined>> => this.#take();
    this.#asked++;
    const result = this.#turn === undefined ? take() : this.#turn.then(take, take);
    this.#turn = this.#asked > 0 ? result : undefined;
    return result;
  }

  /** Disposes the detached arrays of the last result, because the consumer left before it got that result. */
  discardLast(): void {
    this.#last?.turn.discard(this.#last.value);
  }

  /** Ends the run: closes the source, aborts the lanes, waits for their stages, and frees their arrays and streams. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #take(): Promise<IteratorResult<R, undefined>> {
    this.#settings.meter.set('consumer', false);
    try {
      for (;;) {
        const taken = this.#tryTake();
        if (taken !== undefined) return taken instanceof Promise ? await taken : taken;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      if (--this.#asked === 0) this.#turn = undefined;
    }
  }

  /** The next result, or how the run ends; undefined: neither is known yet. */
  #tryTake(): IteratorResult<R, undefined> | Promise<IteratorResult<R, undefined>> | undefined {
    for (;;) {
      if (this.#state === 'closing') return { done: true, value: undefined };
      if (this.#abortFailure) return this.#fail(this.#abortFailure.error);
      const item = this.#nextToTake();
      if (item && item.results.length > 0) {
        this.#settings.meter.set('consumer', true);
        this.#last = item.results.shift() as Result<R>;
        return { done: false, value: this.#last.value };
      }
      if (item?.failure) return this.#fail(item.failure.error);
      if (item && !item.isWorking) {
        this.#open.splice(this.#open.indexOf(item), 1);
        this.#release(item.slot);
      } else if (this.#open.length === 0 && this.#sourceFailure) {
        return this.#fail(this.#sourceFailure.error);
      } else if (this.#open.length === 0 && this.#isExhausted && !this.#isPulling) {
        return this.close().then(() => ({ done: true, value: undefined }));
      } else return undefined;
    }
  }

  /** The item whose results come next; without `ordered`, any item that has results or has settled. */
  #nextToTake(): OpenItem<R> | undefined {
    if (this.#settings.isOrdered) return this.#open[0];
    return this.#open.find(({ failure }) => failure) ?? this.#open.find(({ results, isWorking }) => results.length > 0 || !isWorking);
  }

  async #fail(error: unknown): Promise<never> {
    // The consumer gets the first failure; a failure while closing does not replace it.
    await this.close().catch(() => undefined);
    throw error;
  }

  #start(): void {
    const { signal, source, layout, meter, policy } = this.#settings;
    this.#state = 'running';
    meter.start();
    if (signal?.aborted) return this.#abort(signal);
    if (signal) this.#stopListening = onAbort(signal, () => this.#abort(signal));
    try {
      const slots = new LanePool(layout);
      this.#slots = slots;
      if (layout.isAuto) this.#auto = new AutoDepth(slots, layout.clock.now);
      this.#iterator = source({
        freeLanes: () => slots.free - this.#taken,
        onTake: () => void (this.#taken = 1),
        onDrop: (skipped) => {
          this.counts.dropped++;
          policy.onSkip(skipped);
        },
      });
    } catch (error) {
      this.#abortFailure = { error };
    }
    this.#pull();
  }

  #abort(signal: AbortSignal): void {
    this.#abortFailure = { error: new AbortError(signal) };
    this.#isExhausted = true;
    for (const item of this.#open) item.abort(signal.reason);
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Takes the next item if a lane is free for it. */
  #pull(): void {
    const iterator = this.#iterator;
    if (!iterator || this.#isPulling || this.#isExhausted || this.#state !== 'running' || this.#slots?.free === 0) return;
    this.#isPulling = true;
    this.#settings.meter.set('source', true);
    void this.#pullOne(iterator);
  }

  async #pullOne(iterator: Opened<T>): Promise<void> {
    try {
      // The source and the stage may do without the event loop, which turns all the same, for timers and signals.
      if (++this.#pulls >= PULLS_OF_A_TURN || this.#busyMs >= BUSY_MS_OF_A_TURN) {
        await new Promise((resolve) => void setImmediate(resolve));
        this.#pulls = 0;
        this.#busyMs = 0;
      }
      if (!this.#isExhausted && this.#state === 'running') {
        this.#isAsked = true;
        const pulled = checkPulled(await iterator.next());
        this.#taken = 0;
        if (pulled.done) this.#endSource();
        else if (!this.#isExhausted && this.#state === 'running') this.#begin(pulled.value);
      }
    } catch (error) {
      this.#endSource();
      this.#sourceFailure = { error };
    }
    this.#isAsked = false;
    this.#isPulling = false;
    this.#settings.meter.set('source', false);
    this.#pull();
    this.#notify();
  }

  #endSource(): void {
    this.#isExhausted = true;
    this.#iterator = undefined;
  }

  #begin(value: T): void {
    const slot = this.#slots?.acquire() as Slot;
    const results: Result<R>[] = [];
    const staged = new StagedItem<T, R>(this.#stage, value, slot, (result, turn) => {
      results.push({ value: result, turn });
      this.#notify();
    });
    const item: OpenItem<R> = { slot, abort: (reason) => staged.abort(reason), results, isWorking: true, failure: undefined };
    this.#open.push(item);
    // Noted before the stage runs, which may end the run.
    this.#working++;
    const beganMs = performance.now();
    const ended = staged.run();
    this.#busyMs += performance.now() - beganMs;
    void ended.then((outcome) => {
      this.#working--;
      item.isWorking = false;
      if (outcome.kind === 'done') this.counts.items++;
      else this.#pulls += PULLS_OF_A_FAILURE;
      if (outcome.kind === 'skipped') this.counts.skipped++;
      if (outcome.kind === 'failed') this.#failItem(item, outcome.error);
      this.#noteOccupied();
      this.#auto?.countItem();
      this.#notify();
      if (this.#working === 0) this.#whenIdle?.();
    });
    this.#noteOccupied();
  }

  #noteOccupied(): void {
    const isOccupied = this.#working >= (this.#slots?.count ?? 0);
    this.#settings.meter.set('lanes', isOccupied);
    this.#auto?.setOccupied(isOccupied);
  }

  #failItem(item: OpenItem<R>, error: unknown): void {
    item.failure = { error };
    this.#isExhausted = true;
    const from = this.#settings.isOrdered ? this.#open.indexOf(item) + 1 : 0;
    for (const later of this.#open.slice(from)) if (later !== item) later.abort(error);
  }

  #release(slot: Slot): void {
    this.#slots?.release(slot);
    this.#pull();
  }

  async #close(): Promise<void> {
    const { meter } = this.#settings;
    this.#state = 'closing';
    this.#stopListening?.();
    meter.set('consumer', false);
    for (const item of this.#open) item.abort();
    this.#notify();
    const idle = new Promise<void>((resolve) => (this.#working === 0 ? resolve() : (this.#whenIdle = resolve)));
    const [source] = await Promise.allSettled([closeIterator(this.#iterator, this.#isAsked), idle]);
    meter.stop();
    for (const { results } of this.#open) for (const { value, turn } of results.splice(0)) turn.discard(value);
    await this.#slots?.close();
    if (source.status === 'rejected') throw source.reason;
  }
}

/** Closes the source. If a call of `next` is still pending, the source may never answer, so the run does not wait for it. */
async function closeIterator<T>(iterator: Opened<T> | undefined, isAsked: boolean): Promise<void> {
  const answer = Promise.resolve(iterator?.return?.());
  if (isAsked) answer.catch(() => undefined);
  else await answer;
}

// `createLanes`: a service calls `run` for each request; N requests run at the same time, each on a lane.
// Thread: owner.
import type { AsyncResource } from 'node:async_hooks';
import { badArgument, checkInteger, refuseSurplus } from '../core/base/arguments.js';
import type { Clock } from '../core/base/clock.js';
import { sharedCost } from '../core/base/shared-cost.js';
import { AbortError } from '../core/base/errors.js';
import type { WaitOptions } from '../core/waits/wait.js';
import { AutoDepth } from './auto-depth.js';
import { type BatchRules, type BatchReport, BatchSizes } from './batch-sizes.js';
import { checkErrorOptions, checkMilliseconds, type ErrorPolicy, type RetryPolicy } from './error-policy.js';
import type { Lane, Slot } from './lane.js';
import { Meter } from './meter.js';
import { checkGiven, checkOptionsGiven } from './missing-option.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { SERVICE_OPTIONS } from './option-names.js';
import { type LaneOptions, type OverlapReport, reportOf } from './overlap.js';
import type { ItemCounts } from './overlap-run.js';
import { type QueueLimits, type Request, RequestQueue } from './requests.js';
import { checkLayout, type Devices, type LaneLayout, LanePool } from './lane-pool.js';
import { checkStage, type Stage, StagedItem, type StageSettings } from './stage.js';

/** Options of `createLanes`. */
export interface LanesOptions<T = unknown> extends Omit<LaneOptions<T>, 'onSkip' | 'onError'> {
  /** 'fail' (default): the first failure rejects the request. A `RetryPolicy` tries again first. A request is never skipped. */
  readonly onError?: 'fail' | (RetryPolicy & { readonly then?: 'fail' });
  /** The most requests that wait for a lane; another one is refused with a LimitError. With 0, a request is served at once or refused. */
  readonly maxQueue: number;
  /**
   * A request that has waited longer for a lane, in milliseconds, is refused with a LimitError: when a lane becomes free, or another request
   * comes. So answers stay timely when more requests come than can be answered. Default: no limit. `default_timeout_microseconds` of a queue of
   * Triton, with the action REJECT.
   */
  readonly maxQueueMs?: number;
}

/** What lanes or a batcher have done until now. */
export interface LanesReport extends OverlapReport {
  /** The batches. A batch of `createLanes` is one request. */
  readonly batches: BatchReport;
}

/** What `createLanes` and `createBatcher` return. The methods can be used without the object: `const { run } = lanes`. */
export interface Lanes<T, R> extends AsyncDisposable {
  /** Requests that wait for a lane. */
  readonly waiting: number;
  /** Lanes that are occupied. */
  readonly busy: number;
  /**
   * Resolves to the stage's result for this item; if the stage returns an Observable, to its last value, or undefined if it emits none.
   * Rejects with the stage's error, with StateError after `close`, with LimitError at once when `maxQueue` requests wait, and when it has
   * waited for longer than `maxQueueMs` (an HTTP service answers 503; `retryAfter` resolves when there is room). With `opts` it rejects with
   * AbortError or WaitTimeoutError too: a waiting request is then dropped, and `lane.signal` of a running one aborts.
   */
  readonly run: (item: T, opts?: WaitOptions) => Promise<R>;
  /** How busy each part has been since the start, and how large the batches were. */
  readonly report: () => LanesReport;
  /** Accepts no further requests, finishes the accepted ones, then closes the lanes' streams. */
  readonly close: () => Promise<void>;
  /** Rejects the requests that wait with an AbortError, aborts those that run, and closes. */
  readonly destroy: () => Promise<void>;
}

/** How requests are grouped into batches. */
export interface Grouping extends BatchRules, QueueLimits {}

/** A stage for groups of requests, and the mapping of its last value to their answers. */
export interface GroupStage<T, V, R> {
  readonly stage: Stage<readonly T[], V>;
  readonly answersOf: (last: V | undefined) => ArrayLike<R | Error>;
  /** An Error among the answers rejects its request. */
  readonly mayReject?: boolean;
}

/** Requests that go through a stage, alone or in groups. */
export class LaneService<T, V, R> implements Lanes<T, R> {
  readonly #slots: LanePool;
  readonly #auto: AutoDepth | undefined;
  readonly #settings: StageSettings<readonly T[], V>;
  readonly #answersOf: GroupStage<T, V, R>['answersOf'];
  readonly #mayReject: boolean;
  readonly #batches: BatchSizes;
  readonly #queue: RequestQueue<T, R>;
  readonly #meter: Meter;
  readonly #clock: Clock;
  readonly #counts: ItemCounts = { items: 0, skipped: 0, dropped: 0, retried: 0 };
  readonly #running: Map<{ abort(reason: unknown): void }, Promise<void>> = new Map();
  /** Cancels the timer that begins a group that is not full, `maxWaitMs` after its first request. */
  #cancelTimer: (() => void) | undefined;
  #timerAtMs = 0;
  /** Requests share a turn: a batch waits at least for those of the same turn of the event loop. */
  readonly #isGrouping: boolean;
  #isClosing = false;
  #destroyed: AbortError | undefined;
  #closed: Promise<void> | undefined;

  constructor(name: string, layout: LaneLayout, policy: ErrorPolicy<readonly T[]>, work: GroupStage<T, V, R>, group: Grouping) {
    const { clock } = layout;
    this.#clock = clock;
    this.#meter = new Meter(clock.now);
    this.#slots = new LanePool(layout);
    this.#auto = layout.isAuto ? new AutoDepth(this.#slots, clock.now) : undefined;
    this.#settings = {
      stage: work.stage,
      policy,
      meter: this.#meter,
      clock,
      onRetry: () => void this.#counts.retried++,
      onLate: (slot) => this.#slots.abandon(slot),
    };
    this.#answersOf = work.answersOf;
    this.#mayReject = work.mayReject ?? false;
    this.#isGrouping = group.maxItems > 1;
    this.#batches = new BatchSizes(group, layout.depth * layout.devices.length);
    const canBegin = (): boolean => group.maxItems === 1 && this.#slots.free > 0;
    this.#queue = new RequestQueue(name, group, clock, canBegin, () => this.#beginWhatCan(true));
    this.#meter.start();
  }

  // The methods are functions of their own, so that `const { run } = lanes` works.
  readonly run = (item: T, opts?: WaitOptions): Promise<R> => {
    this.#refuseLate();
    return this.#queue.add(item, opts);
  };

  get waiting(): number {
    return this.#queue.length;
  }

  get busy(): number {
    return this.#slots.busy;
  }

  readonly report = (): LanesReport => ({
    ...reportOf(this.#meter, this.#counts, this.#slots.count),
    batches: this.#batches.report(),
  });

  readonly close = (): Promise<void> => {
    this.#closed ??= this.#close();
    return this.#closed;
  };

  readonly destroy = (): Promise<void> => {
    const signal = AbortSignal.abort(new Error('The lanes were destroyed.'));
    this.#destroyed = new AbortError(signal);
    this.#queue.destroy(this.#destroyed);
    for (const item of this.#running.keys()) item.abort(signal.reason);
    return this.close();
  };

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#queue.close();
    this.#isClosing = true;
    this.#beginWhatCan();
    while (this.#running.size > 0) await Promise.all(this.#running.values());
    this.#cancelTimer?.();
    this.#meter.stop();
    await this.#slots.close();
  }

  /** `isCall`: within a call of `run`, which further calls of the same turn may follow. */
  #beginWhatCan(isCall: boolean = false): void {
    const { limit } = this.#batches;
    while (this.#queue.length > 0 && this.#slots.free > 0 && (this.#queue.length >= limit || this.#hasWaited(isCall))) {
      const requests = this.#queue.take(limit);
      this.#begin(requests);
    }
    if (this.#queue.length === 0) {
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
    }
  }

  /** While a lane is free, a batch waits for more requests, and not for a lane. */
  #refuseLate(): void {
    if (this.#slots.free === 0) this.#queue.refuseLate();
  }

  /** Whether a batch that is not full has waited for more long enough; starts its timer if it has not. */
  #hasWaited(isCall: boolean): boolean {
    const { first } = this.#queue;
    const leftMs = first === undefined ? 0 : first.sinceMs + this.#batches.waitMs - this.#clock.now();
    if (this.#isClosing || !this.#isGrouping || (leftMs <= 0 && !isCall)) return true;
    const atMs = this.#clock.now() + leftMs;
    if (this.#cancelTimer !== undefined && this.#timerAtMs <= atMs) return false;
    this.#cancelTimer?.();
    this.#timerAtMs = atMs;
    this.#cancelTimer = this.#clock.after(Math.max(0, leftMs), () => {
      this.#cancelTimer = undefined;
      this.#beginWhatCan();
    });
    return false;
  }

  #begin(requests: readonly Request<T, R>[]): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const slot = this.#slots.acquire() as Slot;
    const beganMs = this.#clock.now();
    let last: V | undefined;
    let discard: (result: unknown) => void = () => undefined;
    const items = requests.map(({ item }) => item);
    const staged = new StagedItem<readonly T[], V>(this.#settings, items, slot, (value, turn) => {
      last = value;
      discard = (part) => turn.discard(part);
    });
    for (const request of requests) {
      request.onGiveUp = () => {
        if (requests.every(({ isGivenUp }) => isGivenUp)) staged.abort(new Error('Every caller has aborted the request.'));
      };
    }
    // Noted before the stage runs, which may close the lanes.
    let end = (): void => undefined;
    this.#running.set(staged, new Promise((resolve) => (end = resolve)));
    void this.#run(requests, staged).then((outcome) => {
      this.#running.delete(staged);
      const nowMs = this.#clock.now();
      this.#batches.note(
        nowMs - beganMs,
        requests.map(({ sinceMs }) => nowMs - sinceMs),
      );
      if (outcome.kind === 'failed') {
        discard(last);
        for (const request of requests) request.reject(this.#destroyed ?? outcome.error);
      } else this.#answer(requests, this.#answersOf(last), discard);
      for (const { context } of requests) context.emitDestroy();
      this.#refuseLate();
      this.#slots.release(slot);
      this.#noteOccupied();
      this.#auto?.countItem();
      this.#beginWhatCan();
      this.#queue.tellRoom();
      end();
    });
    this.#noteOccupied();
  }

  /** Runs the stage in the context of the first request's call. What the stage costs counts for all of them. */
  #run(requests: readonly Request<T, R>[], staged: StagedItem<readonly T[], V>): ReturnType<typeof staged.run> {
    const run = (): ReturnType<typeof staged.run> => staged.run();
    const contexts = requests.map(({ context }) => context);
    const [first] = contexts as [AsyncResource];
    return sharedCost.run === undefined || contexts.length === 1 ? first.runInAsyncScope(run) : sharedCost.run(contexts, run);
  }

  /** `discard` gets the results that nobody waits for any more. */
  #answer(requests: readonly Request<T, R>[], results: ArrayLike<R | Error>, discard: (result: unknown) => void): void {
    this.#counts.items += requests.length;
    requests.forEach((request, at) => {
      const result = results[at];
      if (request.isGivenUp) discard(result);
      else if (this.#mayReject && result instanceof Error) request.reject(result);
      else request.resolve(result as R);
    });
  }

  #noteOccupied(): void {
    const isOccupied = this.#slots.free === 0;
    this.#meter.set('lanes', isOccupied);
    this.#auto?.setOccupied(isOccupied);
  }
}

/**
 * Makes lanes that serve requests: each `run` waits for a free lane and resolves to the result of the stage. Throws ArgumentError for a bad
 * option, StateError on a closed device.
 * @example
 * const lanes = createLanes(device, { depth: 4, maxQueue: 100 }, (photo, lane) => classify(photo, lane));
 * const label = await lanes.run(photo, { signal: request.signal });
 */
export function createLanes<T, R>(device: Devices, opts: LanesOptions<T>, stage: Stage<T, R>): Lanes<T, R> {
  if (arguments.length > 3) refuseSurplus('createLanes', arguments, 3);
  const example = 'createLanes(device, { depth: 4, maxQueue: 100 }, stage)';
  checkOptionsGiven(opts, 'createLanes', example);
  checkStage(stage);
  checkOptionNames(opts, SERVICE_OPTIONS);
  checkGiven('maxQueue', opts.maxQueue, 'the largest number of requests that wait for a lane, a whole number of at least 0', example);
  const layout = checkLayout(device, opts.depth, opts.streams);
  const maxQueue = checkInteger('maxQueue', opts.maxQueue, 0);
  const grouping = { maxItems: 1, maxWaitMs: undefined, targetLatencyMs: undefined, maxQueue, maxQueueMs: checkQueueMs(opts.maxQueueMs) };
  const work = { stage: ([item]: readonly T[], lane: Lane) => stage(item as T, lane), answersOf: (last: R | undefined) => [last as R] };
  return new LaneService('lanes', layout, checkServicePolicy(opts), work, grouping);
}

/** The limit of the time that a request waits for a lane. */
export function checkQueueMs(maxQueueMs: number | undefined): number {
  return maxQueueMs === undefined ? Infinity : checkMilliseconds('maxQueueMs', maxQueueMs);
}

/** Refuses policies that skip: each request needs a result or an error. */
export function checkServicePolicy<T>(opts: Omit<LanesOptions, 'maxQueue'>): ErrorPolicy<T> {
  const policy = checkErrorOptions<T>(opts);
  if (!policy.isSkipping) return policy;
  throw badArgument('onError', opts.onError, "A request cannot be skipped: onError is 'fail' or a retry policy whose `then` is 'fail'.");
}

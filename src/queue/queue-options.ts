// The options of `overlapQueue`, and what it returns.
import type { RetryPolicy } from '../reactive/error-policy.js';
import type { Lane } from '../reactive/lane.js';
import type { LaneOptions, OverlapReport } from '../reactive/overlap.js';
import type { Staged } from '../reactive/stage.js';
import type { QueueItem } from './adapter.js';

/**
 * Processes one item on a lane, as a stage of `overlap`, and returns its result. An item has one result: an Observable that emits another one fails. An
 * item whose result is undefined, or whose Observable emits none, is done without one.
 */
export type QueueStage<T, R> = (data: T, lane: Lane, item: QueueItem<T>) => Staged<R | undefined>;

/** More deliveries of an item that failed: as `RetryPolicy`, but each attempt is a delivery, which any worker may get. */
export type QueueRetries = Omit<RetryPolicy, 'then'>;

/** A delivery that failed. */
export interface QueueFailure {
  /** The item. */
  readonly item: QueueItem;
  /** What its stage, its `decode` or the sink threw. */
  readonly error: unknown;
  /** It is with the dead letters and comes no more. Otherwise it is delivered again. */
  readonly isDead: boolean;
}

/** Options of `overlapQueue`. Bad values are an ArgumentError of the call. */
export interface QueueOptions extends Pick<LaneOptions, 'depth' | 'streams' | 'stageTimeoutMs'> {
  /**
   * What happens to an item that fails. 'dead-letter': it becomes a dead letter at once. `QueueRetries` deliver it again first, at most `retry` times. An
   * item that comes more often than that, because its workers died, becomes a dead letter without another attempt.
   * Default: { retry: 4, delayMs: 1000, backoff: 2, maxDelayMs: 30_000 }.
   */
  readonly onError?: 'dead-letter' | QueueRetries;
  /** Called for each delivery that failed. An error that it throws ends the run. */
  readonly onFailure?: (failure: QueueFailure) => void;
  /** Begins `drain` when it aborts. */
  readonly signal?: AbortSignal;
  /** Begins `drain` when the process gets one of these signals, which then do not end it: 'SIGTERM' in a container. Default: none. */
  readonly drainOn?: NodeJS.Signals | readonly NodeJS.Signals[];
  /** Milliseconds that items in lanes have to end in a drain. Those that have not are aborted and given back. Default 5000. */
  readonly drainTimeoutMs?: number;
}

/** What a run has done until now or until its end. */
export interface QueueReport extends OverlapReport {
  /** Results that this run stored. */
  readonly stored: number;
  /** Results that were dropped because one with the item's id was there. */
  readonly duplicates: number;
  /** Deliveries of items that had been delivered before. */
  readonly redelivered: number;
  /** Items that were given back to the server, to be delivered again. */
  readonly givenBack: number;
  /** Items that became dead letters. */
  readonly deadLettered: number;
  /** Items whose acknowledgement may not have reached the server: it delivers them again. */
  readonly unsettled: number;
  /** Items of this run that are not acknowledged now: never more than its lanes. */
  readonly unacknowledged: number;
  /** The largest number of `unacknowledged` at any time. */
  readonly mostUnacknowledged: number;
}

/** A run of `overlapQueue`. */
export interface QueueRun extends AsyncDisposable {
  /** Resolves when the run has drained. Rejects with what ended it: a lost device, a server without the stream. The items are given back before. */
  readonly done: Promise<QueueReport>;
  /** Takes no further item, lets those in lanes end, gives the others back, and closes. Returns `done`. */
  readonly drain: () => Promise<QueueReport>;
  /** What the run has done until now. */
  readonly report: () => QueueReport;
}

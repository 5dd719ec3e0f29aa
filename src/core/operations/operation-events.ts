// Reports a stream's operations to the subscribers of the stream and its device: when each is submitted and when it has finished, in
// stream order. The end of the stream omits none.
//
// An operation has finished when the device has finished it, its bytes have reached the host or its function has been called, and the
// reason of its failure is known. Later operations are reported after it.
//
// Without subscribers nothing is recorded here. The first subscriber gets the pending operations from the stream's log.
// Thread: owner.
import type { MillraceError } from '../base/errors.js';
import { TOLD_PER_TURN } from '../base/loop-turns.js';
import { batchEmissions } from '../base/observable.js';
import { operationsChannel } from '../base/trace.js';
import type { StreamContext } from '../device/stream-context.js';
import type { Timeline } from '../timeline/timeline.js';
import { ActivityFeed } from './activity.js';
import { hostError } from './host-function.js';
import type { Observation } from './observation.js';
import { Operation } from './operation.js';
import { clearImmediate, performance, setImmediate } from '../base/timers.js';

/** A stream with the hubs that its subscribers listen to. */
export interface WatchedSite extends StreamContext {
  readonly observation: Observation;
  readonly context: { readonly observation: Observation };
}

interface Followed {
  readonly operation: Operation;
  readonly ticket: number;
  /** When the event loop saw that it had finished; undefined before. */
  finishedAt: number | undefined;
}

/** The list is compacted when it has this many reported entries at its front. */
const SPENT = 1024;

export class OperationReports {
  readonly #site: WatchedSite;
  /** Of the stream itself, also while a capture has another one in its place. */
  readonly #timeline: Timeline;
  readonly #activity: ActivityFeed;
  #isOn = false;
  /** In stream order: reported up to `head`, reached by the device up to `reached`. */
  #followed: Followed[] = [];
  #head = 0;
  #reached = 0;
  /** Withdraws the waiter for the first operation that the device has not reached. */
  #withdraw: (() => void) | undefined = undefined;
  /** Called when all operations are reported. */
  #waiting: (() => void)[] = [];
  #endKeepAlive: (() => void) | undefined = undefined;
  /** The stream has ended, and its last operations are being reported. */
  #ending: Promise<void> | undefined = undefined;
  /** A turn was requested for operations that this one may not report. */
  #immediate: NodeJS.Immediate | undefined = undefined;

  constructor(site: WatchedSite) {
    this.#site = site;
    this.#timeline = site.timeline;
    this.#activity = new ActivityFeed([site.observation.activity, site.context.observation.activity], () => this.#keepAlive());
    this.update();
  }

  /** Whether there are subscribers. Without them an operation needs no clock reading and no waiter. */
  get isWatched(): boolean {
    return this.#isOn || operationsChannel.hasSubscribers;
  }

  /** Call it when `isObserved` or `isAwaited` of an observation may have changed. */
  update(): void {
    const { observation, context } = this.#site;
    const isOn = observation.isObserved || context.observation.isObserved;
    if (isOn !== this.#isOn) {
      this.#isOn = isOn;
      if (isOn) this.#begin();
      else this.#clear();
    }
    this.#keepAlive();
  }

  /** Reports an operation to the subscribers now and again when it has finished. */
  follow(operation: Operation, ticket: number): void {
    if (operationsChannel.hasSubscribers) operationsChannel.publish({ operation });
    if (!this.#isOn) return;
    const submittedAt = performance.now();
    operation.submittedAt(submittedAt);
    this.#followed.push({ operation, ticket, finishedAt: undefined });
    this.#await();
    this.#keepAlive();
    if (this.#activity.observed) this.#activity.next({ phase: 'submitted', operation, atMs: submittedAt });
  }

  /** Resolves when every operation followed so far has been reported. Call it after the whole stream has finished. */
  allReported(): Promise<void> {
    const { core } = this.#site;
    // The event loop may not have looked since the last operation finished.
    core.progress.drain();
    if (this.#isEmpty) return this.#ending ?? Promise.resolve();
    return core.channel.keepAlive(new Promise((resolve) => this.#waiting.push(resolve)));
  }

  /**
   * Ends the stream. If its device is lost, reports the finished operations, and to `activity$` also that the others failed with `error`.
   * With many of them the next turns go on; the promise resolves after that.
   */
  end(error: MillraceError | undefined): Promise<void> | undefined {
    if (this.#ending !== undefined) return this.#ending;
    const left = error === undefined ? [] : this.#followed.slice(this.#head);
    this.#clear(false);
    if (left.length > TOLD_PER_TURN) this.#ending = this.#endLater(left, error as MillraceError);
    else this.#end(left, error);
    return this.#ending;
  }

  async #endLater(left: readonly Followed[], error: MillraceError): Promise<void> {
    let next = 0;
    for (; next + TOLD_PER_TURN < left.length; next += TOLD_PER_TURN) {
      this.#lose(left.slice(next, next + TOLD_PER_TURN), error);
      await new Promise(setImmediate);
    }
    this.#end(left.slice(next), error);
  }

  #end(left: readonly Followed[], error: MillraceError | undefined): void {
    if (error !== undefined) this.#lose(left, error);
    this.#activity.flush();
    this.#site.observation.end(error);
    this.#timeline.log.kept.clear();
  }

  #lose(left: readonly Followed[], error: MillraceError): void {
    const atMs = performance.now();
    for (const { operation, finishedAt } of left) {
      // The reason of a failed build cannot arrive any more either.
      if (operation.status === 'pending' || operation.reason instanceof Promise) operation.lose(error);
      if (operation.error !== error) this.#tell(operation, finishedAt ?? atMs);
      else if (this.#activity.observed) this.#activity.next({ phase: 'failed', operation, atMs, error });
    }
  }

  #begin(): void {
    const { core, ordering } = this.#site;
    const timeline = this.#timeline;
    for (const { operation, ticket } of timeline.log.pending()) {
      const { kind, label, bytes, id } = operation;
      // The clock of the operation was not recorded.
      const own =
        operation instanceof Operation ? operation : new Operation({ core, ordering, timeline }, kind, ticket, label, bytes, id, undefined);
      this.#followed.push({ operation: own, ticket, finishedAt: undefined });
    }
    this.#await();
  }

  get #isEmpty(): boolean {
    return this.#head === this.#followed.length;
  }

  /** Waits for the first operation that the device has not reached. */
  #await(): void {
    const next = this.#followed[this.#reached];
    if (next === undefined || this.#withdraw !== undefined) return;
    const { core } = this.#site;
    const timeline = this.#timeline;
    const settle = (): void => {
      this.#withdraw = undefined;
      this.#advance();
    };
    this.#withdraw = core.progress.add(timeline, { ticket: next.ticket, keepsAlive: false, settle, lose: () => undefined });
  }

  #advance(): void {
    const { core } = this.#site;
    const timeline = this.#timeline;
    // The stream may have advanced since `drain`, and operations may have failed.
    core.failures.noteAndReport(timeline);
    const { known } = timeline;
    const limit = this.#reached + TOLD_PER_TURN;
    for (
      let next = this.#followed[this.#reached];
      next !== undefined && next.ticket <= known && this.#reached < limit;
      next = this.#followed[this.#reached]
    ) {
      this.#reached++;
      this.#finish(next);
    }
    if (this.#reached === limit) this.#goOnLater();
    else this.#await();
    this.#tellFinished();
  }

  /** The next turn reports further operations. */
  #goOnLater(): void {
    if (this.#immediate !== undefined) return;
    this.#withdraw?.();
    this.#immediate = setImmediate(() => {
      this.#immediate = undefined;
      this.#withdraw = undefined;
      this.#advance();
    });
    this.#withdraw = () => {
      clearImmediate(this.#immediate);
      this.#immediate = undefined;
    };
  }

  /** The device has finished it. The event loop's part of it or of an earlier operation, or the reason of a failure, may still be pending. */
  #finish(followed: Followed): void {
    const onItsWay = followed.operation.missing;
    if (onItsWay === undefined) followed.finishedAt = performance.now();
    else {
      void onItsWay.then(() => {
        this.#finish(followed);
        this.#tellFinished();
      });
    }
  }

  /** Reports the finished operations at the front of the list. */
  #tellFinished(): void {
    const limit = this.#head + TOLD_PER_TURN;
    for (let first = this.#followed[this.#head]; first?.finishedAt !== undefined; first = this.#followed[this.#head]) {
      if (this.#head === limit) {
        this.#goOnLater();
        break;
      }
      this.#head++;
      this.#tell(first.operation, first.finishedAt);
    }
    if (this.#head > SPENT && this.#head * 2 > this.#followed.length) {
      this.#followed = this.#followed.slice(this.#head);
      this.#reached -= this.#head;
      this.#head = 0;
    }
    if (this.#isEmpty) this.#rest();
  }

  #tell(operation: Operation, atMs: number): void {
    const { context, observation } = this.#site;
    const activity = this.#activity;
    const { error } = operation;
    batchEmissions(() => {
      observation.operations.next(operation);
      context.observation.operations.next(operation);
      if (!activity.observed) return;
      if (error === undefined) activity.next({ phase: 'finished', operation, atMs }, operation.deviceMs);
      else activity.next({ phase: 'failed', operation, atMs, error: hostError(error, operation) });
    });
  }

  /** Drops the list: there are no subscribers any more, or the stream ends. */
  #clear(isUnwatched: boolean = true): void {
    this.#withdraw?.();
    this.#withdraw = undefined;
    if (isUnwatched) this.#activity.clear();
    this.#rest();
  }

  /** Call it when all operations are reported. */
  #rest(): void {
    this.#followed = [];
    this.#head = 0;
    this.#reached = 0;
    this.#keepAlive();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Keeps the process alive exactly while a subscriber awaits a pending operation. */
  #keepAlive(): void {
    const { core, context, observation } = this.#site;
    const isPending = !this.#isEmpty || !this.#activity.isEmpty;
    const isNeeded = isPending && (observation.isAwaited || context.observation.isAwaited);
    if (isNeeded === (this.#endKeepAlive !== undefined)) return;
    this.#endKeepAlive?.();
    this.#endKeepAlive = undefined;
    if (isNeeded) void core.channel.keepAlive(new Promise<void>((resolve) => (this.#endKeepAlive = resolve)));
  }
}

// A stream's operations as those see them who watch the stream or its device: told when one is submitted and when it has
// finished, in the order of the stream, and none left out when the stream ends.
//
// An operation has finished when the device has done it, its bytes have reached the host or its function has been called, and the reason
// of its failure is known. Those behind one that has not wait for it.
//
// Nothing is noted here while nobody watches. The first watcher finds the operations that are pending in the stream's log.
// Thread: owner.
import type { MillraceError } from '../base/errors.js';
import { together } from '../base/observable.js';
import { operationsChannel } from '../base/trace.js';
import type { StreamContext } from '../device/stream-context.js';
import { ActivityFeed } from './activity.js';
import { hostError } from './host-function.js';
import type { Observation } from './observation.js';
import { Operation } from './operation.js';

/** What watchers of a stream listen to. */
export interface WatchedSite extends StreamContext {
  readonly observation: Observation;
  readonly context: { readonly observation: Observation };
}

interface Followed {
  readonly operation: Operation;
  readonly ticket: number;
  /** When the loop saw it finished; undefined before. */
  finishedAt: number | undefined;
}

/** Places at the front of the list that are given back at once. */
const SPENT = 1024;

export class Followers {
  readonly #site: WatchedSite;
  readonly #activity: ActivityFeed;
  #isOn = false;
  /** In the order of the stream: told up to `head`, reached by the device up to `reached`. */
  #followed: Followed[] = [];
  #head = 0;
  #reached = 0;
  /** Withdraws the waiter for the first that was not reached. */
  #withdraw: (() => void) | undefined = undefined;
  /** Called when all are told. */
  #waiting: (() => void)[] = [];
  #letLoopGo: (() => void) | undefined = undefined;

  constructor(site: WatchedSite) {
    this.#site = site;
    this.#activity = new ActivityFeed([site.observation.activity, site.context.observation.activity], () => this.#holdLoop());
    this.update();
  }

  /** Is anybody watching? An operation that nobody watches costs no clock and no waiter. */
  get isWatched(): boolean {
    return this.#isOn || operationsChannel.hasSubscribers;
  }

  /** Somebody has begun or ceased to watch, or to await what comes next. */
  update(): void {
    const { observation, context } = this.#site;
    const isOn = observation.isObserved || context.observation.isObserved;
    if (isOn !== this.#isOn) {
      this.#isOn = isOn;
      if (isOn) this.#begin();
      else this.#clear();
    }
    this.#holdLoop();
  }

  /** Tells the watchers of an operation now and when it has finished. */
  follow(operation: Operation, ticket: number): void {
    if (operationsChannel.hasSubscribers) operationsChannel.publish({ operation });
    if (!this.#isOn) return;
    const submittedAt = performance.now();
    operation.submittedAt(submittedAt);
    this.#followed.push({ operation, ticket, finishedAt: undefined });
    this.#await();
    this.#holdLoop();
    if (this.#activity.observed) this.#activity.next({ phase: 'submitted', operation, atMs: submittedAt });
  }

  /** Resolves when every operation that was followed so far has been told. After everything of the stream has finished. */
  told(): Promise<void> {
    const { core } = this.#site;
    // Nobody may have looked since the last of them finished.
    core.progress.drain();
    if (this.#isEmpty) return Promise.resolve();
    return core.channel.holdLoop(new Promise((resolve) => this.#waiting.push(resolve)));
  }

  /** The stream ends. When its device is lost, those that have finished are told, and `activity$` tells that the others failed of it. */
  end(error: MillraceError | undefined): void {
    const left = this.#followed.slice(this.#head);
    this.#clear(false);
    if (error !== undefined) this.#lose(left, error);
    this.#activity.flush();
    this.#site.observation.end(error);
    this.#site.timeline.log.kept.clear();
  }

  #lose(left: readonly Followed[], error: MillraceError): void {
    const atMs = performance.now();
    for (const { operation, finishedAt } of left) {
      // The reason of a failed build, too, is not to be had any more.
      if (operation.status === 'pending' || operation.reason instanceof Promise) operation.lose(error);
      if (operation.error !== error) this.#tell(operation, finishedAt ?? atMs);
      else if (this.#activity.observed) this.#activity.next({ phase: 'failed', operation, atMs, error });
    }
  }

  #begin(): void {
    const site = this.#site;
    for (const { operation, ticket } of site.timeline.log.pending()) {
      const { kind, label, bytes, id } = operation;
      // What it comes after was not noted.
      const own = operation instanceof Operation ? operation : new Operation(site, kind, ticket, label, bytes, id, undefined);
      this.#followed.push({ operation: own, ticket, finishedAt: undefined });
    }
    this.#await();
  }

  get #isEmpty(): boolean {
    return this.#head === this.#followed.length;
  }

  /** Waits for the first that was not reached. */
  #await(): void {
    const next = this.#followed[this.#reached];
    if (next === undefined || this.#withdraw !== undefined) return;
    const { core, timeline } = this.#site;
    const settle = (): void => {
      this.#withdraw = undefined;
      this.#advance();
    };
    this.#withdraw = core.progress.add(timeline, { ticket: next.ticket, holdsLoop: false, settle, lose: () => undefined });
  }

  #advance(): void {
    const { core, timeline } = this.#site;
    const { completed } = timeline;
    // The stream may have come further since it was drained, and failed on the way.
    core.failures.noteAndTell(timeline);
    for (let next = this.#followed[this.#reached]; next !== undefined && next.ticket <= completed; next = this.#followed[this.#reached]) {
      this.#reached++;
      this.#finish(next);
    }
    this.#await();
    this.#tellFinished();
  }

  /** The device has done it; the loop may have a part in it, or in one before it, and the reason of a failure be on its way. */
  #finish(followed: Followed): void {
    const { core, timeline } = this.#site;
    const { operation, ticket } = followed;
    const onItsWay =
      core.hostCompletions.hostCompleted(timeline, ticket) ?? (operation.reason instanceof Promise ? operation.reason : undefined);
    if (onItsWay === undefined) followed.finishedAt = performance.now();
    else {
      void onItsWay.then(() => {
        this.#finish(followed);
        this.#tellFinished();
      });
    }
  }

  /** Those in front that have finished. */
  #tellFinished(): void {
    for (let first = this.#followed[this.#head]; first?.finishedAt !== undefined; first = this.#followed[this.#head]) {
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
    together(() => {
      observation.operations.next(operation);
      context.observation.operations.next(operation);
      if (!activity.observed) return;
      if (error === undefined) activity.next({ phase: 'finished', operation, atMs }, operation.deviceMs);
      else activity.next({ phase: 'failed', operation, atMs, error: hostError(error, operation) });
    });
  }

  /** Nobody watches any more, or the stream ends. */
  #clear(isUnwatched: boolean = true): void {
    this.#withdraw?.();
    this.#withdraw = undefined;
    if (isUnwatched) this.#activity.clear();
    this.#rest();
  }

  /** All are told. */
  #rest(): void {
    this.#followed = [];
    this.#head = 0;
    this.#reached = 0;
    this.#holdLoop();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Keeps the process alive while somebody awaits an operation that is pending, and no longer. */
  #holdLoop(): void {
    const { core, context, observation } = this.#site;
    const isPending = !this.#isEmpty || !this.#activity.isEmpty;
    const isNeeded = isPending && (observation.isAwaited || context.observation.isAwaited);
    if (isNeeded === (this.#letLoopGo !== undefined)) return;
    this.#letLoopGo?.();
    this.#letLoopGo = undefined;
    if (isNeeded) void core.channel.holdLoop(new Promise<void>((resolve) => (this.#letLoopGo = resolve)));
  }
}

// A stream's operations as those see them who watch the stream or its device: told when one is submitted and when it has
// finished, in the order of the stream, and none left out when the stream ends.
//
// An operation has finished when the device has done it, its bytes have reached the host or its function has been called, and the reason
// of its failure is known. Those behind one that has not wait for it.
// Thread: owner.
import type { DeviceLostError, MillraceError } from '../base/errors.js';
import type { Hub } from '../base/observable.js';
import { operationsChannel } from '../base/trace.js';
import type { StreamContext } from '../device/stream-context.js';
import type { ActivityFeed } from './activity.js';
import { hostError } from './host-function.js';
import type { Operation } from './operation.js';

/** What watchers of a stream listen to. */
export interface WatchedSite extends StreamContext {
  readonly hub: Hub<Operation>;
  readonly context: { readonly hub: Hub<Operation> };
}

interface Followed {
  readonly operation: Operation;
  /** When the loop saw it finished; undefined before. */
  finishedAt: number | undefined;
  /** What it failed of. */
  error: MillraceError | undefined;
}

/** Places at the front of the list that are given back at once. */
const SPENT = 1024;

export class Followers {
  readonly #site: WatchedSite;
  readonly #activity: ActivityFeed;
  /** In the order of the stream, those not told yet from `head` on. */
  #followed: Followed[] = [];
  #head = 0;
  #isTelling = false;
  /** Called when all are told. */
  #waiting: (() => void)[] = [];
  #letLoopGo: (() => void) | undefined = undefined;

  constructor(site: WatchedSite, activity: ActivityFeed) {
    this.#site = site;
    this.#activity = activity;
  }

  /** Is anybody watching? An operation that nobody watches costs no clock and no waiter. */
  get isWatched(): boolean {
    const { context, hub } = this.#site;
    return hub.observed || context.hub.observed || this.#activity.observed || operationsChannel.hasSubscribers;
  }

  /** Tells the watchers of an operation now and when it has finished. */
  follow(operation: Operation, ticket: number): void {
    const { core, context, timeline, hub } = this.#site;
    const activity = this.#activity;
    if (operationsChannel.hasSubscribers) operationsChannel.publish({ operation });
    if (!hub.observed && !context.hub.observed && !activity.observed) return;
    const submittedAt = performance.now();
    operation.submittedAt(submittedAt);
    const followed: Followed = { operation, finishedAt: undefined, error: undefined };
    this.#followed.push(followed);
    core.progress.add(timeline, { ticket, holdsLoop: false, settle: () => this.#reached(followed, ticket), lose: () => undefined });
    this.holdLoop();
    if (activity.observed) activity.next({ phase: 'submitted', operation, atMs: submittedAt });
  }

  /** Resolves when every operation that was followed so far has been told. After everything of the stream has finished. */
  told(): Promise<void> {
    const { core } = this.#site;
    // Nobody may have looked since the last of them finished.
    core.progress.drain();
    if (this.#isEmpty) return Promise.resolve();
    return core.channel.holdLoop(new Promise((resolve) => this.#waiting.push(resolve)));
  }

  /** The device is gone: those that have finished are told, the others fail of that. */
  lose(error: DeviceLostError): void {
    const atMs = performance.now();
    const left = this.#followed.slice(this.#head);
    this.#followed = [];
    this.#head = 0;
    for (const followed of left) {
      if (followed.finishedAt !== undefined) this.#tell(followed);
      else if (this.#activity.observed) this.#activity.next({ phase: 'failed', operation: followed.operation, atMs, error });
    }
    this.#rest();
  }

  /** Keeps the process alive while a reader waits for an operation that is pending, and no longer. */
  holdLoop(): void {
    const { core, context, hub } = this.#site;
    const isNeeded = !this.#isEmpty && (hub.isAwaited || context.hub.isAwaited);
    if (isNeeded === (this.#letLoopGo !== undefined)) return;
    this.#letLoopGo?.();
    this.#letLoopGo = undefined;
    if (isNeeded) void core.channel.holdLoop(new Promise<void>((resolve) => (this.#letLoopGo = resolve)));
  }

  get #isEmpty(): boolean {
    return this.#head === this.#followed.length;
  }

  #reached(followed: Followed, ticket: number): void {
    const { core, timeline } = this.#site;
    const { operation } = followed;
    const finish = (error?: MillraceError): void => {
      followed.finishedAt = performance.now();
      followed.error = error;
      this.#tellFinished();
    };
    const error = this.#activity.observed && operation.canFail ? core.failures.peek(timeline, ticket, operation) : undefined;
    const hostCompleted = core.hostCompletions.hostCompleted(timeline, ticket);
    if (error instanceof Promise) void error.then(finish);
    else if (hostCompleted === undefined) finish(error ?? failureOf(operation));
    // The loop has a part in it, or in one before it.
    else void hostCompleted.then(() => finish(error ?? failureOf(operation)));
  }

  /** Those in front that have finished. */
  #tellFinished(): void {
    // A watcher may cause the next one to be told: that comes after this one, for all watchers.
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (let first = this.#followed[this.#head]; first?.finishedAt !== undefined; first = this.#followed[this.#head]) {
      this.#head++;
      if (this.#head > SPENT && this.#head * 2 > this.#followed.length) {
        this.#followed = this.#followed.slice(this.#head);
        this.#head = 0;
      }
      this.#tell(first);
    }
    this.#isTelling = false;
    if (this.#isEmpty) this.#rest();
  }

  #tell({ operation, finishedAt, error }: Followed): void {
    const { context, hub } = this.#site;
    hub.next(operation);
    context.hub.next(operation);
    const activity = this.#activity;
    if (!activity.observed) return;
    const atMs = finishedAt as number;
    if (error === undefined) activity.next({ phase: 'finished', operation, atMs }, operation.deviceMs);
    else activity.next({ phase: 'failed', operation, atMs, error });
  }

  /** All are told. */
  #rest(): void {
    this.#followed = [];
    this.#head = 0;
    this.holdLoop();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** What the loop's part of it failed of. */
function failureOf(operation: Operation): MillraceError | undefined {
  const error = operation.hostCompletion?.error;
  return error && hostError(error, operation);
}
